"""Residue embeddings of a protein language model, cached on disk: ``esm_embedding``."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from protgraph_plugins.esm.alignment import (
    UNRESOLVED,
    chain_rows,
    chain_tokens,
    check_window_options,
    letter_numbers,
)
from protgraph_plugins.esm.checkpoint import DEFAULT, checkpoint_digest
from protgraph_plugins.esm.embedding import Embedder
from protgraph_plugins.esm.language_model import checkpoint_width, load_token_table
from protgraph_plugins.esm.vocabulary import TOKENS

from protgraph import FieldSpec, Residues, StructureFeaturizer, register_field
from protgraph.data import Conformity

__all__ = ["EsmEmbedding"]
ENTRY_POINTS = {"protgraph.featurizers": {"esm_embedding": "EsmEmbedding"}}

register_field(FieldSpec("esm_embedding", "node", "320x0e", doc="hidden state of a protein language model"))


class EsmEmbedding(StructureFeaturizer):
    """Hidden state of a protein language model for each residue, from the residue types of its chain.

    The checkpoint is one of ESM-2, ESM-C, ProtT5, Ankh or SaProt. Each chain is a separate sequence, with the special
    tokens of the model, in the order of ``seq_pos``. A modified residue has the type of its parent, or X without a
    parent. SaProt also reads the 3Di letter of each residue; without coordinates it is unknown.

    Parameters
    ----------
    checkpoint : str
        Name on the Hugging Face hub, local folder, or ``"random:tiny"`` (random weights); see
        :func:`protgraph_plugins.esm.language_model.load_language_model`.
    revision : str, optional
        Branch, tag or commit of a name on the hub.
    layer : int
        Index of the hidden state in transformers: 0 is the embedding of tokens, -1 the last, normalized.
    gaps : {"join", "mask", "unknown"}
        Unresolved residues inside a chain: left out, or replaced by as many ``<mask>`` or X as ``seq_pos`` counts, so
        that the sequence has its full length.
    max_len : int
        Maximal number of residues of one input.
    long : {"error", "chunk"}
        Treatment of longer chains: an error, or windows that overlap by half.

    Writes
    ------
    esm_embedding : (N, D), D x 0e, dimensionless
        float32.

    Notes
    -----
    Embeddings are cached on disk by checkpoint and sequence (:class:`protgraph_plugins.esm.embedding.Embedder`).

    References
    ----------
    ESM-2: Lin et al. 2023, doi:10.1126/science.ade2574. ESM-C: ESM Team 2024. ProtT5: Elnaggar et al. 2022,
    doi:10.1109/TPAMI.2021.3095381. Ankh: Elnaggar et al. 2023, arXiv:2301.06568. SaProt: Su et al. 2024, ICLR.
    """

    writes: ClassVar[tuple[str, ...]] = ("esm_embedding",)
    needs_coordinates: ClassVar[bool] = False
    conformity = Conformity(
        options={"max_len": 1022, "long": "error"},  # the test proteins are shorter
        offline={"checkpoint": "random:tiny", "revision": None},
    )

    def __init__(
        self,
        *,
        checkpoint: str = DEFAULT,
        revision: str | None = None,
        layer: int = -1,
        gaps: str = "join",
        max_len: int = 1022,
        long: str = "error",
    ) -> None:
        super().__init__()
        check_window_options(gaps, long, max_len)
        self.gaps = gaps
        self.embedder = Embedder(checkpoint, revision, layer, max_len, long)
        self.declare(esm_embedding=f"{checkpoint_width(checkpoint, revision=revision)}x0e")

    def depends_on(self) -> str:
        """Return the digest of the checkpoint, part of the key of cached features."""
        return checkpoint_digest(self.embedder.checkpoint, revision=self.embedder.revision)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        n = len(residues)
        chains = chain_rows(np.zeros(n, np.int64), residues.chain_number, residues.seq_pos, gaps=self.gaps)
        tokens = [chain_tokens(rows, residues.aatype, gaps=self.gaps) for rows in chains]
        reads_structure = load_token_table(self.embedder.checkpoint, revision=self.embedder.revision).reads_structure
        if reads_structure and residues.has_coordinates:
            tokens = [
                t + len(TOKENS) * letter_numbers(residues.backbone, r) for t, r in zip(tokens, chains, strict=True)
            ]
        embedding = np.empty((n, self.out["esm_embedding"].dim), np.float32)
        for rows, states in zip(chains, self.embedder(tokens, subject=f"a chain of {residues.name}"), strict=True):
            embedding[rows[rows != UNRESOLVED]] = states[rows != UNRESOLVED]
        return {"esm_embedding": embedding}

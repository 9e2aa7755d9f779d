"""Contacts from the attention of ESM-2, by the regression that comes with its checkpoints."""

from __future__ import annotations

import numpy as np
import torch
from protgraph_plugins.esm.alignment import UNRESOLVED, chain_rows, check_window_options, chain_tokens, split_windows
from protgraph_plugins.esm.checkpoint import DEFAULT, load_esm
from protgraph_plugins.esm.states import attention_weights

from protgraph import Residues
from protgraph.errors import CheckpointError
from protgraph.view.attention_heads import apc, symmetrized

__all__ = ["predict_contacts"]


def predict_contacts(
    residues: Residues,
    *,
    checkpoint: str = DEFAULT,
    revision: str | None = None,
    gaps: str = "join",
    max_len: int = 1022,
) -> np.ndarray:
    """``p_ij = sigmoid( Σ_h w_h F^h_ij + b )`` over all heads h of all blocks, F their symmetrized, corrected weights.

    Parameters
    ----------
    residues : Residues
        Their types alone are used, of each chain by itself.
    checkpoint, revision
        See :func:`protgraph_plugins.esm.checkpoint.load_esm`.
    gaps : {"join", "mask", "unknown"}
        See :class:`protgraph_plugins.esm.featurizer.EsmEmbedding`.
    max_len : int
        Residues of the longest chain.

    Returns
    -------
    ndarray
        ``(L, L)`` float64, symmetric, computed in float32; NaN between chains, of which ESM knows nothing.

    Raises
    ------
    CheckpointError
        The checkpoint has no such regression.
    FieldError
        A chain is too long.

    References
    ----------
    Rao et al. 2021, doi:10.1101/2020.12.15.422761, sec. 3.2.
    """
    check_window_options(gaps, "error", max_len)
    model = load_esm(checkpoint, revision=revision)
    if model.contact_head is None:
        raise CheckpointError(f"{checkpoint!r} has no regression from attention to contacts; facebook/esm2_… have one")
    n = len(residues)
    chains = chain_rows(np.zeros(n, np.int64), residues.chain_number, residues.seq_pos, gaps=gaps)
    read = []
    for rows in chains:
        (whole,) = split_windows(len(rows), max_len=max_len, long="error", what=f"a chain of {residues.name}")
        read.append(whole.tokens(chain_tokens(rows, residues.aatype, gaps=gaps)))
    made = np.full((n, n), np.nan)
    head = model.contact_head.regression
    with torch.no_grad():
        for rows, weights in zip(chains, attention_weights(model, read), strict=True):
            maps = torch.from_numpy(apc(symmetrized(weights.flatten(0, 1).numpy())))  # (heads of all blocks, T, T)
            p = head(maps.permute(1, 2, 0)).squeeze(2).sigmoid().numpy()
            kept = rows != UNRESOLVED
            made[np.ix_(rows[kept], rows[kept])] = p[np.ix_(kept, kept)]
    return made

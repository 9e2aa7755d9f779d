"""Predict contacts from the attention of ESM-2 with the regression of its checkpoints."""

from __future__ import annotations

import numpy as np
import torch
from protgraph_plugins.esm.alignment import UNRESOLVED, chain_rows, chain_tokens, check_window_options, split_windows
from protgraph_plugins.esm.checkpoint import DEFAULT, load_esm
from protgraph_plugins.esm.states import attention_weights
from protgraph_plugins.view import apc, symmetrized

from protgraph import Residues
from protgraph.errors import CheckpointError

__all__ = ["predict_contacts"]


def predict_contacts(
    residues: Residues,
    *,
    checkpoint: str = DEFAULT,
    revision: str | None = None,
    gaps: str = "join",
    max_len: int = 1022,
) -> np.ndarray:
    """Compute ``p_ij = sigmoid( Σ_h w_h F^h_ij + b )`` over all heads h of all blocks.

    F are the symmetrized attention weights with average product correction (APC).

    Parameters
    ----------
    residues : Residues
        Only types are used, each chain separately.
    checkpoint, revision
        See :func:`protgraph_plugins.esm.checkpoint.load_esm`.
    gaps : {"join", "mask", "unknown"}
        See :class:`protgraph_plugins.esm.featurizer.EsmEmbedding`.
    max_len : int
        Maximal number of residues of a chain.

    Returns
    -------
    ndarray
        ``(L, L)`` float64, symmetric, computed in float32; NaN between chains.

    Raises
    ------
    CheckpointError
        The checkpoint has no contact regression.
    FieldError
        A chain is too long.

    References
    ----------
    Rao et al. 2021, doi:10.1101/2020.12.15.422761, sec. 3.2.
    """
    check_window_options(gaps, "error", max_len)
    model = load_esm(checkpoint, revision=revision)
    if model.contact_head is None:
        raise CheckpointError(f"no contact regression in checkpoint {checkpoint!r}. Use one of facebook/esm2_….")
    n = len(residues)
    chains = chain_rows(np.zeros(n, np.int64), residues.chain_number, residues.seq_pos, gaps=gaps)
    inputs = []
    for rows in chains:
        (window,) = split_windows(len(rows), max_len=max_len, long="error", subject=f"a chain of {residues.name}")
        inputs.append(window.tokens(chain_tokens(rows, residues.aatype, gaps=gaps)))
    contacts = np.full((n, n), np.nan)
    head = model.contact_head.regression
    with torch.no_grad():
        for rows, weights in zip(chains, attention_weights(model, inputs), strict=True):
            maps = torch.from_numpy(apc(symmetrized(weights.flatten(0, 1).numpy())))  # (heads of all blocks, T, T)
            p = head(maps.permute(1, 2, 0)).squeeze(2).sigmoid().numpy()
            resolved = rows != UNRESOLVED
            contacts[np.ix_(rows[resolved], rows[resolved])] = p[np.ix_(resolved, resolved)]
    return contacts

"""Identity of residues: readable ids, and numbers of chains by appearance."""

from __future__ import annotations

import numpy as np

__all__ = ["by_appearance", "residue_ids"]


def residue_ids(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> list[str]:
    """Return readable ids: chain, ":", residue number and insertion code.

    Parameters
    ----------
    chain, res_id, ins_code : ndarray
        ``(N,)`` str, int and str.

    Examples
    --------
    >>> residue_ids(np.array(["A", "H"]), np.array([42, 100]), np.array(["", "B"]))
    ['A:42', 'H:100B']
    """
    columns = (np.asarray(column).tolist() for column in (chain, res_id, ins_code))
    return [f"{name}:{number}{code}" for name, number, code in zip(*columns, strict=True)]


def by_appearance(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value among the distinct ones in order of appearance, ``(N,)`` to ``(N,)`` int64.

    Examples
    --------
    >>> by_appearance(np.array(["B", "A", "B"])).tolist()
    [0, 1, 0]
    """
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(distinct), np.int64)
    rank[np.argsort(first)] = np.arange(len(distinct))
    return rank[inverse]

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
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])[: len(values)]  # of equal runs
    ranks: dict[object, int] = {}
    rank = [ranks.setdefault(value, len(ranks)) for value in values[starts].tolist()]
    return np.repeat(np.array(rank, np.int64), np.diff(starts, append=len(values)))

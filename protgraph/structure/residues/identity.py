"""Identity of residues: readable ids, and numbers of chains by appearance."""

from __future__ import annotations

import numpy as np

__all__ = ["by_appearance", "residue_ids", "run_lengths"]


def residue_ids(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> list[str]:
    """Return readable ids: chain, ":", residue number and insertion code.

    ``chain``, ``res_id``, ``ins_code``: ``(N,)`` str, int and str.

    Examples
    --------
    >>> residue_ids(np.array(["A", "H"]), np.array([42, 100]), np.array(["", "B"]))
    ['A:42', 'H:100B']
    """
    names, numbers, codes = (np.asarray(column).tolist() for column in (chain, res_id, ins_code))
    if not any(codes):
        if len(set(names)) == 1:  # as in most files
            prefix = f"{names[0]}:"
            return [prefix + text for text in map(str, numbers)]
        return [f"{name}:{number}" for name, number in zip(names, numbers, strict=True)]
    return [f"{name}:{number}{code}" for name, number, code in zip(names, numbers, codes, strict=True)]


def by_appearance(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value among the distinct ones in order of appearance, ``(N,)`` to ``(N,)`` int64.

    Examples
    --------
    >>> by_appearance(np.array(["B", "A", "B"])).tolist()
    [0, 1, 0]
    """
    changes = (values[1:] != values[:-1]).nonzero()[0]
    if len(changes) == 0:
        return np.zeros(len(values), np.int64)
    starts = np.concatenate([[0], changes + 1])  # of equal runs
    ranks: dict[object, int] = {}
    rank = [ranks.setdefault(value, len(ranks)) for value in values[starts].tolist()]
    return np.repeat(np.array(rank, np.int64), run_lengths(starts, len(values)))


def run_lengths(starts: np.ndarray, total: int) -> np.ndarray:
    """Return the lengths ``(R,)`` of runs from their first rows ``(R,)`` and the number of rows.

    Examples
    --------
    >>> run_lengths(np.array([0, 2, 3]), 7).tolist()
    [2, 1, 4]
    """
    lengths = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = total - starts[-1:]
    return lengths

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
    names = np.asarray(chain).tolist()
    numbers = np.asarray(res_id).tolist()
    codes = np.asarray(ins_code).tolist()
    return [f"{name}:{number}{code}" for name, number, code in zip(names, numbers, codes, strict=True)]


def by_appearance(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value among the distinct ones in order of appearance, ``(N,)`` to ``(N,)`` int64.

    Examples
    --------
    >>> by_appearance(np.array(["B", "A", "B"])).tolist()
    [0, 1, 0]
    """
    changes = np.flatnonzero(values[1:] != values[:-1])
    if len(changes) == 0:
        return np.zeros(len(values), np.int64)
    starts = np.append(0, changes + 1)  # of runs of equal values
    ranks: dict[object, int] = {}
    rank_of_run = [ranks.setdefault(value, len(ranks)) for value in values[starts].tolist()]
    return np.repeat(rank_of_run, run_lengths(starts, len(values)))


def run_lengths(starts: np.ndarray, total: int) -> np.ndarray:
    """Return the lengths ``(R,)`` of runs from their first rows ``(R,)`` and the number of rows.

    Examples
    --------
    >>> run_lengths(np.array([0, 2, 3]), 7).tolist()
    [2, 1, 4]
    """
    stops = np.append(starts[1:], total)
    return stops - starts

"""Identity of residues: readable ids, and numbers of chains by appearance."""

from __future__ import annotations

from functools import cache

import numpy as np

__all__ = ["by_appearance", "residue_id_array", "residue_ids", "run_lengths"]

_LARGEST = 9999  # number in the table of decimals


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
    names, numbers, codes = (np.asarray(column).tolist() for column in (chain, res_id, ins_code))
    if not any(codes):
        if len(set(names)) == 1:  # as in most files
            prefix = f"{names[0]}:"
            return [prefix + text for text in map(str, numbers)]
        return [f"{name}:{number}" for name, number in zip(names, numbers, strict=True)]
    return [f"{name}:{number}{code}" for name, number, code in zip(names, numbers, codes, strict=True)]


def residue_id_array(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> np.ndarray:
    """Return :func:`residue_ids` as an array, ``(N,)`` str, of ``chain``, ``res_id`` and ``ins_code``, ``(N,)`` each.

    Numbers from 0 to 9999 are looked up as code points if no residue has an insertion code, and the chain ids are of
    one length: a fifth of the time for 230 residues.

    Examples
    --------
    >>> residue_id_array(np.array(["A", "B"]), np.array([7, 42]), np.array(["", ""])).tolist()
    ['A:7', 'B:42']
    """
    count, width = len(res_id), chain.dtype.itemsize // 4
    prefix = np.ascontiguousarray(chain).view(np.uint32).reshape(count, width)
    size = len(str(chain[0])) if count else 0
    is_plain = count and res_id.min() >= 0 and (last := int(res_id.max())) <= _LARGEST
    if not is_plain or ins_code.view(np.uint32).any() or not prefix[:, :size].all() or prefix[:, size:].any():
        return np.array(residue_ids(chain, res_id, ins_code), dtype=str)
    digits = len(str(last))
    points = np.empty((count, size + 1 + digits), np.uint32)
    points[:, :size], points[:, size] = prefix[:, :size], ord(":")
    points[:, size + 1 :] = _decimals()[:, :digits].take(res_id, axis=0)
    return points.view(f"U{points.shape[1]}")[:, 0]


@cache
def _decimals() -> np.ndarray:
    """Return the code points of the numbers from 0 to 9999, ``(10000, 4)`` uint32, 0 after the last digit."""
    numbers = np.arange(_LARGEST + 1)
    digits = np.stack([numbers // 10**place % 10 for place in (3, 2, 1, 0)], 1) + ord("0")  # with leading zeros
    points = np.zeros((len(numbers), 4), np.uint32)
    for size, first in ((1, 0), (2, 10), (3, 100), (4, 1000)):
        rows = slice(first, 10**size)
        points[rows, :size] = digits[rows, 4 - size :]
    return points


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

    Not ``np.diff(starts, append=total)``: equal, in five times the time for 200 runs (numpy 2.4.6, 2026-11-23).

    Examples
    --------
    >>> run_lengths(np.array([0, 2, 3]), 7).tolist()
    [2, 1, 4]
    """
    lengths = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = total - starts[-1:]
    return lengths

"""Sequences aligned to the residues of a protein."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["GAP", "Alignment"]

GAP = len(ALPHABET)
"""Type of a gap in an alignment, behind those of residues."""

_BITS = 5  # of a type


@dataclass(frozen=True, eq=False)
class Alignment:
    """S sequences aligned to the N residues of a protein; the first is that of the protein itself.

    ``rows``: ``(S, N)`` uint8, residue types as ``aatype``, or :data:`GAP`. ``deletions``: ``(S, N)`` int32, residues
    of each sequence between this column and the one before, which the protein lacks. ``path``: files that the alignment
    is from, for errors. ``notes``: messages for the user, e.g. on residues that differ from those of the file.
    """

    rows: np.ndarray
    deletions: csr_array
    path: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Alignment({self.path!r}, {len(self)} sequences, {self.rows.shape[1]} residues)"

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of each sequence, ``(S,)`` float64: 1 / number of sequences with the same type in ≥ 80 % of columns.

        A sequence counts itself, and a gap is a type, as in Morcos et al. 2011, doi:10.1073/pnas.1111471108.
        """
        return 1.0 / count_similar(self.rows)

    def sample(self, limit: int, *, seed: int) -> Alignment:
        """Return the first sequence and ``limit`` − 1 random others, in the order of the file."""
        if len(self) <= limit:
            return self
        drawn = np.random.default_rng(seed).choice(np.arange(1, len(self)), limit - 1, replace=False)
        rows = np.concatenate([[0], np.sort(drawn)])
        return replace(self, rows=self.rows[rows], deletions=self.deletions[rows])

    def select(self, columns: np.ndarray) -> Alignment:
        """Return columns, and the sequences that have residues there.

        ``columns``: ``(N,)`` bool, or the numbers of columns in order.
        """
        rows = self.rows[:, columns]
        is_used = (rows != GAP).any(1)
        is_used[:1] = True
        return replace(self, rows=rows[is_used], deletions=self.deletions[:, columns][is_used])

    def without_types(self, columns: np.ndarray) -> Alignment:
        """Return a copy in which the protein itself has type X in the columns with ``columns`` ``(N,)`` bool True."""
        rows = self.rows.copy()
        rows[0, columns] = UNKNOWN
        return replace(self, rows=rows)


def count_similar(rows: np.ndarray) -> np.ndarray:
    """Return for each sequence the number of those that agree in at least 80 % of the columns, ``(S,)`` int64.

    Types have five bits; sequences are compared by 64 columns at a time.
    """
    sequences, columns = rows.shape
    words = -(-columns // 64)
    bits = np.zeros((_BITS, sequences, words * 8), np.uint8)
    for bit in range(_BITS):
        packed = np.packbits((rows >> bit) & 1, axis=1)
        bits[bit, :, : packed.shape[1]] = packed
    planes = bits.view(np.uint64)  # (bits, S, words)
    count = np.ones(sequences, np.int64)
    for i in range(sequences - 1):
        differ = planes[0, i + 1 :] ^ planes[0, i]
        for plane in planes[1:]:
            differ |= plane[i + 1 :] ^ plane[i]
        is_similar = 5 * np.bitwise_count(differ).sum(1, dtype=np.int64) <= columns
        count[i + 1 :] += is_similar
        count[i] += int(is_similar.sum())
    return count

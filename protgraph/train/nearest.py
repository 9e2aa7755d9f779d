"""Nearest vectors by cosine similarity: exact, in blocks.

Not scikit-learn: its ``NearestNeighbors`` with the cosine metric does not break ties by position.
"""

from __future__ import annotations

import numpy as np

__all__ = ["nearest_by_cosine", "unit_vectors"]

_QUERIES, _VECTORS = 256, 16_384  # a block of similarities has 32 MB
_DECIMALS = 9  # equal vectors have equal similarities, whatever their place in a block


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Return vectors ``(N, D)`` of length one in float64, of the same shape; a zero vector stays zero."""
    vectors = vectors.astype(np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def nearest_by_cosine(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest vectors of each query by cosine similarity, the first ones of equal similarity.

    Besides the vectors, the search needs memory for a block of 16,384 vectors in float64 and its similarities to 256
    queries (32 MB).

    Parameters
    ----------
    queries : ndarray
        ``(Q, D)``.
    vectors : ndarray
        ``(N, D)``.
    k : int
        At most N are returned.

    Returns
    -------
    tuple of ndarray
        ``(Q, k)`` int64 rows of ``vectors``, and ``(Q, k)`` float64 similarities, descending.

    Examples
    --------
    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> rows, similarity = nearest_by_cosine(np.array([[1.0, 0.0]]), vectors, 2)
    >>> rows.tolist(), similarity.tolist()
    ([[0, 2]], [[1.0, 1.0]])
    """
    k = min(k, len(vectors))
    rows, similarity = np.empty((len(queries), k), np.int64), np.empty((len(queries), k))
    for start in range(0, len(queries), _QUERIES):
        part = slice(start, start + _QUERIES)
        rows[part], similarity[part] = _nearest_of_block(unit_vectors(queries[part]), vectors, k)
    return rows, similarity


def _nearest_of_block(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    best_rows, best = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0))
    for start in range(0, len(vectors), _VECTORS):
        block = unit_vectors(vectors[start : start + _VECTORS])
        found = np.concatenate([best, (queries @ block.T).round(_DECIMALS)], 1)
        here = np.broadcast_to(np.arange(start, start + len(block)), (len(queries), len(block)))
        rows = np.concatenate([best_rows, here], 1)
        kept = np.stack([_first_largest(own, k) for own in found])
        best_rows, best = np.take_along_axis(rows, kept, 1), np.take_along_axis(found, kept, 1)
    return best_rows, best


def _first_largest(values: np.ndarray, k: int) -> np.ndarray:
    """Return the places of the k largest values, descending, the first ones of equal values."""
    if len(values) > k:
        least = np.partition(values, len(values) - k)[len(values) - k]
        places = np.flatnonzero(values >= least)
    else:
        places = np.arange(len(values))
    return places[np.argsort(-values[places], kind="stable")][:k]

"""Alignments of score matrices, compared with a slow recursion."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.similarity.tm_align import align_matrices


def best_value(scores: np.ndarray, gap: float) -> float:
    """Largest value of the recursion, with explicit maxima over the lengths of gaps."""
    m, n = scores.shape
    best = np.zeros((m + 1, n + 1), np.float32)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            best[i, j] = max(
                0, best[i - 1, j - 1] + scores[i - 1, j - 1], (best[i, :j] - gap).max(), (best[:i, j] - gap).max()
            )
    return float(best.max())


def value_of(pairs: np.ndarray, scores: np.ndarray, gap: float) -> float:
    """Value of an alignment: scores of the pairs less a cost for each gap in either sequence."""
    gaps = (np.diff(pairs, axis=0) > 1).sum()
    return float(scores[pairs[:, 0], pairs[:, 1]].sum() - gap * gaps)


@pytest.mark.parametrize("gap", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("low", [0.0, -1.0])
@pytest.mark.parametrize("shape", [(9, 14), (14, 9), (1, 5)])
def test_alignment_has_the_value_of_the_recursion(gap, low, shape):
    scores = np.random.default_rng(0).uniform(low, 1, (6, *shape)).astype(np.float32)
    for pairs, matrix in zip(align_matrices(scores, gap), scores, strict=True):
        assert (np.diff(pairs, axis=0) > 0).all()
        assert value_of(pairs, matrix, gap) == pytest.approx(best_value(matrix, gap), abs=1e-5)


def test_each_matrix_has_its_own_gap():
    scores = np.random.default_rng(1).uniform(0, 1, (1, 12, 12)).astype(np.float32)
    gaps = np.array([0.0, 0.3, 5.0])
    together = align_matrices(np.repeat(scores, 3, 0), gaps)
    for pairs, gap in zip(together, gaps.tolist(), strict=True):
        assert pairs.tolist() == align_matrices(scores, gap)[0].tolist()
    assert len({pairs.tobytes() for pairs in together}) == 3


def test_nothing_is_aligned_without_a_positive_score():
    assert align_matrices(np.full((1, 3, 4), -1, np.float32), 0.5)[0].shape == (0, 2)

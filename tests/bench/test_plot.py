"""Figures: curves and points are at the means over seeds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from protgraph.bench import plot
from protgraph.bench.plot import plot_comparison, plot_curves
from protgraph.bench.rows import BenchJob, BenchRow

BASELINES = ("majority", "mlp")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list:
    """Record the figures that are written to files."""
    recorded, save = [], plot._save
    monkeypatch.setattr(plot, "_save", lambda figure, path: recorded.append(figure) or save(figure, path))
    return recorded


@pytest.mark.parametrize("task", ["classes", "types"])
@pytest.mark.parametrize("draw", [plot_curves, plot_comparison])
def test_figures_are_not_blank(tmp_path: Path, rows: list[BenchRow], task: str, draw) -> None:
    path = draw([row for row in rows if row.task == task], tmp_path / "new" / "figure.png", baselines=BASELINES)
    pixels = matplotlib.image.imread(path)
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.05


def test_curves_are_means_over_seeds(tmp_path: Path, rows: list[BenchRow], figures: list) -> None:
    some = [row for row in rows if row.task == "classes"]
    plot_curves(some, tmp_path / "figure.png", baselines=BASELINES)
    expected = np.mean([[p["accuracy"] for p in row.history[:6]] for row in some if row.model == "one"], axis=0)
    lines = [line.get_ydata() for line in figures[0].axes[0].lines]
    assert any(len(y) == 6 and np.allclose(y, expected, rtol=1e-12) for y in lines)


def test_comparison_puts_points_at_the_means(tmp_path: Path, rows: list[BenchRow], figures: list) -> None:
    some = [row for row in rows if row.task == "classes"]
    plot_comparison(some, tmp_path / "figure.png", baselines=BASELINES)
    axes = figures[0].axes[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["mlp (baseline)", "majority (baseline)", "two", "one"]  # from the bottom up
    mean = np.mean([row.score for row in some if row.model == "one"])
    assert any(np.allclose(line.get_xydata(), [[mean, 3]]) for line in axes.lines if len(line.get_xdata()) == 1)


def test_no_rows_give_no_figure(tmp_path: Path, rows: list[BenchRow]) -> None:
    failed = [BenchRow.failed(BenchJob("one", "classes", "small", 0), "ValueError: x")]
    assert plot_curves(failed, tmp_path / "figure.png") is None
    assert plot_comparison(failed, tmp_path / "figure.png") is None
    short = [replace(row, history=row.history[:1]) for row in rows]
    assert plot_curves(short, tmp_path / "figure.png") is None
    assert not (tmp_path / "figure.png").exists()


def test_labels_are_moved_apart_by_the_least_distance() -> None:
    assert plot._apart([0.0, 0.5, 1.0], 0.1) == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(plot._apart([0.5, 0.5, 0.5], 0.1), [0.4, 0.5, 0.6])
    wanted = sorted(np.random.default_rng(0).random(30))
    places = plot._apart(wanted, 0.05)
    assert all(b - a >= 0.05 - 1e-12 for a, b in pairwise(places))
    assert np.mean(places) == pytest.approx(np.mean(wanted))

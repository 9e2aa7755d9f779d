"""Figures: curves, points and bars are at the means over seeds, and are marked with their model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from protgraph.bench.figures import (
    confusion_figure,
    curves_figure,
    inline_svg,
    ranks_figure,
    reliability_figure,
    save_figure,
    scores_figure,
)
from protgraph.bench.paired_tests import RankComparison
from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.evaluation.bootstrap import BootstrapInterval

BASELINES = ("majority", "mlp")
SERIES = {"majority": 0, "mlp": 1, "one": 2, "two": 3}


def of_task(rows: list[BenchRow], task: str) -> list[BenchRow]:
    return [row for row in rows if row.task == task]


@pytest.mark.parametrize("task", ["classes", "types"])
def test_figures_are_not_blank(tmp_path: Path, rows: list[BenchRow], task: str) -> None:
    own = of_task(rows, task)
    for figure in (curves_figure(own, SERIES), scores_figure(own, "test", SERIES, baselines=BASELINES)):
        pixels = matplotlib.image.imread(save_figure(figure, tmp_path / "new" / "figure.png"))
        assert min(pixels.shape[:2]) > 300
        assert pixels[..., :3].std() > 0.05


def test_curves_are_means_over_seeds(rows: list[BenchRow]) -> None:
    own = of_task(rows, "classes")
    expected = np.mean([[p["accuracy"] for p in row.history[:6]] for row in own if row.model == "one"], axis=0)
    lines = [line.get_ydata() for line in curves_figure(own, SERIES).axes[0].lines]
    assert any(len(y) == 6 and np.allclose(y, expected, rtol=1e-12) for y in lines)


def test_scores_are_at_the_means_with_intervals_or_deviations(rows: list[BenchRow]) -> None:
    own = of_task(rows, "classes")
    interval = {"one": BootstrapInterval(0.1, 0.9)}
    axes = scores_figure(own, "test", SERIES, baselines=BASELINES, intervals=interval).axes[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["majority (baseline)", "mlp (baseline)", "one", "two"] and axes.yaxis_inverted()
    drawn = [line.get_xydata() for line in axes.lines]
    mean = np.mean([row.score for row in own if row.model == "one"])
    two = [row.score for row in own if row.model == "two"]
    ends = np.mean(two) + np.std(two, ddof=1) * np.array([-1, 1])
    for expected in ([[mean, 2]], [[0.1, 2], [0.9, 2]], [[ends[0], 3], [ends[1], 3]]):
        assert any(xy.shape == np.shape(expected) and np.allclose(xy, expected) for xy in drawn)


def test_no_rows_give_no_figure(rows: list[BenchRow]) -> None:
    failed = [BenchRow.failed(BenchJob("one", "classes", "small", 0), "ValueError: x")]
    assert curves_figure(failed, SERIES) is None
    assert scores_figure(failed, "test", SERIES) is None
    assert curves_figure([replace(row, history=row.history[:1]) for row in rows], SERIES) is None


def test_epochs_are_whole_numbers(rows: list[BenchRow]) -> None:
    figure = curves_figure(of_task(rows, "classes"), SERIES)
    figure.draw_without_rendering()
    assert all(tick == int(tick) for tick in figure.axes[0].get_xticks())


def test_bins_with_few_rows_are_open_and_not_connected() -> None:
    bins = {"m": [(0.1, 0.0, 500), (0.4, 1.0, 1), (0.9, 0.8, 60)]}
    _, line, few = reliability_figure(bins, {"m": 0}).axes[0].lines
    assert line.get_xydata().tolist() == [[0.1, 0.0], [0.9, 0.8]] and few.get_xydata().tolist() == [[0.4, 1.0]]
    assert few.get_markerfacecolor() == "none" and few.get_linestyle() == "None"
    assert len(reliability_figure({"m": [(0.4, 1.0, 1)]}, {"m": 0}).axes[0].lines) == 2


def test_each_model_is_at_its_mean_rank() -> None:
    ranks = RankComparison(("one", "two", "mlp"), (1.2, 2.0, 2.8), 10, 0.01, 0.9)
    lines = ranks_figure(ranks, SERIES).axes[0].lines
    at = {line.get_gid(): line.get_xdata()[0] for line in lines if line.get_gid()}
    assert at == {"series:one": 1.2, "series:two": 2.0, "series:mlp": 2.8}


def test_confusion_is_the_log_odds_of_types() -> None:
    counts = np.random.default_rng(0).integers(1, 50, (20, 20))
    image = confusion_figure(counts, "title").axes[0].images[0].get_array()
    c = counts + 0.5
    a, r = "ACDEFGHIKLMNPQRSTVWY".index("I"), "ACDEFGHIKLMNPQRSTVWY".index("L")
    expected = np.log2(c[a, r] / c[a].sum() / (c[:, r].sum() / c.sum()))
    assert image[0, 1] == pytest.approx(expected)  # I, L, …


def test_inline_figures_mark_their_models_and_share_no_ids(rows: list[BenchRow]) -> None:
    own = [replace(row, model="a<b") if row.model == "one" else row for row in of_task(rows, "classes")]
    svg = inline_svg(curves_figure(own, SERIES | {"a<b": 4}), "Curves")
    assert svg.startswith("<svg ") and 'aria-label="Curves"' in svg and "<text" in svg
    assert svg.count('data-series="two"') >= 2 and 'data-series="a&lt;b"' in svg
    assert 'id="axes_1"' not in svg and svg == inline_svg(curves_figure(own, SERIES | {"a<b": 4}), "Curves")

"""Heat map of a scan: its title is inside the figure and above the panels."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.ddg.trained_binding_scorer import TrainedBindingScorer

from protgraph.design.mutation import SubstitutionScan
from protgraph.structure import clean, load_structure
from protgraph.visualization import scan_plot


@pytest.mark.parametrize("number", [3, 90])
def test_the_title_is_inside_the_figure_and_above_the_panels(structures_dir, tmp_path, monkeypatch, number):
    residues = clean(load_structure(structures_dir / "1a8o.bcif"))
    rows = np.arange(len(residues))[:number]
    convention = TrainedBindingScorer.convention
    scan = SubstitutionScan(residues, rows, np.ones((len(rows), 20)), "ddg_binding", "ddg", convention)
    drawn = []
    save = scan_plot.save
    monkeypatch.setattr(scan_plot, "save", lambda figure, path: drawn.append(figure) or save(figure, path))
    assert scan_plot.draw_scan(tmp_path / "scan.png", scan).stat().st_size > 1000
    (figure,) = drawn
    figure.draw_without_rendering()
    title = figure._suptitle.get_window_extent()
    assert "".join(figure._suptitle.get_text().split()) == "".join(f"{residues.name}, ddg_binding {convention}".split())
    assert title.x0 >= 0 and title.x1 <= figure.bbox.x1 and title.y1 <= figure.bbox.y1
    assert title.y0 > max(axes.get_window_extent().y1 for axes in figure.axes)

"""Heat map of a scan: its title is inside the figure and above the panels."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from protgraph_plugins.ddg.trained_scorers import TrainedBindingScorer
from protgraph_plugins.mutations import SubstitutionScan, heat_map

from protgraph.structure import ALPHABET, THREE_LETTER, clean, load_structure


@pytest.mark.parametrize("number", [3, 90])
def test_the_title_is_inside_the_figure_and_above_the_panels(structures_dir, tmp_path, monkeypatch, number):
    residues = clean(load_structure(structures_dir / "1a8o.bcif"))
    rows = np.arange(len(residues))[:number]
    convention = TrainedBindingScorer.convention
    scan = SubstitutionScan(residues, rows, np.ones((len(rows), 20)), "ddg_binding", "ddg", convention)
    drawn = []
    save = heat_map.save_figure
    monkeypatch.setattr(heat_map, "save_figure", lambda figure, path: drawn.append(figure) or save(figure, path))
    heat_map.draw_scan(tmp_path / "scan.png", tmp_path / "scan.html", scan)
    assert (tmp_path / "scan.png").stat().st_size > 1000
    (figure,) = drawn
    figure.draw_without_rendering()
    title = figure._suptitle.get_window_extent()
    assert "".join(figure._suptitle.get_text().split()) == "".join(f"{residues.name}, ddg_binding {convention}".split())
    assert title.x0 >= 0 and title.x1 <= figure.bbox.x1 and title.y1 <= figure.bbox.y1
    wild_types = [text.get_window_extent().y1 for axes in figure.axes for text in axes.texts]
    assert title.y0 > max(*wild_types, *(axes.get_window_extent().y1 for axes in figure.axes))


@pytest.mark.parametrize("number", [17, 70])
def test_columns_with_insertion_codes_have_labels_and_all_have_wild_types(
    structures_dir, tmp_path, monkeypatch, number
):
    residues = clean(load_structure(structures_dir / "1a8o.bcif"))
    rows = np.arange(number)
    numbers, codes = residues.res_id.copy(), residues.ins_code.copy()
    numbers[8:11] = numbers[7]  # 52A, 52B and 52C follow 52
    codes[8:11] = ["A", "B", "C"]
    residues = residues.copy_with(res_id=numbers, ins_code=codes)
    scan = SubstitutionScan(residues, rows, np.ones((number, 20)), "ddg", "ddg", "positive = destabilizing")
    drawn = []
    save = heat_map.save_figure
    monkeypatch.setattr(heat_map, "save_figure", lambda figure, path: drawn.append(figure) or save(figure, path))
    heat_map.draw_scan(tmp_path / "scan.png", tmp_path / "scan.html", scan)
    panel = drawn[0].axes[0]
    labels = [label.get_text() for label in panel.get_xticklabels()]
    names = [f"{n}{c}" for n, c in zip(numbers[:number].tolist(), codes[:number].tolist(), strict=True)]
    expected = [name for i, name in enumerate(names) if number < 40 or i == 0 or name[-1] in "ABC50"]
    assert labels == expected and {names[8], names[9], names[10]} <= set(labels)
    assert "".join(text.get_text() for text in panel.texts) == residues.sequence[:number]
    places = [label.get_window_extent() for label in panel.get_xticklabels()]
    assert all(left.x1 <= right.x0 for left, right in pairwise(places))


def test_the_page_has_a_tooltip_on_each_cell(structures_dir, tmp_path):
    residues = clean(load_structure(structures_dir / "1a8o.bcif"))
    rows = np.arange(5)
    scores = np.random.default_rng(0).normal(size=(5, 20))
    scores[2, 3] = np.nan
    scan = SubstitutionScan(residues, rows, scores, "ddg", "ddg", "positive = destabilizing")
    heat_map.draw_scan(tmp_path / "scan.png", tmp_path / "scan.html", scan)
    page = (tmp_path / "scan.html").read_text()
    pattern = r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)" fill="transparent"><title>(.*?)</title>'
    cells = re.findall(pattern, page)
    assert len(cells) == 100 and len({cell[:2] for cell in cells}) == 100
    for number, (x, y, width, height, text) in enumerate(cells):
        i, new = number // 20, heat_map.SCAN_ORDER[number % 20]
        value, old = scores[i, ALPHABET.index(new)], residues.sequence[i]
        shown = "wild type" if new == old else "no value" if np.isnan(value) else f"{value:+.3f}"
        names = [THREE_LETTER[ALPHABET.index(letter)] for letter in (old, new)]
        assert text == f"{residues.ids[i]} {names[0]} → {names[1]}: {shown}"
        # columns go to the right, types down
        assert float(x) == pytest.approx(float(cells[0][0]) + i * float(width), abs=0.5)
        assert float(y) == pytest.approx(float(cells[0][1]) + number % 20 * float(height), abs=1.1)

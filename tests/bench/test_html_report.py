"""The HTML report in a browser: sorting, toggling, 3D, phone width, print, and no network."""

from __future__ import annotations

import base64
import io
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from protgraph.bench.environment import environment
from protgraph.bench.html_report import write_html
from protgraph.bench.page_charts import COLORS, curves_chart, reliability_chart
from protgraph.bench.published import PublishedScore
from protgraph.bench.spec import BenchSpec
from protgraph.bench.statistics import load_runs, split_statistics
from protgraph.bench.statistics_csv import estimates_csv, pairs_csv
from protgraph.train import load_dataset
from tests.bench.bench_runs import write_run
from tests.page_checks import check_keyboard, check_logs

#: Script that returns the texts with a contrast below WCAG 2.1 AA.
LOW_CONTRAST = (Path(__file__).parents[1] / "low_contrast.js").read_text(encoding="utf-8")
MODELS = {"majority": 0.0, "weak": 1.0, "strong": 3.0, "sequence_mlp.window15": 2.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return spec, rows and statistics of four models on proteins of pdb_core, with synthetic predictions."""
    dataset = load_dataset("pdb_core", task="ligand_binding")
    examples = dataset.examples("ligand_binding", "test")[:8]
    sizes = {example.id: len(dataset.read(example)) for example in examples}
    published = PublishedScore(
        task="ligand_binding", method="Other <b>", metric="auprc", value=0.41, trained_on="its own set", source="paper"
    )
    spec = BenchSpec(
        name="page",
        dataset="pdb_core",
        tasks=("ligand_binding",),
        models=tuple(MODELS),
        baselines=("majority",),
        seeds=(0, 1),
        out=tmp_path_factory.mktemp("runs"),
        published=(published,),
    )
    rows = write_run(spec.folder, MODELS, sizes)
    statistics = [
        split_statistics(*key, "auprc", models, resamples=50) for key, models in load_runs(rows, spec.folder).items()
    ]
    return spec, rows, statistics


@pytest.fixture(scope="module")
def page(run):
    return write_html(*run, environment())


def test_the_page_is_one_small_file_with_the_spec_and_no_link_out(page):
    text = page.read_text()
    assert len(text) < 6_000_000
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text) and "url(" not in text and "@import" not in text
    assert "Other &lt;b&gt;" in text and "published, trained on its own set" in text
    assert "&quot;protgraph-pyg&quot;" in text and "&quot;baselines&quot;" in text


def test_the_page_sorts_and_toggles_without_network(page, browser):
    from selenium.webdriver.common.by import By

    browser.get(page.as_uri())
    column = "return [...document.querySelector('table').tBodies[0].rows].map(r => r.cells[0].textContent)"
    before = browser.execute_script(column)
    head = browser.find_elements(By.CSS_SELECTOR, "table thead th button")[1]
    head.click()
    falling = browser.execute_script(column)
    assert falling[0] == "strong"
    values = "return [...document.querySelector('table').tBodies[0].rows].map(r => Number(r.cells[1].dataset.value))"
    assert browser.execute_script(values) == sorted(browser.execute_script(values), reverse=True)
    head.click()
    assert browser.execute_script(column) == falling[::-1] != before
    lines = "return [...document.querySelectorAll('[data-series=weak]')].filter(e => e.getClientRects().length).length"
    shown = browser.execute_script(lines)
    assert shown >= 3  # curves, intervals, reliability
    button = browser.find_element(By.CSS_SELECTOR, "button[data-toggle=weak]")
    button.click()
    assert browser.execute_script(lines) == 0 and button.get_attribute("aria-pressed") == "false"
    button.click()
    assert browser.execute_script(lines) == shown
    check_logs(browser)


def test_texts_of_charts_are_within_their_frames(page, browser):
    browser.get(page.as_uri())
    outside = """
    return [...document.querySelectorAll('svg')].flatMap(svg => {
      const box = svg.viewBox.baseVal;
      return [...svg.querySelectorAll('text')].filter(text => {
        if (text.getAttribute('transform')) return false;
        const own = text.getBBox();
        return own.x < box.x - 0.5 || own.x + own.width > box.x + box.width + 0.5;
      }).map(text => text.textContent);
    })"""
    assert browser.execute_script("return document.querySelectorAll('svg text').length") > 20
    assert browser.execute_script(outside) == []


def test_a_task_without_predictions_per_protein_has_a_table_of_each_tested_split(run, tmp_path):
    spec, rows, _ = run
    apart = [replace(row, metrics=row.metrics | {"apart": {"auprc": 0.25 + row.seed}}) for row in rows]
    (tmp_path / spec.name).mkdir()
    text = write_html(spec.model_copy(update={"out": tmp_path}), apart, [], environment()).read_text(encoding="utf-8")
    test, other = text.split("<h3>test: pdb_core</h3>")[1].split("<h3>apart: pdb_core</h3>")
    for model in MODELS:
        own = [row.metrics["test"]["auprc"] for row in rows if row.model == model]
        assert f">{model}{' (baseline)' if model == 'majority' else ''}</td>" in test
        assert f"{np.mean(own):.3f} ± {np.std(own, ddof=1):.3f}" in test
    assert "Other &lt;b&gt;" in test and other.count("0.750 ± 0.707") == len(MODELS)
    assert 'class="sortable"' in test and "see the table in report.md" not in text


def test_tables_of_no_statistics_have_their_header():
    assert estimates_csv([]).startswith("dataset,task,split,model,metric") and estimates_csv([]).count("\n") == 1
    assert pairs_csv([]).startswith("dataset,task,split,metric,model,minus") and pairs_csv([]).count("\n") == 1


def test_epochs_are_whole_numbers(run):
    _, rows, _ = run
    ticks = re.findall(r'text-anchor="middle">([\d.]+)</text>', curves_chart(rows, dict.fromkeys(MODELS, 0)))
    assert ticks == ["1", "2", "3", "4"]


def test_bins_with_few_rows_are_open_and_not_connected():
    chart = reliability_chart({"m": [(0.1, 0.0, 500), (0.4, 1.0, 1), (0.9, 0.8, 60)]}, {"m": 0})
    assert chart.count('fill="none"') == 1 and chart.count(f'fill="{COLORS[0]}"') == 2
    (line,) = re.findall(r'class="line"[^>]* d="([^"]*)"', chart)
    assert line.count("L") == 1
    assert 'd=""' in reliability_chart({"m": [(0.4, 1.0, 1)]}, {"m": 0})


def wait_for(browser, script):
    """Return the result of a script once it is true."""
    deadline = time.monotonic() + 180
    while not (found := browser.execute_script(script)):
        assert time.monotonic() < deadline, browser.get_log("browser")
        time.sleep(0.3)
    return found


@pytest.mark.slow
def test_an_open_protein_is_shown_in_3d_with_predictions_beside_labels(page, browser):
    browser.get(page.as_uri())
    boxes = browser.find_elements("css selector", "details.protein")
    assert len(boxes) == 4  # two best, two worst
    assert [box.get_attribute("open") is not None for box in boxes] == [True, False, False, False]
    boxes[1].find_element("tag name", "summary").click()
    frames = (
        "[...document.querySelectorAll('details.protein')].map(box => box.querySelectorAll('iframe').length).join()"
    )
    assert wait_for(browser, f"return {frames} === '0,1,0,0'")
    assert [box.get_attribute("open") is not None for box in boxes] == [False, True, False, False]
    frame = boxes[1].find_element("tag name", "iframe")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
    browser.switch_to.frame(frame)
    wait_for(browser, "return document.body?.getAttribute('aria-busy') === 'false'")
    captions = browser.execute_script("return [...document.querySelectorAll('figcaption')].map(e => e.textContent)")
    name = browser.execute_script("return document.querySelector('h1').textContent")
    browser.switch_to.default_content()
    assert captions[0] == "predicted01" and re.fullmatch(r"trueno \(\d+\)yes \(\d+\)", captions[1])
    assert boxes[1].get_attribute("data-title").startswith(name)
    picture = imread(io.BytesIO(frame.screenshot_as_png))[..., :3]
    middle = picture[250:450]
    for side in (middle[:, : picture.shape[1] // 2], middle[:, picture.shape[1] // 2 :]):
        assert (side.min(-1) < 0.9).mean() > 0.02
    check_logs(browser)


def test_every_control_is_reached_by_tab_with_a_visible_focus_and_a_name(page, browser):
    browser.get(page.as_uri())
    browser.execute_script("for (const box of document.querySelectorAll('details.protein')) box.open = false")
    time.sleep(1.0)
    names = check_keyboard(browser)
    assert {"methods", "strong", "model", "Paired tests"} <= set(names)


def test_without_the_viewer_the_proteins_are_listed(page, run, monkeypatch, tmp_path):
    spec, rows, statistics = run
    monkeypatch.setitem(sys.modules, "molstar_cli", None)
    (tmp_path / spec.name).mkdir()
    text = write_html(spec.model_copy(update={"out": tmp_path}), rows, statistics, environment()).read_text()
    assert text.count('<p class="protein">') == 4 and 'id="molstar"' not in text
    assert "3D pictures are left out" in text and "protgraph-pyg[view]" in text
    assert "residues; chain" not in text and len(text) < 200_000


def test_scenes_beyond_the_size_of_the_page_are_listed_with_the_reason(run, monkeypatch, tmp_path):
    spec, rows, statistics = run
    monkeypatch.setattr("protgraph.bench.page_proteins._MAX_SCENES", 120_000)
    (tmp_path / spec.name).mkdir()
    text = write_html(spec.model_copy(update={"out": tmp_path}), rows, statistics, environment()).read_text()
    boxes, listed = text.count('<details class="protein"'), text.count("not in 3D, as the page would exceed 6 MB")
    assert boxes + listed == 4 and boxes and listed


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_is_not_wider_than_the_screen(page, browser, width):
    browser.get(page.as_uri())
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        cut = (
            "return [...document.querySelectorAll('svg')].filter(s => [...s.querySelectorAll('text')].some(t => {"
            "const a = t.getBoundingClientRect(), b = s.getBoundingClientRect();"
            "return a.width && (a.left < b.left - 2 || a.right > b.right + 2)})).length"
        )
        assert browser.execute_script(cut) == 0  # no text outside of its chart
        assert browser.execute_script(LOW_CONTRAST) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_printed_page_has_the_folded_tables(page, browser):
    browser.get(page.as_uri())
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return [...document.querySelectorAll('details:not(.protein)')].every(d => d.open)")
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF") and len(printed) > 20_000

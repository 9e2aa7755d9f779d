"""The page of the report in a browser: sorting, toggling, phone width, print, and no network."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protgraph.bench.published import PublishedScore
from protgraph.bench.report import environment, write_report_page
from protgraph.bench.spec import BenchSpec
from protgraph.bench.statistics import load_runs, split_statistics
from protgraph.bench.tables import estimates_csv, pairs_csv
from protgraph.labels import load_dataset
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
    return write_report_page(*run, environment())


@pytest.mark.slow
def test_the_page_is_one_small_file_with_the_spec_and_no_link_out(page):
    text = page.read_text()
    assert len(text) < 6_000_000
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text) and not re.search(r"url\((?!#)|@import", text)
    assert "Other &lt;b&gt;" in text and "published, trained on its own set" in text
    assert "&quot;protgraph-pyg&quot;" in text and "&quot;baselines&quot;" in text


@pytest.mark.slow
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
      return [...svg.querySelectorAll('text')].filter(text => {
        const own = text.getBoundingClientRect(), frame = svg.getBoundingClientRect();
        return own.left < frame.left - 1 || own.right > frame.right + 1;
      }).map(text => text.textContent);
    })"""
    assert browser.execute_script("return document.querySelectorAll('svg text').length") > 20
    assert browser.execute_script(outside) == []


def test_a_task_without_predictions_per_protein_has_a_table_of_each_tested_split(run, tmp_path):
    spec, rows, _ = run
    apart = [replace(row, metrics=row.metrics | {"apart": {"auprc": 0.25 + row.seed}}) for row in rows]
    (tmp_path / spec.name).mkdir()
    text = write_report_page(spec.model_copy(update={"out": tmp_path}), apart, [], environment()).read_text(
        encoding="utf-8"
    )
    test, other = text.split("<h3>test: pdb_core</h3>")[1].split("<h3>apart: pdb_core</h3>")
    for model in MODELS:
        own = [row.metrics["test"]["auprc"] for row in rows if row.model == model]
        assert f">{model}{' (baseline)' if model == 'majority' else ''}</td>" in test
        assert f"{np.mean(own):.3f} ± {np.std(own, ddof=1):.3f}" in test
    assert "Other &lt;b&gt;" in test and other.count("0.750 ± 0.707") == len(MODELS)
    assert 'class="sortable"' in test


def test_tables_of_no_statistics_have_their_header():
    assert estimates_csv([]).startswith("dataset,task,split,model,metric") and estimates_csv([]).count("\n") == 1
    assert pairs_csv([]).startswith("dataset,task,split,metric,model,minus") and pairs_csv([]).count("\n") == 1


@pytest.mark.slow
def test_every_control_is_reached_by_tab_with_a_visible_focus_and_a_name(page, browser):
    browser.get(page.as_uri())
    names = check_keyboard(browser)
    assert {"methods", "strong", "model", "Paired tests"} <= set(names)


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


@pytest.mark.slow
def test_the_printed_page_has_the_folded_tables(page, browser):
    browser.get(page.as_uri())
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return [...document.querySelectorAll('details')].every(d => d.open)")
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF") and len(printed) > 20_000

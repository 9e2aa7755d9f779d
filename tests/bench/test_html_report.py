"""The HTML report in a browser: sorting, toggling, 3D, phone width, print, and no network."""

from __future__ import annotations

import base64
import json
import re

import pytest

from protgraph.bench.environment import environment
from protgraph.bench.html_report import write_html
from protgraph.bench.published import PublishedScore
from protgraph.bench.spec import BenchSpec
from protgraph.bench.statistics import load_runs, split_statistics
from protgraph.train import load_dataset
from tests.bench.bench_runs import write_run

MODELS = {"majority": 0.0, "weak": 1.0, "strong": 3.0}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a report of three models on proteins of pdb_core, with synthetic predictions."""
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
    return write_html(spec, rows, statistics, environment())


def test_the_page_is_one_small_file_with_the_spec_and_no_link_out(page):
    text = page.read_text()
    assert len(text) < 6_000_000
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text) and "url(" not in text and "@import" not in text
    assert "Other &lt;b&gt;" in text and "published, trained on its own set" in text
    assert "&quot;protgraph-pyg&quot;" in text and "&quot;baselines&quot;" in text


def test_the_page_sorts_toggles_and_rotates_without_network(page, browser):
    from selenium.webdriver import ActionChains
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
    canvas = browser.find_element(By.CSS_SELECTOR, ".protein canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    pixels = "return document.querySelectorAll('.protein canvas')[arguments[0]].toDataURL()"
    images = [browser.execute_script(pixels, i) for i in (0, 1)]
    assert images[0] != images[1]  # labels and predictions differ
    ActionChains(browser).click_and_hold(canvas).move_by_offset(60, 25).release().perform()
    assert all(browser.execute_script(pixels, i) != images[i] for i in (0, 1))
    assert len(browser.find_elements(By.CSS_SELECTOR, ".protein")) == 4  # two best, two worst
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("file:", "data:"))] == []
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


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
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_printed_page_has_the_folded_tables(page, browser):
    browser.get(page.as_uri())
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return [...document.querySelectorAll('details')].every(d => d.open)")
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF") and len(printed) > 20_000

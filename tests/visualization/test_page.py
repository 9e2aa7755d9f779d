"""The page in a browser: it renders, the legend hides edges, and there is no network request."""

from __future__ import annotations

import io
import json
import shutil
import time

import numpy as np
import pytest

from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from protgraph.visualization.page import write_page
from protgraph.visualization.scene import Color, Scene, edge_set, make_scene

EDGES = (component("contact"), component("knn", k=4))


@pytest.fixture(scope="module")
def page(structures_dir, tmp_path_factory):
    residues = clean(load_structure(structures_dir / "1crn.bcif"))
    scene = make_scene(residues, edges=EDGES, color="b_factor", shown=[Color("charge", np.full(46, 0.5), unit="e")])
    return write_page(scene, tmp_path_factory.mktemp("page") / "1crn.html")


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium and its driver are not installed (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless=new", "no-sandbox", "use-angle=swiftshader", "enable-unsafe-swiftshader",
                 "disable-dev-shm-usage", "window-size=1000,800", "disable-background-networking",
                 "disable-component-update", "no-first-run"):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as running:
        yield running


def test_the_page_is_self_contained(page):
    text = page.read_text()
    assert "A:THR:1" in text and "charge: 0.5 e" in text and ("Å²" in text or "\\u00c5" in text)
    assert "<script src=" not in text and "<link" not in text.split("</head>")[0]


def test_the_page_renders_and_hides_an_edge_kind_without_network(page, browser):
    browser.get(page.as_uri())
    deadline = time.monotonic() + 60
    while not browser.execute_script("return !!document.querySelector('.gl-container canvas')"):
        assert time.monotonic() < deadline, browser.get_log("browser")
        time.sleep(0.2)
    shown = "return document.querySelector('.js-plotly-plot')._fullData.map(t => [t.name, String(t.visible)])"
    before = dict(browser.execute_script(shown))
    assert set(before.values()) == {"true"}
    assert {"chain A", "b_factor"} < set(before) and any(name.startswith("contact (") for name in before)
    assert not browser.execute_script("return !!document.querySelector('[data-title^=\"Share\"]')")  # it would upload
    full = _colors(browser)
    item = "[...document.querySelectorAll('.legend .traces')].find(e => e.textContent.startsWith('contact'))"
    browser.execute_script(
        f"const t = {item}.querySelector('.legendtoggle');"
        "for (const kind of ['mousedown', 'mouseup', 'click'])"
        " t.dispatchEvent(new MouseEvent(kind, {bubbles: true, view: window}));"
    )
    deadline = time.monotonic() + 30
    while dict(browser.execute_script(shown)) == before and time.monotonic() < deadline:
        time.sleep(0.2)
    after = dict(browser.execute_script(shown))
    changed = {name for name in after if after[name] != before[name]}
    assert [name.split(" (")[0] for name in changed] == ["contact"] and after[changed.pop()] == "legendonly"
    assert full > 1000 and _colors(browser) < full  # pixels that are not white
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("file:", "data:", "blob:"))] == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def _colors(browser) -> int:
    """Return the number of pixels that are not white."""
    from matplotlib.image import imread

    time.sleep(1.0)
    picture = imread(io.BytesIO(browser.get_screenshot_as_png()))[100:, 200:800, :3]
    return int((picture.min(-1) < 0.95).sum())


def test_edges_of_several_widths_are_one_legend_item(structures_dir, tmp_path):
    residues = clean(load_structure(structures_dir / "1crn.bcif"))
    pairs = np.array([[0, 9], [1, 9], [2, 9], [9, 3]])
    edges = edge_set("attention", pairs, np.array([0.1, 0.12, 0.9, 1.0]))
    scene = Scene(residues, Color("chain", np.zeros(46), ("A",)), edges=(edges,))
    text = write_page(scene, tmp_path / "a.html").read_text()
    assert text.count('"legendgroup":"attention"') == 2 and text.count('"showlegend":false') == 1

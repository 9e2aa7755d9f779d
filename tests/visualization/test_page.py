"""The page in a browser: pictures, colors, edges, selection, keyboard, contrast, and no network request."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protgraph.errors import MissingExtraError
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from protgraph.visualization import Color, make_scene, write_page

#: Script that returns the texts with a contrast below WCAG 2.1 AA.
LOW_CONTRAST = (Path(__file__).parents[1] / "low_contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def scene(structures_dir):
    """Return crambin with a residue number 17 with insertion code B, contacts, and labels beside predictions."""
    read = clean(load_structure(structures_dir / "1crn.bcif"))
    code, number = np.where(np.arange(46) == 17, "B", ""), read.res_id - (np.arange(46) >= 17)
    residues = replace(read, ins_code=code, res_id=number)
    predicted = Color("p_site", np.linspace(0, 1, 46), limits=(0.0, 1.0))
    label = Color("site", np.arange(46) % 2.0, ("no", "yes"))
    made = make_scene(residues, edges=[component("contact")], color=predicted, shown=[label])
    return replace(made, beside="site", notes=("a note",))


@pytest.fixture(scope="module")
def page(scene, tmp_path_factory):
    return write_page(scene, tmp_path_factory.mktemp("page") / "1crn.html")


def finish(browser):
    """Wait until the page has finished an action."""
    deadline = time.monotonic() + 180
    while browser.execute_script("return document.body.getAttribute('aria-busy')") != "false":
        assert time.monotonic() < deadline, browser.get_log("browser")
        time.sleep(0.3)


@pytest.fixture(scope="module")
def opened(browser, page):
    """Return the browser with the page, at the width of a phone after the first drawing."""
    browser.get(page.as_uri())
    finish(browser)
    return browser


def click(browser, selector):
    browser.execute_script(f"document.querySelector({json.dumps(selector)}).click()")
    finish(browser)


def test_the_page_is_self_contained(page):
    text = page.read_text(encoding="utf-8")
    shown = re.sub(r'<script type="text/plain".*?</script>', "", text, flags=re.S)
    assert 10**6 < page.stat().st_size < 6 * 10**6
    assert "<script src=" not in shown and "<link rel=stylesheet" not in shown and "http" not in shown
    assert '<p class="note">a note</p>' in shown


def test_a_missing_viewer_is_named(scene, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "molstar_cli", None)
    with pytest.raises(MissingExtraError, match=r"molstar-cli.*pip install"):
        write_page(scene, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_two_pictures_are_drawn_without_network_and_errors(opened):
    captions = opened.execute_script("return [...document.querySelectorAll('figcaption')].map(e => e.textContent)")
    assert [c.replace("\n", "") for c in captions] == ["p_site01", "siteno (23)yes (23)"]
    drawn = colored(opened)
    assert drawn > 500
    click(opened, "input[name='edges-0']")
    without = colored(opened)
    assert 100 < without < drawn
    click(opened, "input[name=cartoon]")
    assert colored(opened) < 0.2 * without
    for name in ("sticks", "sticks", "cartoon", "edges-0"):
        click(opened, f"input[name='{name}']")
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("file:", "data:", "blob:"))] == []
    assert not [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"]


def colored(browser) -> int:
    """Return the number of pixels of the first picture that differ from its background."""
    from matplotlib.image import imread

    time.sleep(2.0)
    picture = imread(io.BytesIO(browser.find_element("css selector", ".picture").screenshot_as_png))[4:-4, 4:-4, :3]
    return int((picture.min(-1) < 0.9).sum())


@pytest.mark.slow
def test_a_residue_of_the_picture_is_that_of_the_graph(opened, scene):
    """Atoms of each residue in Mol*: type, number and insertion code, and the row that the page computes for them."""
    found = opened.execute_script("""
      const get = lib.structure.StructureProperties, rows = [...Array(46).keys()];
      return rows.map(row => locationOf(panels[0].loci([row]))).map(p => [rowOf(p), get.atom.auth_comp_id(p),
        get.residue.auth_seq_id(p), get.residue.pdbx_PDB_ins_code(p), describe(p)[0]]);""")
    r = scene.residues
    names = [f"A:{kind}:{n}{code}" for kind, n, code in zip(r.res_name, r.res_id, r.ins_code, strict=True)]
    expected = zip(range(46), r.res_name.tolist(), r.res_id.tolist(), r.ins_code.tolist(), names, strict=True)
    assert [tuple(row) for row in found] == list(expected) and "A:LEU:17B" in names


@pytest.mark.slow
def test_the_sequence_selects_by_pointer_and_keyboard(opened):
    from selenium.webdriver.common.keys import Keys

    status = "return document.getElementById('status').textContent"
    chosen = "return [...document.querySelectorAll('.residue[aria-selected=true]')].map(e => Number(e.dataset.row))"
    click(opened, "#r17")
    assert opened.execute_script(status) == "A:LEU:17B · p_site: 0.3778 · site: yes"
    active = opened.switch_to.active_element
    active.send_keys(Keys.ARROW_RIGHT, Keys.ENTER)
    assert opened.execute_script(chosen) == [17, 18]
    atoms = opened.execute_script("""return panels.map(({plugin, structure}) =>
      lib.structure.StructureElement.Loci.size(plugin.managers.structure.selection.getLoci(structure.data)));""")
    assert len(atoms) == 2 and atoms[0] == atoms[1]
    opened.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert opened.execute_script(chosen) == []
    before = opened.execute_script("return panels[0].plugin.canvas3d.camera.getSnapshot().position")
    opened.execute_script("document.querySelector('canvas').focus()")
    opened.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    time.sleep(1.0)
    cameras = opened.execute_script("return panels.map(p => p.plugin.canvas3d.camera.getSnapshot().position)")
    assert np.linalg.norm(np.subtract(cameras[0], before)) > 1
    opened.execute_script("const list = document.querySelector('select[name=color]'); list.value = '1';"
                          "list.dispatchEvent(new Event('change'))")  # fmt: skip
    finish(opened)
    caption = opened.execute_script("return document.querySelector('figcaption strong').textContent")
    styles = opened.execute_script("return ['r0', 'r1'].map(i => document.getElementById(i).style.background)")
    assert caption == "site" and styles == ["rgb(0, 114, 178)", "rgb(230, 159, 0)"]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_texts_are_readable_and_images_are_described(opened, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert opened.execute_script("return document.documentElement.scrollWidth - window.innerWidth") <= 1
    assert opened.execute_script(LOW_CONTRAST) == []
    unnamed = opened.execute_script("""return [
      ...[...document.querySelectorAll('canvas, img, [role=img]')].filter(e => !e.getAttribute('aria-label') && !e.alt),
      ...[...document.querySelectorAll('input, select')].filter(e => !e.closest('label').textContent.trim())].length""")
    assert unnamed == 0

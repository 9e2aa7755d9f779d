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
from protgraph_plugins.view import Color, ResidueGroup, make_scene, write_page

from protgraph.errors import MissingExtraError
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from tests.page_checks import check_keyboard, check_logs

#: Script that returns the texts with a contrast below WCAG 2.1 AA.
LOW_CONTRAST = (Path(__file__).parents[2] / "low_contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def scene(structures_dir):
    """Return crambin with a residue number 17 with insertion code B, contacts, and labels beside predictions."""
    read = clean(load_structure(structures_dir / "1crn.bcif"))
    code, number = np.where(np.arange(46) == 17, "B", ""), read.res_id - (np.arange(46) >= 17)
    residues = replace(read, ins_code=code, res_id=number)
    predicted = Color("p_site", np.linspace(0, 1, 46), is_probability=True)
    label = Color("site", np.arange(46) % 2.0, ("no", "yes"))
    made = make_scene(residues, edges=[component("contact")], color=predicted, shown=[label])
    group = ResidueGroup("pocket 1", np.array([3, 4, 9]), {"volume": "120"})
    return replace(made, beside="site", notes=("a note",), groups=(group,))


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
    check_logs(opened)


def picture_of(browser) -> np.ndarray:
    """Return the first picture ``(H, W, 3)``, 0 to 1, without its frame."""
    from matplotlib.image import imread

    time.sleep(2.0)
    png = browser.find_element("css selector", ".picture").screenshot_as_png
    return imread(io.BytesIO(png))[4:-4, 4:-4, :3]


def colored(browser) -> int:
    """Return the number of pixels of the first picture that differ from its background."""
    return int((picture_of(browser).min(-1) < 0.9).sum())


@pytest.mark.slow
def test_the_protein_fits_into_both_pictures(opened):
    click(opened, "form button")
    drawn = picture_of(opened).min(-1) < 0.9
    rows, columns = drawn.any(1), drawn.any(0)
    assert not (rows[0] or rows[-1] or columns[0] or columns[-1])
    assert max(rows.mean(), columns.mean()) > 0.6
    cameras = opened.execute_script(
        "return panels.map(p => p.plugin.canvas3d.camera.getSnapshot()).map(c => [c.position, c.up].flat())"
    )
    np.testing.assert_allclose(cameras[0], cameras[1], atol=1e-3)


@pytest.mark.slow
def test_the_saved_picture_has_both_drawings_and_their_legends(opened, tmp_path):
    from matplotlib.image import imread

    opened.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    before = colored(opened)
    opened.execute_script("document.querySelector('input[name=surface]').click();"
        "[...document.querySelectorAll('button')].find(b => b.textContent === 'Save PNG').click()")  # fmt: skip
    finish(opened)
    deadline, file = time.monotonic() + 60, tmp_path / "1crn_p_site_site.png"
    while not file.is_file():
        assert time.monotonic() < deadline, list(tmp_path.iterdir())
        time.sleep(0.2)
    picture = np.round(imread(file)[..., :3] * 255).astype(int)
    half = picture.shape[1] // 2
    for side in (picture[:, :half], picture[:, half:]):
        assert (side.min(-1) < 230).mean() > 0.02 and len(np.unique(side.reshape(-1, 3), axis=0)) > 50
    drawn = [(side[:-80].min(-1) < 230).sum() for side in (picture[:, :half], picture[:, half:])]
    assert min(drawn) > 1.3 * before and max(drawn) < 1.1 * min(drawn)  # the surface is in both
    click(opened, "input[name=surface]")
    shades = {tuple(rgb) for rgb in picture[-80:, half:].reshape(-1, 3).tolist()}
    assert {(0, 114, 178), (230, 159, 0)} <= shades  # legend of no and yes


@pytest.mark.slow
def test_the_print_has_pictures_and_sequence_without_controls(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        boxes = opened.execute_script("""
          const size = e => [e.getBoundingClientRect()].flatMap(b => [b.width, b.height]);
          return [...document.querySelectorAll('.picture')].map(e => [size(e), size(e.firstChild)].flat());""")
        assert len(boxes) == 2
        for outer, height, inner, drawn in boxes:
            assert abs(outer - inner) <= 2 and abs(height - drawn) <= 2 and height > 100
        assert colored(opened) > 500
        shown = "return ['form', '#status', '#sequence'].map(s => document.querySelector(s).checkVisibility())"
        assert opened.execute_script(shown) == [False, False, True]
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.slow
def test_actions_run_in_turn_with_a_message(opened):
    seen = opened.execute_script("""
      const box = document.querySelector('input[name=surface]'), status = document.getElementById('status');
      box.click();
      const first = [document.body.getAttribute('aria-busy'), status.textContent];
      box.click();
      return [...first, getComputedStyle(document.querySelector('.picture'), '::after').content];""")
    assert seen == ["true", "Drawing Surface …", '"Drawing …"']
    finish(opened)
    assert opened.execute_script("return panels.map(panel => panel.shown.has('surface'))") == [False, False]


@pytest.mark.slow
def test_surfaces_of_large_structures_are_coarser(opened):
    kinds = opened.execute_script("""
      const drawing = elementCount => panels[0].drawing.call({ structure: { data: { elementCount } } }, 'surface');
      return [2999, 3000, 60000, 10 ** 6].map(drawing).map(d => [d.type, d.typeParams.quality]);""")
    assert kinds == [["molecular-surface", None], *(["gaussian-surface", q] for q in ("low", "lower", "lowest"))]


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
def test_a_row_of_the_table_selects_its_residues(opened):
    click(opened, "#groups tbody tr")
    chosen = "return [...document.querySelectorAll('.residue[aria-selected=true]')].map(e => Number(e.dataset.row))"
    assert opened.execute_script(chosen) == [3, 4, 9]
    assert "3 residues selected" in opened.execute_script("return document.getElementById('status').textContent")
    cells = "return [...document.querySelectorAll('#groups th, #groups td')].map(e => e.textContent)"
    assert opened.execute_script(cells) == ["", "volume", "pocket 1", "120"]


def test_the_surface_of_groups_is_a_part_of_the_surface_of_the_protein(opened):
    """Triangles drawn for the residues of groups, and for the whole protein; a checkbox removes the patches."""
    triangles = """return [...panels[0].shown.get(arguments[0]) ?? []].flatMap(ref =>
        panels[0].plugin.state.data.cells.get(ref).obj.data.repr.renderObjects)
        .reduce((sum, drawn) => sum + drawn.values.drawCount.ref.value / 3, 0)"""
    patches = opened.execute_script(triangles, "patches")
    click(opened, "input[name=surface]")
    surface = opened.execute_script(triangles, "surface")
    assert 0 < patches < 0.5 * surface
    click(opened, "input[name=surface]")
    click(opened, "input[name=patches]")
    assert opened.execute_script(triangles, "patches") == 0
    click(opened, "input[name=patches]")
    assert opened.execute_script(triangles, "patches") == patches


def test_every_control_is_reached_by_tab_with_a_visible_focus_and_a_name(opened):
    names = check_keyboard(opened)
    assert len(names) == 13  # 2 lists, 5 checkboxes, 2 buttons, 2 pictures, a group, the sequence
    assert names[0].startswith("Color") and "Save PNG" in names and re.match(r"A:[A-Z]{3}:\d+B?, ", names[-1])


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


@pytest.mark.slow
def test_the_page_shows_that_it_loads_until_the_first_picture(browser, page, tmp_path):
    """A page whose scripts have not run yet, as while the viewer starts, has the message in the middle."""
    message = "return getComputedStyle(document.querySelector('main'), '::after').content"
    before = tmp_path / "before.html"
    text = page.read_text(encoding="utf-8")
    before.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.S), encoding="utf-8")
    browser.get(before.as_uri())
    assert "Loading the structure" in browser.execute_script(message)
    browser.get(page.as_uri())
    finish(browser)
    assert "Loading" not in browser.execute_script(message)


@pytest.mark.slow
def test_one_residue_without_edges_is_drawn(browser, structures_dir, tmp_path):
    """Not a page with other residues: Mol* refuses an empty shape of edges, and has no axes for a single residue."""
    residues = clean(load_structure(structures_dir / "1crn.bcif")).select(np.arange(46) == 9)
    page = write_page(make_scene(residues, edges=[component("contact")]), tmp_path / "one.html")
    browser.get(page.as_uri())
    finish(browser)
    assert colored(browser) > 500
    assert "1 residue; chain A" in browser.execute_script("return document.querySelector('header').textContent")
    check_logs(browser)

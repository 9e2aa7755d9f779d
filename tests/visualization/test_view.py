"""``pg.view``: the same scene as the command, from a file, a structure or residues; inline in a notebook."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import protgraph as pg
from protgraph.errors import OptionError


@pytest.fixture(scope="module")
def file(structures_dir: Path) -> Path:
    return structures_dir / "1crn.bcif"


def test_a_file_a_structure_and_residues_give_the_same_scene(file: Path) -> None:
    structure = pg.load_structure(file)
    scenes = [pg.view(p, edges=["contact"], color="sasa") for p in (file, str(file), structure, pg.clean(structure))]
    assert len({(repr(scene), scene.color.values.tobytes(), scene.edges[0].pairs.tobytes()) for scene in scenes}) == 1


def test_a_notebook_shows_the_page_inline(file: Path) -> None:
    frame = pg.view(file)._repr_html_()
    page = html.unescape(re.fullmatch(r'<iframe srcdoc="([^"]*)" [^>]*></iframe>', frame)[1])
    assert "A:THR:1" in page and "<script src=" not in page


def test_predictions_are_the_default_color(file: Path) -> None:
    model = pg.build_model("gcn", pg.tasks.get("secondary_structure").target, seed=0)
    from protgraph.train import Checkpoint

    scene = pg.view(file, checkpoint=Checkpoint(model, "secondary_structure"))
    assert scene.color.name == "predicted" and {c.name for c in scene.shown} == {"p_H", "p_E", "p_C"}


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"color": "chian"}, ("'chian'", "'chain'")),
        ({"color": 3}, ("color", "3")),
        ({"edges": "contact"}, ("edges", "list")),
        ({"edges": ["contct"]}, ("'contact'",)),
        ({"attention": True}, ("checkpoint",)),
    ],
)
def test_wrong_options_are_named(file: Path, options: dict[str, object], parts: tuple[str, ...]) -> None:
    with pytest.raises(pg.ProtgraphError) as caught:
        pg.view(file, **options)
    assert not [part for part in parts if part not in str(caught.value)]


def test_a_protein_of_another_type_is_an_error() -> None:
    with pytest.raises(OptionError, match="view: protein = None"):
        pg.view(None)

"""``view``: the same scene as the command, from a file, a structure or residues; inline in a notebook."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_plugins.view import view

import protgraph as pg
from protgraph.errors import OptionError


@pytest.fixture(scope="module")
def file(structures_dir: Path) -> Path:
    return structures_dir / "1crn.bcif"


def test_a_file_a_structure_and_residues_give_the_same_scene(file: Path) -> None:
    structure = pg.load_structure(file)
    scenes = [view(p, edges=["contact"], color="sasa") for p in (file, str(file), structure, pg.clean(structure))]
    assert len({(repr(scene), scene.color.values.tobytes(), scene.edges[0].pairs.tobytes()) for scene in scenes}) == 1


def test_a_notebook_shows_the_page_inline(file: Path) -> None:
    frame = view(file)._repr_html_()
    page = html.unescape(re.fullmatch(r'<iframe srcdoc="([^"]*)" [^>]*></iframe>', frame)[1])
    assert 'id="molstar">' in page and "<script src=" not in page


def test_predictions_are_the_default_color(file: Path) -> None:
    model = pg.build_model("gcn", pg.tasks.get("secondary_structure").target, seed=0)
    from protgraph.checkpoint import Checkpoint

    scene = view(file, prediction=Checkpoint(model, "secondary_structure"))
    assert scene.color.name == "predicted" and {c.name for c in scene.shown} == {"p_H", "p_E", "p_C"}


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"color": "chian"}, ("'chian'", "'chain'")),
        ({"color": 3}, ("color", "3")),
        ({"edges": "contact"}, ("edges", "list")),
        ({"edges": ["contct"]}, ("'contact'",)),
        ({"attention": True}, ("prediction",)),
    ],
)
def test_wrong_options_are_named(file: Path, options: dict[str, object], parts: tuple[str, ...]) -> None:
    with pytest.raises(pg.ProtgraphError) as caught:
        view(file, **options)
    assert not [part for part in parts if part not in str(caught.value)]


def test_a_graph_has_its_own_edges_and_fields(file: Path) -> None:
    graph = pg.build_graph(pg.load_structure(file), ["contact", "dihedral"])
    scene = view(graph, color="dihedral:4")
    np.testing.assert_array_equal(scene.color.values, graph.dihedral[:, 4].double())
    pairs = {tuple(sorted(pair)) for pair in graph.edge_index.T.tolist()}
    assert {tuple(pair) for pair in scene.edges[0].pairs.tolist()} == pairs
    r, full = scene.residues, pg.clean(pg.load_structure(file))
    assert r.sequence == full.sequence and r.ids == full.ids and len(r.atom_name) == 4 * len(r)
    values = torch.arange(46.0)
    np.testing.assert_array_equal(view(graph, color=values).color.values, values)
    assert "side chains" in scene.notes[0]


@pytest.mark.parametrize(
    ("options", "part"),
    [({"color": "dihedral"}, "dihedral:5"), ({"color": "sasa"}, "'sasa'"), ({"color": [1.0, 2.0]}, "(46,)"),
     ({"prediction": "dna_site"}, "structure"), ({"edges": ["contact"]}, "edges="), ({"label": "a"}, "labels=")],
)  # fmt: skip
def test_wrong_options_of_graphs_are_named(file: Path, options: dict[str, object], part: str) -> None:
    graph = pg.build_graph(pg.load_structure(file), ["contact", "dihedral"])
    with pytest.raises(OptionError) as caught:
        view(graph, **options)
    assert part in str(caught.value)


def test_insertion_codes_of_a_graph_are_kept(file: Path) -> None:
    residues = pg.clean(pg.load_structure(file))
    codes = np.where(np.arange(46) == 3, "B", "")
    graph = pg.build_graph(replace(residues, ins_code=codes, res_id=residues.res_id - 10), ["contact"])
    shown = view(graph).residues
    assert shown.ids[3] == "A:-6B" and shown.res_id[0] == -9


def test_a_protein_of_another_type_is_an_error() -> None:
    with pytest.raises(OptionError, match="view: protein = None"):
        view(None)

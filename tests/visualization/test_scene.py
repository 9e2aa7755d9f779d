"""Colors and edges of a scene equal those of the featurizers."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import MissingCoordinatesError, OptionError
from protgraph.featurize.plan import build_graph
from protgraph.registry.component import component
from protgraph.structure import clean, load_fasta, load_structure
from protgraph.visualization.scene import color_of, edge_set, make_scene


@pytest.fixture(scope="module")
def residues(structures_dir):
    return clean(load_structure(structures_dir / "1jk9.bcif", chains=["A", "B"]))


def test_edges_equal_those_of_the_featurizer_without_duplicates(residues):
    scene = make_scene(residues, edges=[component("contact"), component("knn", k=3)])
    contact, knn = scene.edges
    index = build_graph(residues, ["contact"]).edge_index.numpy()
    assert sorted(map(tuple, contact.pairs.tolist())) == sorted((j, i) for j, i in index.T.tolist() if j < i)
    assert (knn.pairs[:, 0] < knn.pairs[:, 1]).all() and len(knn.pairs) < 3 * len(residues)


def test_an_edge_has_the_larger_width_of_its_two_directions():
    found = edge_set("x", np.array([[3, 1], [1, 3], [2, 2], [0, 1]]), np.array([0.2, 0.7, 1.0, 0.5]))
    assert found.pairs.tolist() == [[0, 1], [1, 3]] and found.width.tolist() == [0.5, 0.7]
    assert edge_set("x", np.zeros((0, 2), np.int64)).pairs.shape == (0, 2)


def test_colors_equal_graph_fields(residues):
    graph = build_graph(residues, ["dihedral", "b_factor"])
    np.testing.assert_array_equal(color_of(residues, "dihedral:4").values, graph.dihedral[:, 4].double())
    np.testing.assert_array_equal(color_of(residues, "b_factor").values, graph.b_factor[:, 0].double())
    assert color_of(residues, "chain").labels == ("A", "B")
    one_hot = color_of(residues, "residue_one_hot")
    assert [one_hot.labels[int(v)] for v in one_hot.values] == list(residues.sequence)


def test_texts_have_identifier_and_values(residues):
    scene = make_scene(residues, color="residue")
    kind, number = residues.res_name[0], residues.res_id[0]
    assert scene.texts[0] == f"<b>A:{kind}:{number}</b><br>residue: {residues.sequence[0]}"


def test_backbones_are_interrupted_at_breaks(structures_dir, shared_data):
    broken = clean(load_structure(shared_data / "robustness" / "missing__gap.pdb"))
    gaps = broken.report.gaps
    assert gaps and sum(np.isnan(t[:, 0]).sum() for t in make_scene(broken).traces.values()) == gaps


@pytest.mark.parametrize(
    ("options", "part"),
    [({"color": "dihedral"}, "dihedral:0 to dihedral:5"), ({"color": "dihedral:9"}, "dihedral:9"),
     ({"color": "edge_rbf"}, "edge_rbf|edge_dist"), ({"edges": [component("dihedral")]}, "'dihedral'.*contact")],
)  # fmt: skip
def test_wrong_options_are_refused(residues, options, part):
    with pytest.raises(ValueError if "edge_rbf" in str(options) else OptionError, match=part):
        make_scene(residues, **options)


def test_a_sequence_without_coordinates_is_refused(tmp_path):
    (tmp_path / "a.fasta").write_text(">A\nACDEF\n")
    with pytest.raises(MissingCoordinatesError, match="A"):
        make_scene(load_fasta(tmp_path / "a.fasta")[0])

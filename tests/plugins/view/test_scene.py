"""Colors and edges of a scene equal those of the featurizers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from biotite.structure.io import pdbx
from protgraph_plugins.view.page import scene_cif
from protgraph_plugins.view.palette import color_codes, scale_of
from protgraph_plugins.view.scene import Color, color_of, edge_set, make_scene

from protgraph.errors import MissingCoordinatesError, OptionError
from protgraph.featurize.plan import build_graph
from protgraph.registry.component import component
from protgraph.structure import clean, load_fasta, load_structure
from protgraph.structure.io import read_residues


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


def test_atoms_of_the_page_are_those_of_the_protein_and_its_ligands(structures_dir, tmp_path):
    bound = clean(load_structure(structures_dir / "1jk9.bcif", chains=["A", "B"]), ligands=True)
    codes = np.where(np.arange(len(bound)) == 7, "C", "")
    bound = replace(bound, ins_code=codes)
    (tmp_path / "a.cif").write_text(scene_cif(bound))
    file = pdbx.CIFFile.read(tmp_path / "a.cif")
    fields = ["label_seq_id", "label_entity_id"]
    atoms = pdbx.get_structure(file, model=1, extra_fields=fields, use_author_fields=True)
    protein = atoms[atoms.label_entity_id == "1"]
    np.testing.assert_allclose(protein.coord, bound.atom_pos, atol=6e-4)
    assert (protein.atom_name == bound.atom_name).all() and (protein.element == bound.atom_element).all()
    assert (protein.label_seq_id.astype(int) - 1 == bound.atom_residue).all()
    assert (protein.res_id == bound.res_id[bound.atom_residue]).all()
    assert (protein.ins_code == codes[bound.atom_residue]).all()
    other = atoms[atoms.label_entity_id != "1"]
    np.testing.assert_allclose(other.coord, bound.ligands.atom_pos, atol=6e-4)
    assert set(other.res_name) == set(bound.ligands.res_name) and len(other)


def test_plddt_has_the_colors_and_bounds_of_the_alphafold_database(structures_dir):
    """Varadi et al. 2022: orange below 50, yellow to 70, light blue to 90, dark blue above."""
    values = np.array([0.0, 49.9, 50.1, 70.0, 70.1, 90.0, 90.1, 100.0, np.nan])
    orange, yellow, light, dark = "#ff7d45", "#ffdb13", "#65cbf3", "#0053d6"
    expected = [orange, orange, yellow, yellow, light, light, dark, dark, "#bdbdbd"]
    assert color_codes(Color("plddt", values, is_plddt=True)) == expected
    crambin = read_residues(structures_dir / "1crn.bcif")
    b_factor = np.linspace(20, 99, len(crambin)).astype(np.float32)
    model = replace(crambin, b_factor=b_factor, predicted=True)
    for name in ("plddt", "b_factor"):
        color = color_of(model, name)
        assert color.is_plddt and color.value_text(0) == "20 pLDDT"
        np.testing.assert_allclose(color.values, b_factor)
        assert [code for _, code, _ in scale_of(color).categories] == [orange, yellow, light, dark]
    assert not color_of(crambin, "b_factor").is_plddt
    assert np.isnan(color_of(crambin, "plddt").values).all()


def test_colors_of_residues_follow_the_scale():
    values = Color("p", np.array([0.0, 1.0, np.nan, 0.5]), limits=(0.0, 1.0))
    assert color_codes(values) == ["#440154", "#fde725", "#bdbdbd", "#21918c"]  # ends and middle of viridis
    assert scale_of(values).missing == 1
    signed = Color("a", np.array([-1.0, 4.0, 0.0]), is_signed=True)
    assert signed.range == (-4.0, 4.0)
    probability = Color("p", np.array([0.0, 1.0, np.nan]), is_probability=True)
    assert color_codes(probability) == ["#ffffcc", "#800026", "#bdbdbd"] and probability.range == (0.0, 1.0)
    kinds = Color("k", np.array([0, 2, 2, np.nan]), ("a", "b", "c"))
    assert [(name, count) for name, _, count in scale_of(kinds).categories] == [("a", 1), ("c", 2)]


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

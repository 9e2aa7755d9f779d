"""What is done to proteins is what it says: against a brute-force relabeling, and on the proteins themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec
from protgraph.structure.descriptors.backbone_geometry import backbone_dihedrals, virtual_cb
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.testing.draw import draw_scene, known_spec
from protgraph.testing.protein_fixtures import copied, degenerate_proteins, make_protein, proteins
from protgraph.testing.rigid_transforms import reflections, rotations
from protgraph.testing.scene import StructureScene

NAMES = ("pos", "aatype", "edge_vec", "edge_dist", "orientation", "edges", "proteins")
SPECS = {**{n: known_spec(n) for n in NAMES}, "h": FieldSpec("h", "node", "4x0e+2x1o")}


@pytest.fixture(scope="module")
def scene():
    return draw_scene(SPECS)


def as_dense(scene):
    """Distances of edges as a matrix, types of nodes: what a graph is, whatever its order."""
    matrix = torch.zeros(sum(scene.sizes), sum(scene.sizes), dtype=torch.float64)
    matrix[scene.edge_index[1], scene.edge_index[0]] = scene.values["edge_dist"][:, 0]
    return matrix


def test_proteins_look_like_proteins():
    for residues in proteins():
        bonds = np.linalg.norm(np.diff(residues.pos, axis=0), axis=1)[linked_to_next(residues)[:-1]]
        assert abs(np.median(bonds) - 3.8) < 0.2
        omega = np.degrees(backbone_dihedrals(residues)[:, 2])
        assert (np.abs(omega[~np.isnan(omega)]) > 150).all()
    assert len(set(proteins()[0].chain)) == 2


def test_no_two_neighbors_are_so_alike_that_rounding_could_swap_them():
    for residues in proteins():
        distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
        assert np.diff(np.sort(distance, 1)[:, 1:], axis=1).min() > 5e-3  # coordinates of 300 Å round to 1.5e-5 Å


def test_no_two_atoms_of_ligands_are_so_alike_that_rounding_could_swap_them():
    for residues in proteins(ligands=True):
        cb, atoms = virtual_cb(residues.backbone), residues.ligands.atom_pos
        distance = np.sort(np.linalg.norm(cb[:, None] - atoms, axis=-1), 1)
        assert np.diff(distance, axis=1).min() > 4e-3 and distance.min() > 2.5
    assert [len(r.ligands.atom_pos) for r in proteins(ligands=True)] == [28, 9]


def test_ligands_move_and_change_with_their_protein():
    scene, motions = StructureScene(proteins(ligands=True)), rotations().first(2)
    for m, copy in enumerate(scene.moved(motions).residues[::2]):
        before, after = ((r.ligands.atom_pos[:, None] - r.pos) for r in (scene.residues[0], copy))
        assert np.abs(after - before @ motions.elements[m].numpy().T).max() < 1e-9
        assert np.abs(copy.pos - scene.residues[0].pos).max() > 50
    last, other = scene.residues[-1].ligands, scene.disturbed().residues[-1].ligands
    assert (last.atom_pos != other.atom_pos).all() and (last.atom_element != other.atom_element).any()
    assert not np.shares_memory(copied(scene.residues[0]).ligands.atom_pos, scene.residues[0].ligands.atom_pos)


def test_proteins_are_the_same_each_time_and_differ_by_seed():
    assert np.array_equal(make_protein((5, 4), seed=6).atom_pos, make_protein((5, 4), seed=6).atom_pos)
    assert not np.allclose(make_protein((5,), seed=6).pos, make_protein((5,), seed=7).pos)


def test_copies_share_no_memory():
    other = copied(proteins()[0])
    assert not np.shares_memory(other.pos, proteins()[0].pos)


@pytest.mark.parametrize("name", degenerate_proteins())
def test_degenerate_proteins_make_valid_graphs(name):
    pg.build_graph(degenerate_proteins()[name], ["knn", "dihedral", "edge_distance"])


def test_fields_of_the_table_are_what_featurizers_give(scene):
    source, target = scene.edge_index
    expected = scene.values["pos"][source] - scene.values["pos"][target]
    torch.testing.assert_close(scene.values["edge_vec"], expected)


def test_motions_move_structures_and_tensors_alike(scene):
    for motions in (rotations(), reflections()):
        moved = scene.moved(motions)
        copies = StructureScene(proteins()).moved(motions)
        torch.testing.assert_close(
            moved.values["pos"], torch.from_numpy(np.concatenate([r.pos for r in copies.residues]))
        )
        source, target = moved.edge_index
        expected = moved.values["pos"][source] - moved.values["pos"][target]
        torch.testing.assert_close(moved.values["edge_vec"], expected)
        assert moved.sizes == scene.sizes * len(motions)
        back = motions.undo(moved.values["h"].view(len(motions), -1, 10), SPECS["h"])
        torch.testing.assert_close(back, scene.values["h"].expand_as(back))


def test_there_are_32_rotations_with_translations_of_100_angstrom_and_more():
    assert len(rotations()) == 32 and (torch.linalg.det(rotations().elements) > 0).all()
    assert (rotations().shifts.norm(dim=1) >= 100).all()
    assert (torch.linalg.det(reflections().elements) < 0).all()


def test_another_order_is_the_same_graph(scene):
    other, order = scene.reordered()
    component = order["node"]
    assert not torch.equal(component, torch.arange(len(component)))
    torch.testing.assert_close(as_dense(other), as_dense(scene)[component][:, component])
    assert (other.edge_index[1].diff() >= 0).all()
    torch.testing.assert_close(other.values["h"], scene.values["h"][component])
    assert torch.equal(scene.batch[component], scene.batch)  # within each protein
    pairs = as_dense(scene)[:19, :19].flatten(), as_dense(scene)[19:, 19:].flatten()
    moved = as_dense(other)[:19, :19].flatten(), as_dense(other)[19:, 19:].flatten()
    torch.testing.assert_close(torch.cat(pairs)[order["pair"]], torch.cat(moved))


def test_another_order_of_edges_is_the_same_graph(scene):
    other, order = scene.edges_reordered()
    assert not torch.equal(order["edge"], torch.arange(scene.edge_index.size(1)))
    assert (other.edge_index[1].diff() >= 0).all()
    torch.testing.assert_close(as_dense(other), as_dense(scene))


def test_singles_are_the_parts_of_the_batch(scene):
    parts = [scene.single(b) for b in range(len(scene.sizes))]
    for name in scene.values:
        torch.testing.assert_close(torch.cat([part.values[name] for part in parts]), scene.values[name])
    torch.testing.assert_close(torch.block_diag(*map(as_dense, parts)), as_dense(scene))


def test_a_change_in_one_protein_changes_no_other(scene):
    other = scene.disturbed()
    first = scene.sizes[0]
    assert torch.equal(other.values["h"][:first], scene.values["h"][:first])
    assert not (other.values["h"][first:] == scene.values["h"][first:]).any()
    edges = sum(scene.rows("edge")[:1])
    assert torch.equal(other.values["edge_vec"][:edges], scene.values["edge_vec"][:edges])


def test_reordered_chains_keep_residues_and_atoms_together():
    scene = StructureScene(proteins())
    other, order = scene.reordered()
    before, after = scene.residues[0], other.residues[0]
    assert after.chain_names == ("B", "A")
    assert np.array_equal(after.pos, before.pos[order["node"][:19].numpy()])
    assert sorted(after.ids) == sorted(before.ids)
    ca = after.atom_name == "CA"
    assert np.array_equal(after.atom_pos[ca], after.pos)

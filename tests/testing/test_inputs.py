"""Test inputs: transforms, permutations and changes do what they state, compared with brute-force relabeling."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec
from protgraph.structure.descriptors.backbone_geometry import backbone_dihedrals, virtual_cb
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.testing.make_inputs import default_spec, make_inputs
from protgraph.testing.protein_fixtures import copy_residues, degenerate_proteins, make_protein, proteins
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.symmetry import reflections, rotations

NAMES = ("pos", "aatype", "edge_vec", "edge_dist", "orientation", "edges", "proteins")
SPECS = {**{n: default_spec(n) for n in NAMES}, "h": FieldSpec("h", "node", "4x0e+2x1o")}


@pytest.fixture(scope="module")
def inputs():
    return make_inputs(SPECS)


def as_dense(inputs):
    """Return the distances of edges as a dense matrix, independent of the order of edges."""
    matrix = torch.zeros(sum(inputs.sizes), sum(inputs.sizes), dtype=torch.float64)
    matrix[inputs.edge_index[1], inputs.edge_index[0]] = inputs.values["edge_dist"][:, 0]
    return matrix


def test_generated_proteins_have_bond_lengths_and_dihedrals_of_proteins():
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
    inputs, transforms = StructureInputs(proteins(ligands=True)), rotations()[:2]
    for m, copy in enumerate(inputs.moved(transforms).residues[::2]):
        before, after = ((r.ligands.atom_pos[:, None] - r.pos) for r in (inputs.residues[0], copy))
        assert np.abs(after - before @ transforms.matrices[m].numpy().T).max() < 1e-9
        assert np.abs(copy.pos - inputs.residues[0].pos).max() > 50
    last, other = inputs.residues[-1].ligands, inputs.last_perturbed().residues[-1].ligands
    assert (last.atom_pos != other.atom_pos).all() and (last.atom_element != other.atom_element).any()
    assert not np.shares_memory(copy_residues(inputs.residues[0]).ligands.atom_pos, inputs.residues[0].ligands.atom_pos)


def test_proteins_are_the_same_each_time_and_differ_by_seed():
    assert np.array_equal(make_protein((5, 4), seed=6).atom_pos, make_protein((5, 4), seed=6).atom_pos)
    assert not np.allclose(make_protein((5,), seed=6).pos, make_protein((5,), seed=7).pos)


def test_copies_share_no_memory():
    other = copy_residues(proteins()[0])
    assert not np.shares_memory(other.pos, proteins()[0].pos)


@pytest.mark.parametrize("name", degenerate_proteins())
def test_degenerate_proteins_make_valid_graphs(name):
    pg.build_graph(degenerate_proteins()[name], ["knn", "dihedral", "edge_distance"])


def test_registered_fields_hold_what_featurizers_compute(inputs):
    source, target = inputs.edge_index
    expected = inputs.values["pos"][source] - inputs.values["pos"][target]
    torch.testing.assert_close(inputs.values["edge_vec"], expected)


def test_transforms_move_structures_and_tensors_alike(inputs):
    for transforms in (rotations(), reflections()):
        moved = inputs.moved(transforms)
        copies = StructureInputs(proteins()).moved(transforms)
        torch.testing.assert_close(
            moved.values["pos"], torch.from_numpy(np.concatenate([r.pos for r in copies.residues]))
        )
        source, target = moved.edge_index
        expected = moved.values["pos"][source] - moved.values["pos"][target]
        torch.testing.assert_close(moved.values["edge_vec"], expected)
        assert moved.sizes == inputs.sizes * len(transforms)
        back = transforms.undo(moved.values["h"].view(len(transforms), -1, 10), SPECS["h"])
        torch.testing.assert_close(back, inputs.values["h"].expand_as(back))


def test_there_are_32_rotations_with_translations_of_100_angstrom_and_more():
    assert len(rotations()) == 32 and (torch.linalg.det(rotations().matrices) > 0).all()
    assert (rotations().translations.norm(dim=1) >= 100).all()
    assert (torch.linalg.det(reflections().matrices) < 0).all()


def test_another_order_is_the_same_graph(inputs):
    other, order = inputs.permuted()
    node = order["node"]
    assert not torch.equal(node, torch.arange(len(node)))
    torch.testing.assert_close(as_dense(other), as_dense(inputs)[node][:, node])
    assert (other.edge_index[1].diff() >= 0).all()
    torch.testing.assert_close(other.values["h"], inputs.values["h"][node])
    assert torch.equal(inputs.batch[node], inputs.batch)  # within each protein
    pairs = as_dense(inputs)[:19, :19].flatten(), as_dense(inputs)[19:, 19:].flatten()
    moved = as_dense(other)[:19, :19].flatten(), as_dense(other)[19:, 19:].flatten()
    torch.testing.assert_close(torch.cat(pairs)[order["pair"]], torch.cat(moved))


def test_another_order_of_edges_is_the_same_graph(inputs):
    other, order = inputs.edges_permuted()
    assert not torch.equal(order["edge"], torch.arange(inputs.edge_index.size(1)))
    assert (other.edge_index[1].diff() >= 0).all()
    torch.testing.assert_close(as_dense(other), as_dense(inputs))


def test_singles_are_the_parts_of_the_batch(inputs):
    parts = [inputs.single(b) for b in range(len(inputs.sizes))]
    for name in inputs.values:
        torch.testing.assert_close(torch.cat([part.values[name] for part in parts]), inputs.values[name])
    torch.testing.assert_close(torch.block_diag(*map(as_dense, parts)), as_dense(inputs))


def test_a_change_in_one_protein_changes_no_other(inputs):
    other = inputs.last_perturbed()
    first = inputs.sizes[0]
    assert torch.equal(other.values["h"][:first], inputs.values["h"][:first])
    assert not (other.values["h"][first:] == inputs.values["h"][first:]).any()
    edges = sum(inputs.rows("edge")[:1])
    assert torch.equal(other.values["edge_vec"][:edges], inputs.values["edge_vec"][:edges])


def test_permuted_chains_keep_residues_and_atoms_together():
    inputs = StructureInputs(proteins())
    other, order = inputs.permuted()
    before, after = inputs.residues[0], other.residues[0]
    assert after.chain_names == ("B", "A")
    assert np.array_equal(after.pos, before.pos[order["node"][:19].numpy()])
    assert sorted(after.ids) == sorted(before.ids)
    ca = after.atom_name == "CA"
    assert np.array_equal(after.atom_pos[ca], after.pos)

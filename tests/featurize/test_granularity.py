"""Graphs of atoms: repeated residue features, edges between atoms, labels on CA, and layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.interactions import covalent_bonds

from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate, labels_on_nodes, residue_nodes
from protgraph.errors import FieldError, OptionError, WiringError
from protgraph.featurize import FeaturePlan, build_graph
from protgraph.model import ModelSpec, build_model
from protgraph.ops import Proteins
from protgraph.registry.component import component
from protgraph.structure.neighbors import search as neighbors

KINDS = ["backbone", "atom"]
PER_RESIDUE = Target("state", "node", "classification", 3)


@pytest.mark.parametrize("kind", KINDS)
def test_residue_features_are_repeated_for_their_atoms(proteins, kind):
    for residues in proteins[:3]:
        ours, whole = (build_graph(residues, ["dihedral", "b_factor", "knn"], node_type=k) for k in (kind, "residue"))
        for name in ("aatype", "chain", "res_id", "seq_pos", "dihedral", "dihedral_mask", "b_factor", "backbone"):
            assert torch.equal(ours[name].nan_to_num(), whole[name][ours.residue].nan_to_num()), name
        assert torch.equal(ours.pos[residue_nodes(ours)], whole.pos)
        assert ours.validate() and not ours.is_ligand.any()


def test_edges_of_atoms_equal_those_of_the_search(proteins):
    residues = proteins[1]
    graph = build_graph(residues, ["knn", component("radius", radius=3.0), "covalent_bond"], node_type="atom")
    kinds = [set(map(tuple, graph.edge_index[:, graph.edge_kind[:, c] == 1].T.tolist())) for c in range(3)]
    assert kinds[0] == set(map(tuple, neighbors.knn(residues.atom_pos, 16).T.tolist()))
    assert kinds[1] == set(map(tuple, neighbors.radius(residues.atom_pos, 3.0).T.tolist()))
    bonds = covalent_bonds(residues).T.tolist()
    assert kinds[2] == {(a, b) for a, b in bonds} | {(b, a) for a, b in bonds}


def test_backbone_nodes_have_the_bonds_with_both_atoms_present(proteins):
    residues = proteins[0]
    graph = build_graph(residues, ["covalent_bond"], node_type="backbone")
    # N–CA, CA–C and C–O of each residue, C–N to the next
    name = [i.rsplit(":")[-1] for i in graph.residue_ids.tolist()]
    names = {frozenset((name[j], name[i])) for j, i in graph.edge_index.T.tolist()}
    assert names == {frozenset(p) for p in (("N", "CA"), ("CA", "C"), ("C", "O"), ("C", "N"))}


@pytest.mark.parametrize("name", ["hydrogen_bond", "dssp_hydrogen_bond", "salt_bridge", "hydrophobic", "disulfide"])
def test_interactions_of_atoms_equal_those_of_their_residues(proteins, name):
    residues = proteins[1]
    atoms, whole = build_graph(residues, [name], node_type="atom"), build_graph(residues, [name])
    assert set(map(tuple, atoms.residue[atoms.edge_index].T.tolist())) == set(map(tuple, whole.edge_index.T.tolist()))


def test_directed_bonds_of_atoms_run_from_donor_to_acceptor(proteins):
    graph = build_graph(proteins[0], [component("dssp_hydrogen_bond", is_directed=True)], node_type="atom")
    source, target = graph.atom_type[graph.edge_index]
    assert (source == 0).all() and (target == 4).all()  # N, O


def test_labels_are_on_ca_only(proteins):
    graph = build_graph(proteins[0], node_type="atom")
    y = torch.arange(len(proteins[0])) % 3
    spread = labels_on_nodes(y, graph, PER_RESIDUE)
    assert torch.equal(spread[residue_nodes(graph)], y) and int((spread >= 0).sum()) == len(y)
    values = labels_on_nodes(y[:, None].float(), graph, Target("x", "node", "regression", 1))
    assert int(values.isnan().sum()) == graph.num_nodes - len(y)
    assert torch.equal(labels_on_nodes(y[:1], graph, Target("z", "graph", "classification", 3)), y[:1])
    with pytest.raises(WiringError, match="pair"):
        labels_on_nodes(y, graph, Target("c", "pair", "multilabel", 1))


def test_a_batch_counts_chains_and_residues(proteins):
    some = [p for p in proteins if len(p.chain_names) > 1][:2] + proteins[:1]
    for kind in ("residue", "atom"):
        graphs = [build_graph(p, node_type=kind) for p in some]
        counted = Proteins.from_graph(collate(graphs))
        first = np.cumsum([0, *(len(p.chain_names) for p in some)])
        expected = torch.cat([g.chain + s for g, s in zip(graphs, first.tolist(), strict=False)])
        assert torch.equal(counted.chains, expected)
    first = np.cumsum([0, *map(len, some)])
    expected = torch.cat([g.residue + s for g, s in zip(graphs, first.tolist(), strict=False)])
    assert torch.equal(counted.residues, expected)
    with pytest.raises(FieldError, match="residue"):
        _ = Proteins.from_graph(build_graph(some[0])).residues


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_layers_run_on_atoms(proteins, kind):
    graph = ModelSpec(
        "atoms",
        features=["dihedral", component("knn", k=8), "edge_distance", "edge_rbf", "edge_direction"],
        layers=[
            component("embed", reads=["aatype", "element", "atom_type"], dim=8),
            component("gat", dim=8, heads=2),
            "egnn",
        ],
        node_type=kind,
    )
    assert ModelSpec.from_dict(graph.to_dict()) == graph
    model = build_model(graph, PER_RESIDUE, seed=0)
    batch = collate([model.plan.precompute(p) for p in proteins[:2]])
    assert model(batch)["logits"].shape == (batch.num_nodes, 3)


def test_featurizers_between_residues_only_raise_when_built():
    for name in ("sequence", "contact", "aromatic"):
        with pytest.raises(WiringError, match=rf"features\[0\] \({name}\)"):
            FeaturePlan([name], node_type="atom")
    with pytest.raises(OptionError, match="'atoms'"):
        FeaturePlan(["knn"], node_type="atoms")


def test_points_of_residues_raise_for_atom_nodes(proteins):
    for name in ("knn", "radius"):
        with pytest.raises(WiringError, match="of='cb'"):
            build_graph(proteins[0], [component(name, of="cb")], node_type="atom")
        with pytest.raises(WiringError, match="separation=4"):
            build_graph(proteins[0], [component(name, separation=4)], node_type="atom")


def test_plans_of_other_nodes_have_other_keys():
    assert len({FeaturePlan(["knn"], node_type=kind).key() for kind in ("residue", *KINDS)}) == 3

"""GearNet relations on 6MRR against torchdrug, and their options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.featurize import build_graph
from protgraph.registry.component import component

RELATIONS = [
    *(component("sequence_offset", offset=k) for k in (-2, -1, 1, 2)),
    component("radius", radius=10.0, separation=5),
    component("knn", k=10, separation=5),
]
THEIRS = (0, 1, 3, 4, 5, 6)  # 2 is the residue itself


def test_relations_equal_torchdrug(shared_reference, proteins):
    with np.load(shared_reference / "gearnet" / "construction_6MRR.npz") as z:
        ca, theirs = z["in/ca"], z["out/edge_list"]
    n = len(ca)
    some = proteins[0].select(np.arange(len(proteins[0])) < n)
    chain = {"chain": np.full(n, "A"), "seq_pos": np.arange(n), "res_id": np.arange(n), "pos": ca}
    graph = build_graph(replace(some, **chain), RELATIONS)
    for column, relation in enumerate(THEIRS):
        ours = graph.edge_index[:, graph.edge_kind[:, column] == 1].T.numpy()
        assert set(map(tuple, ours)) == set(map(tuple, theirs[theirs[:, 2] == relation, :2])), relation
    assert set(map(tuple, theirs[theirs[:, 2] == 2, :2])) == {(i, i) for i in range(n)}


@pytest.mark.parametrize("name", ["knn", "radius"])
def test_a_separation_removes_close_positions_of_the_same_chain_only(proteins, name):
    residues = next(p for p in proteins if len(p.chain_names) > 1)
    everything, apart = build_graph(residues, [name]), build_graph(residues, [component(name, separation=5)])
    chain, seq_pos = residues.chain_number, residues.seq_pos
    j, i = everything.edge_index.numpy()
    kept = (chain[i] != chain[j]) | (abs(seq_pos[i] - seq_pos[j]) >= 5)
    assert np.array_equal(apart.edge_index.numpy(), np.stack([j, i])[:, kept])
    assert (chain[apart.edge_index[0]] != chain[apart.edge_index[1]]).any()
    assert "degree" not in apart or apart.degree is None


@pytest.mark.parametrize("offset", [-3, 1])
def test_an_offset_has_at_most_one_edge_per_residue_from_j_to_j_plus_offset(proteins, offset):
    residues = proteins[3]
    j, i = build_graph(residues, [component("sequence_offset", offset=offset)]).edge_index.numpy()
    assert len(i) > 0 and len(set(i)) == len(i)
    assert (residues.seq_pos[i] - residues.seq_pos[j] == offset).all()
    assert (residues.chain_number[i] == residues.chain_number[j]).all()

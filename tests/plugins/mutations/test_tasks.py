"""Graphs of mutations: nothing of the types that change, antisymmetry and invariance of whole models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.mutations import parse_mutations
from protgraph_plugins.mutations.tasks import DDG_STABILITY, mutation_graph, nearest_residues, select_nodes

import protgraph as pg
from protgraph import registry
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import MutationError
from protgraph.structure import clean, load_structure
from protgraph.structure.residues.alphabet import ALPHABET

MODELS = ("gcn", "mpnn", "egnn", "gvp")


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return clean(load_structure(structures_dir / "1ubq.bcif"))


def substituted(residues, mutations):
    """Return the mutant on the same backbone, without the side chains of the mutated residues."""
    aatype = residues.aatype.copy()
    rows = [residues.ids.index(m.residue) for m in mutations]
    aatype[rows] = [ALPHABET.index(m.mutant) for m in mutations]
    mask = np.isin(np.arange(len(residues)), rows)
    return replace(residues, aatype=aatype).without_sidechains(mask)


def rotated(residues):
    """Return the residues after a rotation and a translation."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn[0] *= np.linalg.det(turn)
    move = {
        name: getattr(residues, name).astype(np.float64) @ turn + [5.0, -3.0, 8.0]
        for name in ("pos", "backbone", "atom_pos")
    }
    return replace(residues, **move)


def exact(residues):
    return replace(
        residues, **{name: getattr(residues, name).astype(np.float64) for name in ("pos", "backbone", "atom_pos")}
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("text", ["A:I44A", "A:I44A+A:K48W+A:G76P"])
def test_models_are_antisymmetric_and_invariant(ubiquitin, float64, name, text):
    mutations = parse_mutations(text)
    model = pg.build_model(name, DDG_STABILITY.target, seed=3).double().eval()
    residues = exact(ubiquitin)
    reverse = tuple(m.reverse() for m in mutations)
    graphs = [
        mutation_graph(residues, mutations, model.plan),
        mutation_graph(substituted(residues, mutations), reverse, model.plan),
        mutation_graph(rotated(residues), mutations, model.plan),
        mutation_graph(residues, [replace(m, mutant=m.wild_type) for m in mutations], model.plan),
    ]
    with torch.no_grad():
        value, back, turned, none = (model(graph)["logits"] for graph in graphs)
    assert value.abs() > 1e-4
    assert torch.equal(back, -value) and torch.equal(none, torch.zeros(1, 1))
    torch.testing.assert_close(turned, value, rtol=1e-6, atol=1e-9)  # fields are float32
    with torch.no_grad():
        together = model(collate(graphs))["logits"]
    torch.testing.assert_close(together, torch.cat([value, back, turned, none]), rtol=1e-9, atol=1e-11)


def test_the_graph_of_the_reverse_differs_in_two_fields_only(ubiquitin):
    plan = pg.build_model("site_mpnn", DDG_STABILITY.target, seed=0).plan
    mutations = parse_mutations("A:I44A")
    there = mutation_graph(ubiquitin, mutations, plan)
    back = mutation_graph(substituted(ubiquitin, mutations), [m.reverse() for m in mutations], plan)
    tensors = [name for name, value in there.to_dict().items() if isinstance(value, torch.Tensor)]
    assert [n for n in tensors if not torch.equal(there[n], back[n])] in (
        ["wild_type", "mutant"],
        ["mutant", "wild_type"],
    )
    there.validate()


def test_nodes_are_the_nearest_residues_with_their_edges(ubiquitin):
    plan = registry.models.get("gcn").plan()
    (row,) = [ubiquitin.ids.index("A:44")]
    graph = mutation_graph(ubiquitin, parse_mutations("A:I44A"), plan, nearest=20)
    distance = np.linalg.norm(ubiquitin.pos - ubiquitin.pos[row], axis=1)
    nearest = np.sort(np.argsort(distance)[:20])
    assert graph.residue_ids.tolist() == [ubiquitin.ids[i] for i in nearest]
    whole = plan.precompute(ubiquitin.without_types(np.arange(len(ubiquitin)) == row))
    pairs = {(int(j), int(i)) for j, i in whole.edge_index.T.tolist() if j in nearest and i in nearest}
    assert {(int(nearest[j]), int(nearest[i])) for j, i in graph.edge_index.T.tolist()} == pairs
    assert int((graph.wild_type < 20).sum()) == 1 and ALPHABET[int(graph.wild_type.min())] == "I"
    assert nearest_residues(ubiquitin, np.array([row, 0]), 20).sum() > 20
    assert select_nodes(whole, torch.ones(76, dtype=torch.bool)).edge_index.equal(whole.edge_index)


def test_a_residue_that_the_structure_lacks_is_an_error(ubiquitin):
    plan = registry.models.get("gcn").plan()
    for text, kind in (("A:V44A", "wild_type"), ("A:I144A", "unknown_residue"), ("B:I44A", "unknown_chain")):
        with pytest.raises(MutationError) as caught:
            mutation_graph(ubiquitin, parse_mutations(text), plan)
        assert caught.value.kind == kind

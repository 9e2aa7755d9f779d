"""Requirements of every registered featurizer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from protgraph import featurizers
from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.protein_graph import collate
from protgraph.featurize import EdgeFeaturizer, Featurizer
from protgraph.featurize.plan import inputs
from protgraph.testing.ligand_fixtures import with_ligands

NAMES = sorted(featurizers.names())
SHIFT = 100.0


@pytest.fixture(scope="module")
def proteins(proteins):
    """Return the committed entries for featurizers that read ligands or another chain.

    They get artificial molecules, and entries of one chain are cut in two at the middle.
    """
    return [with_ligands(_of_two_chains(residues), 30, seed=0) for residues in proteins]


def _of_two_chains(residues):
    if len(residues.chain_names) > 1:
        return residues
    first = np.arange(len(residues)) < len(residues) // 2
    return replace(residues, chain=np.where(first, residues.chain, residues.chain_names[0] + "2"))


def test_the_built_in_featurizers_are_registered():
    assert len(NAMES) >= 15
    assert all(issubclass(featurizers.get(name), Featurizer) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_writes_exactly_its_fields_in_their_declared_form(proteins, plan_of, name):
    plan = plan_of(name)
    for residues in proteins[:4]:
        graph = plan.featurize(plan.precompute(residues))
        assert graph.validate()
        for field in featurizers.get(name).writes:
            if field != "edge_index":
                assert tuple(graph[field].shape[1:]) == plan.fields[field].trailing_shape, field
                # these entries are measured, and no antibodies
                is_zero = name in ("plddt", "variable_domain")
                assert graph[field].float().abs().max() > 0 or is_zero, field


@pytest.mark.parametrize("name", [n for n in NAMES if not issubclass(featurizers.get(n), EdgeFeaturizer)])
@pytest.mark.parametrize("mirror", [False, True])
def test_transforms_by_its_irreps(float64, proteins, move, plan_of, name, mirror):
    stated = getattr(featurizers.get(name), "conformity", Conformity())
    if known := stated.expected_failures.get("rotation"):
        pytest.skip(f"a strict expected failure of its conformity check: {known}")
    stored = 1e-5  # stored fields are float32
    limit = stored if stated.tolerance == Conformity().tolerance else max(stored, stated.tolerance)
    plan = plan_of(name)
    q = Rotation.random(random_state=5).as_matrix() * (-1 if mirror else 1)
    for residues in proteins[:3]:
        before = plan.featurize(plan.precompute(move(residues, np.eye(3))))
        after = plan.featurize(plan.precompute(move(residues, q.T, SHIFT)))  # row vectors: x @ qᵀ = (q x)ᵀ
        for field in featurizers.get(name).writes:
            spec = plan.fields[field]
            if mirror and spec.chiral:
                continue
            was, now = (graph[field].double().reshape(len(graph[field]), -1) for graph in (before, after))
            if spec.irreps == "point":
                expected = (was.unflatten(1, (-1, 3)) @ torch.from_numpy(q).T + SHIFT).flatten(1)
            else:
                expected = was @ spec.o3.D_from_matrix(torch.from_numpy(q)).T
            error = (now - expected).abs().max()
            assert error <= limit * max(1.0, float(expected.abs().max())), field


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_equals_its_proteins(proteins, plan_of, name):
    plan = plan_of(name)
    stored = [plan.precompute(residues) for residues in proteins[:5]]
    singles = [plan.expand(inputs(graph)) for graph in stored]
    batched = plan.expand(inputs(collate(stored)))
    for field in featurizers.get(name).writes:
        if field != "edge_index":
            assert torch.equal(batched[field], torch.cat([f[field] for f in singles])), field


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_proteins_stay_finite(proteins, plan_of, name):
    plan = plan_of(name)
    some = proteins[0].select(np.arange(len(proteins[0])) < 12)
    backbone = some.backbone.copy()
    backbone[3:6, [0, 2, 3]] = np.nan
    collapsed = {key: np.ones_like(getattr(some, key)) for key in ("pos", "backbone", "atom_pos")}
    for residues in (some.select(np.arange(12) == 0), replace(some, backbone=backbone), replace(some, **collapsed)):
        graph = plan.featurize(plan.precompute(residues))
        assert graph.validate()  # finite, right shapes
        assert graph.num_nodes == len(residues)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_changed(proteins, plan_of, name):
    residues = proteins[1]
    before = {k: getattr(residues, k).copy() for k in ("aatype", "pos", "backbone", "b_factor", "seq_pos", "atom_pos")}
    graph = plan_of(name).precompute(residues)
    kept = {k: v.clone() for k, v in graph.items() if isinstance(v, torch.Tensor)}
    plan_of(name).expand(inputs(graph))
    assert all(np.array_equal(v, getattr(residues, k), equal_nan=v.dtype.kind == "f") for k, v in before.items())
    assert all(torch.equal(v.nan_to_num(), graph[k].nan_to_num()) for k, v in kept.items())

"""Structure denoising: noise before anything else sees a structure; RMSD is biotite's, lDDT its definition."""

from __future__ import annotations

from dataclasses import replace

import biotite.structure as struc
import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, LabelError, WiringError
from protgraph.featurize.plan import FeaturePlan
from protgraph.model import ModelSpec, build_model
from protgraph.registry.component import component
from protgraph.structure import Residues, clean, load_structure
from protgraph.task import InputMasking, SplitPredictions, builtin, default_task, squared_error

DENOISING = builtin.STRUCTURE_DENOISING


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1ubq.bcif"))


def test_noise_moves_every_atom_by_sigma_in_each_direction_and_keeps_the_arrays_together(residues):
    seen = residues.with_noise(0.5, seed=3)
    moved = seen.atom_pos - residues.atom_pos
    assert np.allclose(moved.std(0), 0.5, atol=0.05) and np.allclose(moved.mean(0), 0, atol=0.05)
    assert seen.pos.dtype == residues.pos.dtype and seen.backbone.dtype == residues.backbone.dtype
    assert np.array_equal(seen.pos, seen.backbone[:, 1])
    for column, name in enumerate(("N", "CA", "C", "O")):
        own = seen.atom_name == name
        assert np.array_equal(seen.atom_pos[own], seen.backbone[seen.atom_residue[own], column])
    assert abs(np.corrcoef(moved[:-1, 0], moved[1:, 0])[0, 1]) < 0.1


def test_noise_is_the_same_for_one_seed_and_leaves_gaps_and_the_original_alone(residues):
    backbone = residues.backbone.copy()
    backbone[3, 0] = np.nan
    some = replace(residues, backbone=backbone)
    before = some.atom_pos.copy()
    a, b, c = some.with_noise(0.5, seed=1), some.with_noise(0.5, seed=1), some.with_noise(0.5, seed=2)
    assert np.array_equal(a.atom_pos, b.atom_pos) and not np.array_equal(a.atom_pos, c.atom_pos)
    assert np.array_equal(a.backbone_mask, some.backbone_mask)
    assert np.array_equal(some.atom_pos, before)


def test_labels_are_vectors_from_noisy_to_true_positions(residues):
    seen = DENOISING.inputs.visible(residues, "1ubq_A")
    y = DENOISING.labels(residues, seen=seen)
    assert y.shape == (len(residues), 1, 3)
    assert np.allclose(seen.pos + y[:, 0], residues.pos, atol=1e-5)
    assert np.sqrt((y**2).sum(2).mean()) == pytest.approx(0.5 * 3**0.5, rel=0.1)
    assert np.array_equal(seen.pos, DENOISING.inputs.visible(residues, "1ubq_A").pos)
    assert not np.array_equal(seen.pos, DENOISING.inputs.visible(residues, "1ubq_B").pos)


def test_noise_has_the_standard_deviation_of_the_task(residues):
    seen = InputMasking(noise=2.0).visible(residues, "x")
    assert (seen.pos - residues.pos).std() == pytest.approx(2.0, rel=0.1)
    with pytest.raises(DatasetError, match="-1.0"):
        InputMasking(noise=-1.0)


def test_edges_and_features_are_those_of_the_noisy_structure(residues):
    seen = InputMasking(noise=2.0).visible(residues, "x")
    plan = FeaturePlan(["dihedral", component("knn", k=8)])
    clean_graph, noisy = plan.precompute(residues), plan.precompute(seen)
    assert np.array_equal(noisy.pos.numpy(), seen.pos)
    assert not torch.equal(noisy.edge_index, clean_graph.edge_index)
    assert not torch.equal(noisy.dihedral, clean_graph.dihedral)


def test_labels_without_the_noisy_structure_are_an_error(residues):
    with pytest.raises(LabelError, match="structure_denoising"):
        DENOISING.labels(residues)


def outcome(residues, error, sizes=(30, 46), seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randn(len(residues), 1, 3, generator=g)
    pos = torch.from_numpy(residues.pos) - y[:, 0]
    chain = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return SplitPredictions(y + error * torch.randn(y.shape, generator=g), y, chain, pos=pos)


def test_a_perfect_prediction_has_rmsd_0_and_lddt_1(residues):
    o = outcome(residues, 0.0)
    assert registry.metrics.get("rmsd")(o) == 0 and registry.metrics.get("lddt")(o) == 1


def test_rmsd_equals_biotites_of_the_positions(residues):
    o = outcome(residues, 1.0)
    predicted, truth = ((o.pos + x[:, 0]).numpy() for x in (o.logits, o.y))
    expected = np.mean([struc.rmsd(truth[rows], predicted[rows]) for rows in (slice(30), slice(30, None))])
    assert registry.metrics.get("rmsd")(o) == pytest.approx(expected, rel=1e-5)


def test_lddt_equals_the_definition(residues):
    o = outcome(residues, 1.0)
    predicted, truth = ((o.pos + x[:, 0]).double() for x in (o.logits, o.y))
    values = []
    for rows in (slice(30), slice(30, None)):
        far = torch.cdist(truth[rows], truth[rows])
        change = (torch.cdist(predicted[rows], predicted[rows]) - far).abs()
        pairs = (far < 15) & ~torch.eye(len(far), dtype=torch.bool)
        values.append(sum((change[pairs] < cut).double().mean() for cut in (0.5, 1, 2, 4)) / 4)
    assert registry.metrics.get("lddt")(o) == pytest.approx(float(torch.stack(values).mean()), abs=1e-3)


def test_unknown_residues_do_not_change_metrics(residues):
    o = outcome(residues, 1.0)
    y = o.y.clone()
    y[5:20] = torch.nan
    kept = torch.ones(len(y), dtype=torch.bool)
    kept[5:20] = False
    fewer = SplitPredictions(o.logits[kept], o.y[kept], o.chain[kept], pos=o.pos[kept])
    some = replace(o, y=y)
    assert registry.metrics.get("rmsd")(some) == pytest.approx(registry.metrics.get("rmsd")(fewer))
    assert registry.metrics.get("lddt")(some) == pytest.approx(registry.metrics.get("lddt")(fewer))
    assert squared_error(o.logits, y) == pytest.approx(float(squared_error(fewer.logits, fewer.y)))


def test_user_vectors_have_a_default_task():
    task = default_task(Target("push", "node", "vectors", 1))
    assert task.monitor == "rmsd" and task.mode == "min"


def test_a_model_without_vectors_is_an_error():
    scalars = ModelSpec("scalars", layers=[component("embed", reads=["aatype"])])
    with pytest.raises(WiringError, match="'h'"):
        build_model(scalars, DENOISING.target)

"""Ensembles in one checkpoint: mean logits, storage, warnings about inputs, and uses that need one model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open

from protgraph.checkpoint import load_checkpoint, save_checkpoint
from protgraph.checkpoint.checkpoint_file import round_to_half
from protgraph.checkpoint.training_set import TrainingSetSummary
from protgraph.errors import CheckpointError
from protgraph.inference import embed, predict
from protgraph.model import build_model
from protgraph.structure import clean, load_structure


@pytest.fixture
def members(trained, tiny):
    return [trained.model, *(build_model(tiny, trained.model.target, seed=seed).eval() for seed in (1, 2))]


@pytest.fixture
def ensemble(trained, members):
    return replace(trained.checkpoint(), others=tuple(members[1:]))


def test_predictions_are_of_the_mean_logits(ensemble, members, structures_dir, tmp_path) -> None:
    loaded = load_checkpoint(save_checkpoint(tmp_path / "e.safetensors", ensemble))
    residues = clean(load_structure(structures_dir / "1orc.bcif"))
    with torch.no_grad():
        logits = [m(m.plan.precompute(residues))["logits"] for m in members]
    expected = torch.stack(logits).mean(0).softmax(1)
    rows = predict(loaded, structures_dir / "1orc.bcif", device="cpu").rows
    torch.testing.assert_close(torch.tensor([row[6:] for row in rows]), expected, atol=1e-6, rtol=1e-5)
    assert not torch.allclose(expected, logits[0].softmax(1), atol=1e-3)


def test_every_member_round_trips(ensemble, tmp_path) -> None:
    loaded = load_checkpoint(save_checkpoint(tmp_path / "e.safetensors", ensemble))
    for before, after in zip(ensemble.members, loaded.members, strict=True):
        assert after.spec == before.spec and not after.training
        for (name, one), (other, two) in zip(before.state_dict().items(), after.state_dict().items(), strict=True):
            assert name == other and torch.equal(one, two)


def test_rounded_weights_are_stored_in_half_the_bytes(ensemble, tmp_path) -> None:
    whole = save_checkpoint(tmp_path / "whole.safetensors", ensemble)
    for member in ensemble.others:
        round_to_half(member)
    before = [{k: v.clone() for k, v in m.state_dict().items()} for m in ensemble.others]
    half = save_checkpoint(tmp_path / "half.safetensors", ensemble)
    with safe_open(half, framework="pt") as file:
        assert file.get_tensor("member/1/layers.0.linear.weight").dtype == torch.float16
    after = [m.state_dict() for m in load_checkpoint(half).others]
    assert all(
        torch.equal(b[k], a[k]) and a[k].dtype == b[k].dtype for b, a in zip(before, after, strict=True) for k in b
    )
    assert half.stat().st_size < whole.stat().st_size


def test_weights_beyond_float16_are_an_error(members) -> None:
    with torch.no_grad():
        members[1].layers[0].linear.weight[0, 0] = 1e6
    with pytest.raises(OverflowError, match=r"layers\.0\.linear\.weight"):
        round_to_half(members[1])


def test_members_with_other_featurizers_are_an_error(trained, tiny) -> None:
    other = build_model(replace(tiny, features=["dihedral", "knn"]), trained.model.target, seed=1)
    with pytest.raises(CheckpointError, match="tiny"):
        replace(trained.checkpoint(), others=(other,))


def test_uses_of_one_model_refuse_an_ensemble_and_take_a_member(ensemble) -> None:
    with pytest.raises(CheckpointError, match="3 members"):
        ensemble.single_model("design")
    assert ensemble.member(1).single_model("design") is ensemble.members[1]
    with pytest.raises(CheckpointError, match=r"\[3\]"):
        ensemble.member(3)


def test_embeddings_of_members_are_side_by_side(ensemble, structures_dir) -> None:
    whole = embed(ensemble, structures_dir / "1orc.bcif", device="cpu")
    alone = [embed(ensemble.member(i), structures_dir / "1orc.bcif", device="cpu") for i in range(3)]
    np.testing.assert_allclose(whole.node, np.concatenate([e.node for e in alone], 1), atol=1e-5)


def test_structures_unlike_the_training_set_are_reported(ensemble, structures_dir) -> None:
    width = 2 * ensemble.model.fields["h"].dim
    summary = TrainingSetSummary(
        torch.zeros(20, width), torch.full((width,), 1e3), torch.ones(width), torch.tensor(1.0)
    )
    result = predict(replace(ensemble, training_set=summary), structures_dir / "1orc.bcif", device="cpu")
    assert [w.kind for w in result.warnings] == ["unlike_training"]

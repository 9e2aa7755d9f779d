"""Input standardization: statistics against NumPy, recovery of a feature in Å, checkpoints, symmetry and devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph.checkpoint import load_checkpoint
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.inference import predict
from protgraph.labels.loading import resolve_task
from protgraph.labels.preparation import prepare
from protgraph.model import ModelSpec, build_model, standardized_inputs
from protgraph.nn.layers.embed import Embed
from protgraph.nn.standardize import Standardize
from protgraph.registry.component import component
from protgraph.testing.symmetry import rotations
from protgraph.train import FitConfig, fit
from protgraph.train.run_setup import _Statistics, standardize_inputs
from tests.train.conftest import read

register_field(FieldSpec("planted", "node", "4x0e", unit="Å", doc="distance from the centroid; constant; 0/1; rare"))


class Planted(StructureFeaturizer):
    """Distance of CA from the centroid × factor, a constant, a mask, and a column of 0 with one value of 0.03."""

    writes = ("planted",)

    def __init__(self, *, factor: float = 1.0, constant: float = 25.0) -> None:
        super().__init__()
        self.factor, self.constant = factor, constant

    def __call__(self, residues):
        pos = residues.pos.astype(np.float64)
        far = np.linalg.norm(pos - pos.mean(0), axis=1) * self.factor
        rare = np.where(np.arange(len(far)) == 0, 0.03, 0.0)
        columns = [far, np.full(len(far), self.constant), np.arange(len(far)) % 2, rare]
        return {"planted": np.stack(columns, 1).astype(np.float32)}


@pytest.fixture(scope="module", autouse=True)
def _registered():
    registry.featurizers.register("planted")(Planted)
    yield
    registry.featurizers.unregister("planted")


def planted(**options: float) -> ModelSpec:
    """Return a graph convolution on the planted features."""
    block = [component("gcn", dim=32, writes={"h": "m"}), component("residual", reads={"update": "m"})]
    embed = component("embed", reads=["aatype", "dihedral", "planted"], dim=32)
    features = ["dihedral", component("planted", **options), component("knn", k=8)]
    return ModelSpec("planted", features=features, layers=[embed, *block])


def fitted(dataset, spec, name="helix"):
    task = resolve_task(name, dataset)
    model = build_model(spec, task.target, seed=0)
    prepared = prepare(dataset, task, model.plan)
    standardize_inputs(model, task, prepared.splits["train"])
    return model, prepared


def test_features_that_a_layer_computes_are_not_standardized(small):
    first = component("embed", reads=["planted"], dim=4, writes={"h": "middle"})
    second = component("embed", reads=["middle", "planted"], dim=8)
    model, _ = fitted(small, ModelSpec("two", features=["planted"], layers=[first, second]))
    standardize = model.layers[1].standardize
    computed, read = standardize.columns["middle"], standardize.columns["planted"]
    assert (standardize.mean[computed] == 0).all() and (standardize.scale[computed] == 1).all()
    assert standardize.mean[read][0] > 1


@pytest.mark.slow
def test_statistics_are_those_of_the_training_split_only(small):
    model, prepared = fitted(small, planted())
    standardize = model.layers[0].standardize
    far = np.concatenate([graph.planted[:, 0].double().numpy() for graph in prepared.splits["train"]])
    column = standardize.columns["planted"].start
    np.testing.assert_allclose(standardize.mean[column], far.mean(), rtol=1e-5)
    np.testing.assert_allclose(standardize.scale[column], far.std(), rtol=1e-5)
    other = np.concatenate([graph.planted[:, 0].numpy() for graph in prepared.splits["test"]])
    assert abs(other.mean() - far.mean()) > 0.1  # the splits differ


@pytest.mark.slow
def test_binary_columns_are_left_and_constant_ones_become_zero(small):
    model, prepared = fitted(small, planted())
    standardize = model.layers[0].standardize
    assert standardized_inputs(model) == ["dihedral", "planted[0,1,3]"]
    part = standardize.columns["planted"]
    assert standardize.scale[part][1:].tolist() == [1.0, 1.0, 1.0]
    graph = prepared.splits["test"][0]
    x = standardize(torch.cat([graph.dihedral, graph.planted], 1))[:, part]
    assert x[:, 1].tolist() == [0.0] * len(x)
    assert torch.equal(x[:, 2], graph.planted[:, 2])
    assert float(x[:, 3].max()) < 0.03  # not amplified


def test_odd_scalars_are_scaled_but_not_shifted(small):
    model, prepared = fitted(small, planted())
    standardize = model.layers[0].standardize
    sines = torch.cat([graph.dihedral[:, 3:] for graph in prepared.splits["train"]]).double()
    odd = slice(standardize.columns["dihedral"].start + 3, standardize.columns["dihedral"].stop)
    assert standardize.mean[odd].tolist() == [0.0] * 3
    rms = sines.square().mean(0).sqrt()
    torch.testing.assert_close(
        standardize.scale[odd].double(), torch.maximum(rms, sines.abs().amax(0) / 10), rtol=1e-5, atol=0
    )


def test_rows_of_zeros_are_left_out_of_the_statistics():
    spec, known = FieldSpec("x", "node", "2x0e"), torch.tensor([[10.0, 0.0], [30.0, 4.0]])
    one, other = _Statistics(), _Statistics()
    one.add(known)
    other.add(torch.cat([known, torch.zeros(3, 2)]))
    assert one.mean_and_scale(spec)[0].tolist() == other.mean_and_scale(spec)[0].tolist() == [20.0, 2.0]


def test_unknown_values_are_left_out_of_the_statistics():
    spec, known = FieldSpec("x", "node", "2x0e"), torch.tensor([[10.0, 2.0], [30.0, 4.0]])
    one, other = _Statistics(), _Statistics()
    one.add(known)
    other.add(torch.cat([known, torch.full((3, 2), torch.nan)]))
    assert all(torch.equal(a, b) for a, b in zip(one.mean_and_scale(spec), other.mean_and_scale(spec), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_feature_in_angstrom_does_not_hide_the_others(seed):
    config = FitConfig(epochs=1, seed=seed, device="cpu")
    raw, small, standardized = (
        fit(
            planted(factor=f, constant=0.0), "pdb_core", "secondary_structure", config=replace(config, standardize=on)
        ).metrics["val"]
        for f, on in ((1.0, False), (0.1, False), (1.0, True))
    )
    assert standardized["accuracy"] > small["accuracy"] > raw["accuracy"] + 0.05


def test_without_standardization_the_model_is_the_same_bits(small, tiny, quick):
    result = fit(tiny, small, "helix", config=replace(quick, epochs=1, standardize=False))
    assert standardized_inputs(result.model) == []
    assert not any("standardize" in name for name in result.model.state_dict())


def test_a_checkpoint_keeps_the_constants(small, quick, structures_dir, tmp_path):
    result = fit(planted(), small, "helix", config=replace(quick, epochs=1))
    loaded = load_checkpoint(result.save(tmp_path / "m.safetensors"))
    assert loaded.trained["standardized"] == standardized_inputs(loaded.model) == ["dihedral", "planted[0,1,3]"]
    before, after = (m.layers[0].standardize for m in (result.model, loaded.model))
    assert torch.equal(before.mean, after.mean) and torch.equal(before.scale, after.scale)
    files = [structures_dir / "1orc.bcif"]
    assert predict(loaded, files).rows == predict(result.checkpoint(), files).rows
    assert "planted[0,1,3]" in result.summary()


def test_loading_a_state_without_constants_makes_the_identity():
    specs = {"x": FieldSpec("x", "node", "3x0e")}
    plain, changed = Embed(specs, dim=4), Embed(specs, dim=4)
    changed.standardize.set_columns(torch.ones(3), 2 * torch.ones(3))
    changed.load_state_dict(plain.state_dict())
    x = torch.randn(5, 3)
    assert changed.standardize.scale is None
    assert torch.equal(plain({"x": x})["h"], changed({"x": x})["h"])
    changed.standardize.set_columns(torch.ones(3), 2 * torch.ones(3))
    plain.load_state_dict(changed.state_dict())
    assert torch.equal(plain({"x": x})["h"], changed({"x": x})["h"])


@pytest.mark.parametrize("name", ["tfn", "hybrid"])
def test_standardized_models_stay_invariant_in_float64(small, structures_dir, name):
    model, _ = fitted(small, registry.models.get(name))
    model = model.double().eval()
    residues = read(structures_dir / "1crn.bcif")
    wide = {key: getattr(residues, key).astype(np.float64) for key in ("pos", "backbone", "atom_pos")}
    moved = [replace(residues, **wide), *rotations()[:2].move(replace(residues, **wide))]
    with torch.no_grad():
        logits, *others = (model(model.plan.precompute(one))["logits"] for one in moved)
    assert standardized_inputs(model)
    assert all((one - logits).abs().max() <= 1e-10 * logits.abs().max() for one in others)


def test_a_standardized_layer_runs_on_the_meta_device():
    standardize = Standardize({"x": 2})
    standardize.set_columns(torch.ones(2), torch.full((2,), 2.0))
    assert standardize.to("meta")(torch.zeros(7, 2, device="meta")).shape == (7, 2)

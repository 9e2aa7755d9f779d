"""Structure denoising: noisy graphs with displacements as labels, training and prediction."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from protgraph.featurize.plan import FeaturePlan
from protgraph.inference import predict
from protgraph.labels.preparation import prepare
from protgraph.model import ModelSpec
from protgraph.registry.component import component
from protgraph.task import InputMasking
from protgraph.task.builtin import STRUCTURE_DENOISING
from protgraph.train import FitConfig, fit

CONFIG = FitConfig(epochs=20, lr=1e-2, batch_residues=256, device="cpu")
MODEL = ModelSpec(
    "small",
    features=["dihedral", "orientation", "sidechain_direction", component("knn", k=8), "edge_vector"],
    layers=[
        component("embed", reads=["aatype", "dihedral"], dim=16),
        component("irreps_linear", irreps="16x0e+8x1o", reads=["h", "orientation", "sidechain_direction"]),
        component("tfn", irreps="16x0e+8x1o"),
    ],
)


@pytest.fixture
def dataset(small):
    """The small dataset with the task structure_denoising."""
    card = small.card
    denoising = dataclasses.replace(next(iter(card.tasks.values())), target=STRUCTURE_DENOISING.target)
    small.card = dataclasses.replace(card, tasks={**card.tasks, "structure_denoising": denoising})
    small.labels = lambda task, example: None
    yield small
    small.card = card
    del small.labels


@pytest.mark.slow
def test_labels_of_noisy_graphs_restore_the_positions(dataset, tmp_path):
    plan = FeaturePlan(MODEL.features)
    store = prepare(dataset, STRUCTURE_DENOISING, plan, cache=tmp_path).splits["train"]
    example = dataset.examples("structure_denoising", "train")[0]
    graph, residues = store[0], dataset.read(example)
    assert graph.y.shape == (len(residues), 1, 3)
    assert np.allclose(graph.pos + graph.y[:, 0], residues.pos, atol=1e-5)
    assert float((graph.pos - torch.from_numpy(residues.pos)).std()) == pytest.approx(0.5, abs=0.1)
    stronger = prepare(
        dataset, dataclasses.replace(STRUCTURE_DENOISING, inputs=InputMasking(noise=1.0)), plan, cache=tmp_path
    )
    assert float(stronger.splits["train"][0].y.std()) == pytest.approx(1.0, abs=0.2)


@pytest.mark.slow
def test_a_trained_model_reduces_the_noise_and_predicts_three_values_per_residue(dataset, tmp_path, structures_dir):
    result = fit(MODEL, dataset, STRUCTURE_DENOISING, config=CONFIG, cache=tmp_path)
    unchanged = 0.5 * 3**0.5
    assert result.metrics["val"]["rmsd"] < 0.95 * unchanged
    assert 0 < result.metrics["val"]["lddt"] <= 1
    predictions = predict(result.checkpoint(), [structures_dir / "1ubq.bcif"])
    assert predictions.columns[-3:] == ("CA_x", "CA_y", "CA_z")
    assert len(predictions.rows) == 76 and all(isinstance(x, float) for x in predictions.rows[0][-3:])

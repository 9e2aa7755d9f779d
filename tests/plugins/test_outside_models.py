"""Models that an outside package writes with public names in 60 lines or fewer: they pass the suite and train."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import torch

import protgraph as pg
from protgraph.task import default_task
from tests.plugins.outside import (
    dimenet,
    energy_and_force,
    mixture,
    near_and_far,
    painn,
    recurrent,
    surface,
    two_levels,
)

MODULES = [painn, dimenet, near_and_far, recurrent, surface, two_levels]
WITH_HEADS = [*MODULES, mixture, energy_and_force]
SMALL = ("1crn", "2erl", "1ajj", "1vii")


@pytest.fixture(scope="module")
def dataset(structures_dir, tmp_path_factory) -> pg.Dataset:
    """Four small structures."""
    folder = tmp_path_factory.mktemp("outside")
    for name in SMALL:
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    return pg.load_dataset(folder, task="secondary_structure")


def name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


@pytest.mark.parametrize("module", WITH_HEADS, ids=name_of)
def test_it_has_at_most_60_lines(module):
    assert len(Path(module.__file__).read_text().splitlines()) <= 60


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_it_trains(module, dataset):
    config = pg.FitConfig(epochs=4, lr=1e-2, device="cpu")
    result = pg.fit(module.MODEL, dataset, "secondary_structure", config=config)
    losses = [row["train_loss"] for row in result.history]
    assert losses[-1] < losses[0]


def test_the_mixture_learns_two_values_that_its_mean_cannot(dataset):
    """Labels are -1 or 1 at random: the best mean is 0, and the mixture finds both values."""
    generator = torch.Generator().manual_seed(0)
    graphs, plan = [], pg.featurize.FeaturePlan(mixture.MODEL.features)
    for name in SMALL:
        path = next(e.path for e in dataset.examples("secondary_structure") if name in str(e.path))
        graph = plan.precompute(pg.clean(pg.load_structure(path)))
        graph.y = (torch.randint(0, 2, (graph.num_nodes, 1), generator=generator) * 2 - 1).float()
        graph.y_level = "node"
        graphs.append(graph)
    target = pg.Target("two", "node", "regression", 1, head="outside_mixture")
    model = pg.build_model(mixture.MODEL, target, seed=0)
    batch = pg.data.collate(graphs)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    first = float(model.head.training_loss(model(batch), batch.y))
    for _ in range(150):
        loss = model.head.training_loss(model(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    normal = 0.5 * math.log(2 * math.pi * math.e)  # the best loss of one normal distribution, of variance 1
    assert float(loss) < normal - 0.3 < first
    assert float(model(batch)["logits"].abs().mean()) < 0.6


def test_training_uses_the_loss_of_the_head(dataset, monkeypatch):
    """The training loss in the history is that of the head, and the validation loss that of the task."""
    graphs, plan = [], pg.featurize.FeaturePlan(mixture.MODEL.features)
    for example, split in zip(dataset.examples("secondary_structure"), ("train", "train", "val", "test"), strict=True):
        graph = plan.precompute(pg.clean(pg.load_structure(example.path)))
        graph.y, graph.y_level, graph.split = torch.ones(graph.num_nodes, 1), "node", split
        graphs.append(graph)
    monkeypatch.setattr(mixture.Mixture, "training_loss", lambda self, outputs, y: outputs["weight"].sum() * 0 + 7)
    target = pg.Target("value", "node", "regression", 1, head="outside_mixture")
    result = pg.fit(mixture.MODEL, graphs, default_task(target), config=pg.FitConfig(epochs=1, device="cpu"))
    (row,) = result.history
    assert row["train_loss"] == 7 and row["val_loss"] != 7


def test_a_scalar_and_a_vector_train_together(dataset):
    config = pg.FitConfig(epochs=6, lr=1e-2, device="cpu")
    result = pg.fit(energy_and_force.MODEL, dataset, energy_and_force.TASK, config=config)
    losses = [row["train_loss"] for row in result.history]
    assert losses[-1] < losses[0]
    scale, shift = result.model.head.scale, result.model.head.shift
    assert scale[1] == scale[2] == scale[3] and not torch.isclose(scale[0], scale[1])
    assert shift[0] > 0 and shift[1:].abs().max() == 0
    assert {"rms_error", "rms_error/1x0e", "rms_error/1x1o"} <= result.history[0].keys()


@pg.testing.parametrize_with_checks([component for module in WITH_HEADS for component in module.CHECKED])
def test_conformity(component, check):
    check(component)

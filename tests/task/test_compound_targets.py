"""Targets whose values transform: a number and a vector of one head."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.errors import DatasetError, WiringError
from protgraph.task import SplitPredictions, default_task
from protgraph.task.losses import label_counts, label_prior, label_std, squared_error
from protgraph.task.metrics import rms_error
from protgraph.testing.symmetry import act, random_rotations
from tests.plugins.outside.energy_and_force import MODEL, TARGET, TASK

LABELS = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 1.0, 5.0, 0.1]) + 2


@pytest.mark.parametrize(
    "kind, size, irreps",
    [("regression", 3, "1x0e+1x1o"), ("multilabel", 4, "1x0e+1x1o"), ("regression", 4, "1x0f")],
)
def test_irreps_are_those_of_the_values_of_a_regression(kind, size, irreps):
    with pytest.raises(DatasetError, match="target 'f'"):
        pg.Target("f", "node", kind, size, irreps=irreps)


def test_statistics_do_not_depend_on_the_orientation():
    rotation = random_rotations(1, seed=3)[0]
    rotated = act(rotation, LABELS.double(), TARGET.irreps)
    counts = [label_counts([y], "regression", 4, TARGET.irreps) for y in (LABELS.double(), rotated)]
    assert torch.allclose(*counts)
    prior, scale = label_prior(counts[0], "regression"), label_std(counts[0])
    assert prior[0] == pytest.approx(float(LABELS[:, 0].mean())) and prior[1:].abs().max() == 0
    assert scale[0] == pytest.approx(float(LABELS[:, 0].std(correction=0)))
    assert scale[1:].tolist() == pytest.approx([float(LABELS[:, 1:].square().mean().sqrt())] * 3)
    plain = label_counts([LABELS], "regression", 4)
    assert not torch.allclose(plain, label_counts([rotated], "regression", 4))


def test_loss_and_metric_are_sums_over_both_parts_for_any_orientation():
    predicted = LABELS + torch.randn(LABELS.shape, generator=torch.Generator().manual_seed(1))
    scale = label_std(label_counts([LABELS], "regression", 4, TARGET.irreps))
    error = ((predicted - LABELS) / scale).square()
    expected = (error[:, :1].sum() + error[:, 1:].sum()) / error.numel()
    assert float(squared_error(predicted, LABELS, scale=scale)) == pytest.approx(float(expected), rel=1e-6)
    moved = [act(random_rotations(1, seed=4)[0], x, TARGET.irreps) for x in (predicted, LABELS)]
    assert float(squared_error(*moved, scale=scale)) == pytest.approx(float(expected), rel=1e-5)
    for logits, y in ((predicted, LABELS), moved):
        value = rms_error(SplitPredictions(logits, y, None, scale=scale))
        assert value == pytest.approx(float(expected.sqrt()), rel=1e-5)


def test_a_head_with_other_irreps_is_refused():
    with pytest.raises(WiringError, match="1x0e"):
        pg.build_model(MODEL, replace(TARGET, head=None))
    assert pg.build_model(MODEL, TARGET).head.out["logits"].irreps == "1x0e+1x1o"


def test_label_symmetry_requires_the_irreps():
    without = replace(TASK, target=replace(TARGET, irreps=""))
    lengths = replace(TASK, derive=lambda residues: np.abs(TASK.derive(residues)))
    for task, status in ((TASK, "passed"), (without, "failed"), (lengths, "failed")):
        (component,) = pg.testing.find_components(task)
        reports = list(pg.testing.check_component(component, only=["label_symmetry"]))
        assert [report.status for report in reports] == ["passed", status], reports


def test_metrics_of_each_part_have_names():
    assert [metric.name for metric in default_task(TARGET).metrics] == [
        "rms_error",
        "rms_error/1x0e",
        "rms_error/1x1o",
    ]

"""Tasks: labels fit the target, and inputs do not contain the labels."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph import tasks as registered
from protgraph.data.datasets.labels import ProteinLabels, ResidueLabels
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, LabelError
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues
from protgraph.task import SplitPredictions, Task, builtin, compute_metrics, default_task
from protgraph.task.contact_prediction import CONTACT

TASKS = [registered.get(name) for name in registered.names()]


@pytest.fixture
def residues() -> Residues:
    """Two chains, A of four residues and B of two; one residue of unknown type."""
    n = 6
    backbone = np.arange(n * 12, dtype=np.float32).reshape(n, 4, 3)
    atoms = ["N", "CA", "C", "O", "CB"]
    return Residues(
        name="made",
        chain=np.array(list("AAAABB")),
        res_id=np.array([1, 2, 2, 3, 1, 2]),
        ins_code=np.array(["", "", "A", "", "", ""]),
        res_name=np.array(["ALA", "CYS", "UNX", "ASP", "GLU", "PHE"]),
        aatype=np.array([0, 1, 20, 2, 3, 4]),
        pos=backbone[:, 1],
        backbone=backbone,
        b_factor=np.array([10, 20, 30, 40, 5, 5], np.float32),
        seq_pos=np.array([0, 1, 2, 3, 0, 1]),
        atom_pos=np.zeros((n * 5, 3), np.float32),
        atom_name=np.array(atoms * n),
        atom_element=np.array([a[0] for a in atoms] * n),
        atom_residue=np.repeat(np.arange(n), 5),
        report=LossReport(),
    )


def test_inverse_folding_labels_are_the_residue_types_and_x_is_unknown(residues):
    assert builtin.INVERSE_FOLDING.labels(residues).tolist() == [0, 1, -1, 2, 3, 4]


def test_inverse_folding_hides_types_side_chains_and_b_factors(residues):
    seen = residues.hide(builtin.INVERSE_FOLDING.inputs.hidden)
    assert set(seen.aatype) == {20}
    assert set(seen.res_name) == {"UNK"}
    assert set(seen.atom_name) == {"N", "CA", "C", "O"}
    assert (seen.b_factor == 0).all()


def test_b_factors_are_standardized_per_chain_and_nan_if_constant(residues):
    z = builtin.B_FACTOR.labels(residues)
    assert z.shape == (6, 1)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z[:4, 0], (np.array([10, 20, 30, 40]) - 25) / math.sqrt(125), rtol=1e-6)
    assert np.isnan(z[4:]).all()
    assert builtin.B_FACTOR.inputs.hidden == {"b_factor"}


def test_labels_of_the_dataset_replace_derived_ones(residues):
    given = ResidueLabels(np.array(["B"]), np.array([2]), np.array([""]), np.array([7]))
    assert builtin.INVERSE_FOLDING.labels(residues, given).tolist() == [-1, -1, -1, -1, -1, 7]


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
def test_builtin_tasks_have_a_description_and_a_monitored_metric(task):
    assert task.doc
    assert task.target.name == task.name
    assert task.mode == registry.metrics.get(task.monitor).mode
    assert all(metric.doc for metric in task.metrics)


@pytest.mark.parametrize(
    ("kind", "monitor", "mode"),
    [("classification", "accuracy", "max"), ("multilabel", "auprc", "max"), ("regression", "nrmse", "min")],
)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_every_kind_of_target_has_a_default_task(level, kind, monitor, mode):
    task = default_task(Target("mine", level, kind, 2))
    assert (task.name, task.monitor, task.mode) == ("mine", monitor, mode)
    assert task.has_threshold == (kind == "multilabel")


def test_a_regression_of_one_value_is_selected_by_its_error_in_the_unit_of_the_label():
    task = default_task(Target("tm", "graph", "regression", 1, ("tm",)))
    assert (task.monitor, [metric.name for metric in task.metrics]) == ("rmse", ["rmse", "mae", "pearson_overall"])


def test_a_regression_of_several_values_has_metrics_of_each_in_its_unit_and_their_mean():
    task = default_task(Target("both", "graph", "regression", 2, ("kd", "tm")))
    y = torch.tensor([[1e-9, 50.0], [3e-9, 60.0], [math.nan, 70.0]])
    logits = torch.tensor([[2e-9, 51.0], [1e-9, 58.0], [0.0, 73.0]])
    found = compute_metrics(task.metrics, SplitPredictions(logits, y))
    assert found["mae/kd"] == pytest.approx(1.5e-9)
    assert found["mae/tm"] == pytest.approx(2.0)
    assert found["rmse/kd"] == pytest.approx(math.sqrt(2.5) * 1e-9)
    assert found["rmse/tm"] == pytest.approx(math.sqrt(14 / 3))
    assert found["mae"] == pytest.approx((found["mae/kd"] + found["mae/tm"]) / 2)
    assert found["pearson_overall/tm"] == pytest.approx(np.corrcoef(logits[:, 1], y[:, 1])[0, 1])
    relative = [math.sqrt(2.5), math.sqrt(14 / 3) / np.std([50, 60, 70])]
    assert found["nrmse"] == pytest.approx(np.mean(relative))
    scale = torch.tensor([2e-9, 5.0])
    of_training = compute_metrics(task.metrics, SplitPredictions(logits, y, scale=scale))
    assert of_training["nrmse"] == pytest.approx((found["rmse/kd"] / 2e-9 + found["rmse/tm"] / 5) / 2)
    one = compute_metrics(task.metrics, SplitPredictions(logits[:1], y[:1], scale=scale))
    assert one["nrmse"] == pytest.approx((1e-9 / 2e-9 + 1 / 5) / 2)
    unpickled = pickle.loads(pickle.dumps(task.metrics))
    assert compute_metrics(unpickled, SplitPredictions(logits, y)) == pytest.approx(found)


def test_pairs_have_a_threshold_if_all_of_them_are_kept():
    assert default_task(Target("mine", "pair", "multilabel", 1)).has_threshold
    assert not CONTACT.has_threshold  # only the most probable pairs of validation are kept


def test_a_label_per_protein_has_one_row(residues):
    task = default_task(Target("stability", "graph", "regression", 1))
    assert task.labels(residues, ProteinLabels(1.5)).tolist() == [[1.5]]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("classification", 5, "5"),
        ("classification", 0.5, "float"),
        ("multilabel", [0.5, 1.0], "0, 1"),
        ("regression", [1.0], r"\(1, 1\).*\(1, 2\)"),
    ],
)
def test_labels_that_do_not_fit_the_target_are_errors(residues, kind, value, words):
    with pytest.raises(LabelError, match=words) as e:
        default_task(Target("mine", "graph", kind, 2)).labels(residues, ProteinLabels(value))
    assert "'mine'" in str(e.value)
    assert "'made'" in str(e.value)


def test_a_task_without_labels_or_derivation_is_an_error(residues):
    with pytest.raises(LabelError, match="ligand_binding"):
        builtin.LIGAND_BINDING.labels(residues)


def test_hiding_an_unknown_part_is_an_error():
    with pytest.raises(DatasetError, match="sequence"):
        default_task(Target("mine", "node", "classification", 2), hidden={"sequence"})


def test_a_task_is_monitored_by_one_of_its_metrics():
    usual = builtin.SECONDARY_STRUCTURE
    with pytest.raises(DatasetError, match="'auprc'"):
        Task("mine", usual.target, usual.loss, usual.metrics, "auprc")

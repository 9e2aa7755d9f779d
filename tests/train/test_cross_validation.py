"""Cross-validation: each protein tested once, no leak of tested labels, resumed folds, pooled metrics, tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph.checkpoint import load_checkpoint
from protgraph.data.datasets.folds import assign_folds, fold_datasets
from protgraph.data.datasets.labels import ResidueLabels
from protgraph.errors import CheckpointError, DatasetError, OptionError
from protgraph.evaluation.bootstrap import BootstrapInterval
from protgraph.train import FitConfig, cross_validate, fit
from protgraph.train.cross_validation import _has_baseline
from tests.train.conftest import CHAINS, Small

PROTEINS = sorted(name for names in CHAINS.values() for name in names)


@pytest.fixture(scope="module")
def once() -> FitConfig:
    return FitConfig(epochs=1, batch_residues=256, device="cpu")


@pytest.fixture(scope="module")
def result(small, tiny, once):
    return cross_validate(tiny, small, "buried", folds=3, config=once)


@pytest.mark.slow
def test_every_protein_is_tested_once_and_its_group_not_in_two_folds(result):
    table = result.predictions
    fold_of = dict(zip(table.column("file").tolist(), table.column("fold").tolist(), strict=True))
    chains = set(zip(table.column("file").tolist(), table.column("chain").tolist(), strict=True))
    assert sorted(f"{file[:4]}_{chain}" for file, chain in chains) == PROTEINS
    pairs = set(zip(table.column("file").tolist(), table.column("fold").tolist(), strict=True))
    assert len(pairs) == len(fold_of)  # both chains of 1hf9, of equal sequence, are in one fold
    assert sum(fold.size.proteins for fold in result.folds) == result.size.proteins == len(PROTEINS)


@pytest.mark.slow
def test_pooled_metrics_are_those_of_the_table(result):
    y, p, yes = (result.predictions.column(name) for name in ("label_buried", "p_buried", "predicted_buried"))
    order = np.argsort(-p, kind="stable")
    precision = np.cumsum(y[order]) / np.arange(1, len(y) + 1)
    assert np.mean(precision[y[order] == 1]) == pytest.approx(result.pooled["auprc"], abs=1e-3)
    assert np.corrcoef(y, yes)[0, 1] == pytest.approx(result.pooled["mcc"], abs=1e-6)  # threshold of each fold


@pytest.mark.slow
def test_mean_and_standard_deviation_are_over_folds(result):
    values = [fold.metrics["auprc"] for fold in result.folds]
    assert result.mean("auprc") == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    interval = result.intervals["auprc"]
    assert interval.low < result.pooled["auprc"] < interval.high


@pytest.mark.slow
def test_summary_has_a_row_per_fold_and_the_baseline(result):
    lines = result.summary().splitlines()
    assert [line.split()[0] for line in lines[3:6]] == ["1", "2", "3"]
    assert any(line.startswith("majority") and f"{result.baseline['auprc']:.4f}" in line for line in lines)
    assert len(repr(result)) < 200


@pytest.mark.slow
def test_labels_of_the_tested_fold_do_not_change_the_model(small, tiny, once, tmp_path):
    """Weights, standardization, initial bias and threshold are the same with other labels in the test fold."""

    class Changed(Small):
        def labels(self, task, example):
            own = super().labels(task, example)
            values = 1 - own.values if example.split == "test" else own.values
            return ResidueLabels(own.chain, own.res_id, own.ins_code, values, name=own.name)

    config = replace(once, pos_weight="balanced")
    folder = small.examples("buried")[0].path.parent
    (first, *_) = fold_datasets(small, "buried", assign_folds(small, "buried", 3))
    split = {example.id: example.split for example in first.examples("buried")}
    chains = {s: tuple(name for name in PROTEINS if split[name] == s) for s in ("train", "val", "test")}
    models = [fit(tiny, kind(folder, chains), "buried", config=config) for kind in (Small, Changed)]
    one, other = (m.model.state_dict() for m in models)
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert torch.equal(models[0].threshold, models[1].threshold)
    assert models[0].test != models[1].test


@pytest.mark.slow
def test_an_interrupted_run_uses_its_finished_folds(small, tiny, once, tmp_path):
    whole = cross_validate(tiny, small, "buried", folds=3, config=once, run_dir=tmp_path / "a")
    assert load_checkpoint(tmp_path / "a" / "fold_2" / "model.safetensors").metrics["test"] == whole.folds[1].metrics
    (tmp_path / "a" / "fold_3" / "model.safetensors").unlink()
    folds = []
    options = {"folds": 3, "config": once, "run_dir": tmp_path / "a", "resume": True}
    again = cross_validate(tiny, small, "buried", **options, on_fold=folds.append)
    assert [fold.is_resumed for fold in folds] == [True, True, False]
    assert again.pooled == whole.pooled
    assert again.predictions.rows == whole.predictions.rows


@pytest.mark.slow
def test_folds_of_another_run_are_refused(small, tiny, once, tmp_path):
    options = {"folds": 3, "run_dir": tmp_path, "resume": True}
    cross_validate(tiny, small, "buried", config=once, **options)
    with pytest.raises(CheckpointError, match="another config"):
        cross_validate(tiny, small, "buried", config=replace(once, lr=1e-3), **options)
    with pytest.raises(CheckpointError, match="another data"):
        cross_validate(tiny, small, "buried", config=once, **options | {"folds": 4})


@pytest.mark.slow
@pytest.mark.parametrize("task", ["helix", "size"])
def test_classes_and_values_are_cross_validated(small, tiny, once, task):
    result = cross_validate(tiny, small, task, folds=3, config=once)
    assert math.isfinite(result.pooled[result.task.monitor])
    label = {"helix": "label", "size": "label_size"}[task]
    assert label in result.predictions.columns
    assert len({row[:2] for row in result.predictions.rows}) == len(PROTEINS)


def test_a_task_without_score_of_a_constant_has_no_baseline(result):
    tasks = {"secondary_structure": True, "ligand_binding": True, "b_factor": False, "structure_denoising": False}
    assert {name: _has_baseline(registry.tasks.get(name)) for name in tasks} == tasks
    undefined = dict.fromkeys(result.baseline, math.nan)
    without = replace(result, baseline=undefined, difference=BootstrapInterval(math.nan, math.nan))
    assert not without.beats_baseline
    assert "no baseline: auprc" in without.summary()


@pytest.mark.slow
def test_leave_one_group_out_has_a_fold_per_group(small, once):
    result = cross_validate("majority", small, "size", folds="leave-one-group-out", config=once)
    assert sorted(fold.size.proteins for fold in result.folds) == [1] * 8 + [2] * 2  # 1hf9_A and _B; 1d3z and 1ubq
    assert not result.beats_baseline


def test_invalid_arguments_raise(small, tiny, once):
    with pytest.raises(OptionError, match="run_dir"):
        cross_validate(tiny, small, "buried", resume=True)
    with pytest.raises(DatasetError, match="10 independent groups"):
        cross_validate(tiny, small, "buried", folds=12, config=once)


def test_one_class_in_a_validation_part_is_an_error_before_training(small, structures_dir, tiny, once):
    class Rare(Small):
        def labels(self, task, example):
            own = super().labels(task, example)
            values = own.values if example.id == "1crn_A" else np.zeros_like(own.values)
            return ResidueLabels(own.chain, own.res_id, own.ins_code, values, name=own.name)

    folds = []
    with pytest.raises(DatasetError, match="validation part of fold 1 of 3: .* 0 positive"):
        cross_validate(tiny, Rare(structures_dir), "buried", folds=3, config=once, on_fold=folds.append)
    assert not folds

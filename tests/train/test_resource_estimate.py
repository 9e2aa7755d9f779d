"""Measured memory and time of a run, and the choice for a memory limit."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from protgraph.data.store.loader import ProteinBatches
from protgraph.errors import OptionError
from protgraph.train import FitConfig, choose_batch_residues, estimate_resources, resource_estimate
from protgraph.train.run_setup import set_up_run

# model, residues per batch; `python -m benchmarks estimate` compares more models.
RUNS = (("gat", 4096), ("transformer", 2048), ("egnn", 512))

# A new process each: memory that an earlier run freed would be used again.
REAL = """
import sys
from protgraph.train import FitConfig, fit
config = FitConfig(epochs=1, batch_residues={budget}, device="cpu")
print(fit("{model}", "pdb_core", "secondary_structure", config=config).peak_memory)
"""
PREDICTED = """
import sys
from protgraph.train import FitConfig, estimate_resources
config = FitConfig(epochs=1, batch_residues={budget}, device="cpu")
found = estimate_resources("{model}", "pdb_core", "secondary_structure", config=config)
print(found.cost.memory)
"""


def test_the_largest_batches_are_measured(small, tiny):
    setup = set_up_run(tiny, small, "helix", FitConfig(device="cpu"), cache=None, jobs=1)
    store = setup.prepared.splits["train"]
    batches = list(ProteinBatches(store.sizes, max_nodes=128, shuffle=True, seed=0))
    chosen = resource_estimate._select(store, batches, 3)
    for power in (1, 2):
        sizes = [(store.sizes[members] ** power).sum() for members in (*batches, *chosen)]
        assert max(sizes[len(batches) :]) == max(sizes)


@pytest.mark.slow
def test_an_estimate_has_the_batches_of_the_run_and_writes_nothing(small, tiny, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = estimate_resources(tiny, small, "helix", config=quick)
    assert not list(tmp_path.iterdir())
    assert [cost.batch_residues for cost in found.budgets] == [64, 128, 256]
    assert found.chosen == 256 and found.cost is found.budgets[2]
    assert found.cost.largest <= 256 and found.cost.batches > 1
    assert all(cost.seconds > 0 and cost.memory > found.process > 100 for cost in found.budgets)
    memory = [cost.memory for cost in found.budgets]
    assert memory == sorted(memory)


@pytest.mark.slow
def test_batches_beyond_the_limit_are_not_run(small, tiny, quick):
    with pytest.raises(OptionError, match=r"limit 10 MiB: batches of 512 .* 'tiny' needs \d+ MiB with 128"):
        estimate_resources(tiny, small, "helix", config=replace(quick, batch_residues=512), memory_limit=10.0)


@pytest.mark.slow
def test_the_largest_budget_that_fits_is_chosen(small, tiny, quick, monkeypatch):
    monkeypatch.setattr(resource_estimate, "SMALLEST", 32)
    monkeypatch.setattr(resource_estimate, "_FEWEST_BATCHES", 2)
    found = choose_batch_residues(tiny, small, "helix", config=quick, memory_limit=1e6)
    assert found.chosen == found.budgets[-1].batch_residues == 128
    with pytest.raises(OptionError, match=r"memory limit 50 MiB: 'tiny' needs \d+ MiB"):
        choose_batch_residues(tiny, small, "helix", config=quick, memory_limit=50.0)


@pytest.mark.parametrize("limit, chosen", [(1200.0, 1024), (760.0, 512), (660.0, 256)])
def test_the_choice_keeps_a_tenth_of_the_limit_free(small, tiny, quick, monkeypatch, limit, chosen):
    budgets = tuple(resource_estimate.BudgetCost(2**i, 20, 2**i, 500 + 2**i * 0.3, 1.0) for i in range(8, 11))
    found = resource_estimate.ResourceEstimate(500.0, 10.0, budgets, 256, limit)
    monkeypatch.setattr(resource_estimate, "_measure", lambda *_: found)
    assert choose_batch_residues(tiny, small, "helix", config=quick, memory_limit=limit).chosen == chosen


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset the peak")
@pytest.mark.parametrize("model, budget", RUNS)
def test_the_peak_of_a_run_is_predicted_within_20_percent(model, budget):
    values = {"model": model, "budget": budget}
    peaks = [
        float(subprocess.run([sys.executable, "-c", code.format(**values)], capture_output=True, check=True).stdout)
        for code in (PREDICTED, REAL)
    ]
    assert np.isclose(peaks[0], peaks[1], rtol=0.2), peaks

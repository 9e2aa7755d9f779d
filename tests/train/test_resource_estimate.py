"""Predicted memory and time of a run: measured batches, extrapolation, and the choice for a memory limit."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from protgraph.errors import OptionError
from protgraph.train import FitConfig, choose_batch_residues, estimate_resources, resource_estimate
from protgraph.train.resource_probe import BatchCost, BatchSize, _select, training_batches

# model, residues per batch of the measurement and of the run; extrapolated where they differ by more than 2
# The lane `python -m benchmarks estimate` compares more models.
RUNS = (("gat", 1024, 4096), ("transformer", 2048, 2048), ("egnn", 512, 512))

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
config = FitConfig(epochs=1, batch_residues={measured}, device="cpu")
found = estimate_resources("{model}", "pdb_core", "secondary_structure", config=config)
print(next(cost.memory for cost in found.budgets if cost.batch_residues == {budget}))
"""


def costs(function, sizes, budget=100):
    return [BatchCost(size, budget, function(size), function(size) / 100) for size in sizes]


SIZES = [BatchSize(100, 10_000), BatchSize(200, 15_000), BatchSize(300, 90_000), BatchSize(400, 40_000)]


def test_costs_linear_in_nodes_and_pairs_are_extrapolated_exactly():
    truth = lambda size: 7 + 0.3 * size.nodes + 2e-4 * size.pairs  # noqa: E731
    largest = BatchSize(4000, 9_000_000)
    model = resource_estimate._memory_model(costs(truth, SIZES))
    assert model([largest])[0] == pytest.approx(truth(largest), rel=1e-6)


def test_a_prediction_is_scaled_to_what_was_measured_at_the_nearest_budget():
    known = costs(lambda size: 0.5 * size.nodes, SIZES[:2], 100) + costs(lambda size: 1.0 * size.nodes, SIZES[2:], 400)
    options = (resource_estimate._seconds_model, sum, lambda cost: cost.seconds)
    for budget, own in ((100, known[:2]), (400, known[2:])):
        sizes, measured = [cost.size for cost in own], sum(cost.seconds for cost in own)
        assert resource_estimate._predict(known, budget, sizes, *options) == pytest.approx(measured)


def test_an_interrupted_batch_hardly_changes_the_predicted_time():
    sizes = [BatchSize(100 + 10 * i, 10_000) for i in range(8)]
    known = costs(lambda size: 0.5 * size.nodes, sizes)
    slow = [replace(cost, seconds=5 * cost.seconds) if i == 3 else cost for i, cost in enumerate(known)]
    options = (100, sizes * 10, resource_estimate._seconds_model, sum, lambda cost: cost.seconds)
    truth = 10 * sum(cost.seconds for cost in known)
    assert resource_estimate._predict(known, *options) == pytest.approx(truth)
    assert resource_estimate._predict(slow, *options) == pytest.approx(truth, rel=0.05)


def test_the_largest_batches_are_measured(small, tiny):
    from protgraph.train.resolve import resolve_task
    from protgraph.train.run_setup import set_up_run

    task = resolve_task("helix", small)
    store = set_up_run(tiny, small, task, FitConfig(device="cpu"), cache=None, jobs=1).prepared.splits["train"]
    batches = training_batches(store, 128, 0)
    sizes, chosen = (
        [BatchSize.of(store, b) for b in batches],
        [BatchSize.of(store, b) for b in _select(store, batches, 3)],
    )
    assert max(size.nodes for size in chosen) == max(size.nodes for size in sizes)
    assert max(size.pairs for size in chosen) == max(size.pairs for size in sizes)


def test_an_estimate_has_the_batches_of_the_run_and_writes_nothing(small, tiny, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = estimate_resources(tiny, small, "helix", config=quick)
    assert not list(tmp_path.iterdir())
    assert [cost.batch_residues for cost in found.budgets] == [64, 128, 256, 512, 1024]
    assert [cost.is_measured for cost in found.budgets] == [True, True, True, False, False]
    assert found.chosen == 256 and found.cost is found.budgets[2]
    assert found.cost.largest <= 256 and found.cost.batches > 1
    assert all(cost.seconds > 0 and cost.memory > found.process > 100 for cost in found.budgets)
    memory = [cost.memory for cost in found.budgets]
    assert memory == sorted(memory)


def test_batches_beyond_the_limit_are_not_run(small, tiny, quick):
    found = estimate_resources(tiny, small, "helix", config=replace(quick, batch_residues=512), memory_limit=10.0)
    assert not found.cost.is_measured and found.cost.memory > found.limit == 10.0


def test_the_largest_budget_that_fits_is_chosen(small, tiny, quick, monkeypatch):
    monkeypatch.setattr(resource_estimate, "SMALLEST", 32)
    monkeypatch.setattr(resource_estimate, "_FEWEST_BATCHES", 2)
    found = choose_batch_residues(tiny, small, "helix", config=quick, memory_limit=1e6)
    assert found.chosen == found.budgets[-1].batch_residues == 128
    with pytest.raises(OptionError, match=r"memory limit 50 MiB: 'tiny' needs \d+ MiB"):
        choose_batch_residues(tiny, small, "helix", config=quick, memory_limit=50.0)


@pytest.mark.parametrize("limit, chosen", [(1000.0, 1024), (760.0, 512), (660.0, 256)])
def test_the_choice_keeps_a_tenth_of_the_limit_free(limit, chosen, monkeypatch):
    budgets = [resource_estimate.BudgetCost(2**i, 20, 2**i, 500 + 2**i * 0.2, 1.0, True) for i in range(8, 13)]
    found = resource_estimate.ResourceEstimate(500.0, 0.0, 10.0, tuple(budgets), 256, limit)
    assert max(b.batch_residues for b in budgets if resource_estimate._fits(found, b)) == chosen


def test_pages_of_a_store_count_up_to_a_quarter_of_the_limit():
    cost = resource_estimate.BudgetCost(256, 20, 256, 500 + 10_000, 1.0, True)
    found = resource_estimate.ResourceEstimate(400.0, 10_000.0, 10.0, (cost,), 256, 1000.0)
    assert resource_estimate._fits(found, cost)
    assert not resource_estimate._fits(replace(found, graphs=0.0), cost)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset the peak")
@pytest.mark.parametrize("model, measured, budget", RUNS)
def test_the_peak_of_a_run_is_predicted_within_20_percent(model, measured, budget):
    values = {"model": model, "measured": measured, "budget": budget}
    peaks = [
        float(subprocess.run([sys.executable, "-c", code.format(**values)], capture_output=True, check=True).stdout)
        for code in (PREDICTED, REAL)
    ]
    assert np.isclose(peaks[0], peaks[1], rtol=0.2), peaks

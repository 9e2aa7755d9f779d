"""Tables of costs: exponents, rates and memory, on small inputs."""

from __future__ import annotations

import importlib
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from benchmarks import speed_estimate, speed_scale, speed_store, speed_train
from benchmarks.large_structures import write_large_structure
from benchmarks.measurements import COSTS, MEASUREMENTS, measure_costs
from benchmarks.synthetic_inputs import protein
from benchmarks.training_loops import EpochTimes, RepeatedTraining
from protgraph.data.graph.protein_graph import collate
from protgraph.labels import load_dataset
from protgraph.structure import clean, load_structure
from protgraph.train import FitConfig


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_its_power(power):
    costs = [speed_scale.SizeCost(n, 3.0 * n**power, 0.1 * n) for n in speed_scale.SIZES]
    assert speed_scale.exponent(costs, lambda cost: cost.seconds) == pytest.approx((power, 0), abs=1e-6)
    assert speed_scale.exponent(costs, lambda cost: cost.memory) == pytest.approx((1, 0), abs=1e-6)


def test_the_error_of_an_exponent_is_that_of_least_squares():
    sizes, log_noise = [10, 100, 1_000, 10_000, 100_000], [0.1, -0.2, 0.05, 0.1, -0.05]
    costs = [speed_scale.SizeCost(n, n * 10**e, 1.0) for n, e in zip(sizes, log_noise, strict=True)]
    slope, error = speed_scale.exponent(costs, lambda cost: cost.seconds)
    _, covariance = np.polyfit(np.log10(sizes), np.log10([cost.seconds for cost in costs]), 1, cov=True)
    assert slope == pytest.approx(1.0) and error == pytest.approx(covariance[0, 0] ** 0.5)
    assert speed_scale.exponent(costs[:2], lambda cost: cost.seconds)[1] is None  # two sizes: no error is known


@pytest.mark.parametrize("suffix", [".cif", ".bcif"])
def test_a_large_structure_has_the_residues_of_its_chains(tmp_path, suffix):
    path = tmp_path / f"large{suffix}"
    written = write_large_structure(1000, path)
    residues = clean(load_structure(path))
    assert 1000 <= written < 1700 and 0.98 * written < len(residues) <= written
    assert len(set(residues.chain.tolist())) >= 3


def test_rates_compare_the_command_without_the_forward_passes_of_validation():
    bare = [EpochTimes(2.0, 1.0), EpochTimes(4.0, 1.0), EpochTimes(2.0, 1.0)]
    unclipped = [EpochTimes(one.training - 0.4, 1.0) for one in bare]
    command = [EpochTimes(3.0, 2.0), EpochTimes(3.5, 1.5)]  # 4 s each without the forward passes of validation
    row = speed_train._row(100, bare, unclipped, command)
    assert row == pytest.approx([100 / 3, 100 / 4, 3 / 4, 3 / 4, 3 / 4, 2.6 / 4, 3 / 5, (1 + 3 / 3.5) / 2, 750])
    slower = [EpochTimes(3.0, 2.0), EpochTimes(5.5, 1.5)]  # 4 s and 6 s
    row = speed_train._row(100, bare, unclipped, slower)
    assert row[2:5] == pytest.approx([0.625, 0.5625, 0.6875])


def test_copies_of_training_proteins_have_their_residues_and_labels():
    base = load_dataset("pdb_core")
    repeated = RepeatedTraining(base, 3)
    before, after = (one.examples("interface") for one in (base, repeated))
    train, copies = ([one for one in examples if one.split == "train"] for examples in (before, after))
    assert len(copies) == 3 * len(train) and len(after) == len(before) + 2 * len(train)
    assert len({example.id for example in after}) == len(after)
    for number in (0, 1, 5):
        labels, expected = (
            data.labels("interface", example)
            for data, example in ((repeated, copies[number]), (base, train[number // 3]))
        )
        assert labels.name == expected.name and np.array_equal(labels.values, expected.values)
        assert repeated.read(copies[number]).name == base.read(train[number // 3]).name


def test_the_lanes_have_names_of_their_own():
    assert not set(COSTS) & set(MEASUREMENTS)
    for name in COSTS:
        assert callable(importlib.import_module(f"benchmarks.speed_{name}").measure)


@pytest.mark.slow
def test_training_keeps_most_of_the_bare_rate(monkeypatch):
    monkeypatch.setattr(speed_train, "MODELS", ("gcn",))
    monkeypatch.setattr(speed_train, "FEWEST", 2)
    monkeypatch.setattr(speed_train, "COPIES", 2)
    (table,) = measure_costs("train", seconds=0)
    assert [row[0] for row in table.rows] == ["gcn", "gcn"] and len(table.columns) == 11
    assert table.rows[1][1] == 2 * table.rows[0][1]
    for _, _, bare, rate, ratio, lower, upper, _, whole, steps, per_epoch in table.rows:
        assert 0 < steps < 2 and abs(per_epoch) < 5000
        assert 0 < rate < 2 * bare and 0 < whole < ratio and lower <= ratio <= upper


def test_each_step_has_a_process_of_its_own():
    ids = {os.getpid(), *(speed_scale._in_process(os.getpid) for _ in range(2))}
    assert len(ids) == 3


@pytest.mark.slow
def test_scale_has_a_row_for_each_step(monkeypatch):
    steps = []

    def in_process(function, *arguments):
        steps.append(function.__name__)
        return pool.submit(function, *arguments).result()

    monkeypatch.setattr(speed_scale, "_in_process", in_process)
    monkeypatch.setattr(speed_scale, "SIZES", (300, 900))
    monkeypatch.setattr(speed_scale, "PDB_SIZES", (300, 900))
    monkeypatch.setattr(speed_scale, "MODELS", ("gcn",))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        (table,) = measure_costs("scale", seconds=0)
    assert steps == ["_memory", "_times"] * 4 + ["_memory"]
    assert len(table.rows) == 5 and all(len(row) == len(table.columns) for row in table.rows)
    assert all(row[2] > 0 and row[3] > 0 for row in table.rows[:-1])
    assert table.rows[-1][2] is None and table.rows[-1][3] > 0


def test_batches_of_all_stores_are_equal_and_a_difference_is_an_error(monkeypatch):
    monkeypatch.setattr(speed_store, "PROTEINS", 12)
    monkeypatch.setattr(speed_store, "SHARD_BYTES", 200_000)
    (table,) = measure_costs("store", seconds=0)
    rates = {name: values for name, *values in table.rows}
    assert next(iter(rates)) == speed_store.LOCAL and len(rates) == 3
    assert all(value > 0 for values in rates.values() if values[0] is not None for value in values)
    graphs = [protein(n, 5) for n in (8, 9)]
    wrong = graphs[1].clone()
    wrong.pos[0, 0] += 1
    batches = {"one": lambda: iter([collate(graphs)]), "other": lambda: iter([collate([graphs[0], wrong])])}
    with pytest.raises(AssertionError, match="pos"):
        speed_store._check_equal(batches)


@pytest.mark.slow
def test_estimates_are_compared_with_runs(monkeypatch, tmp_path):
    called = []

    def call(function, *arguments):
        called.append(function.__name__)
        return function(*arguments)

    monkeypatch.setattr(speed_estimate, "_in_process", call)
    monkeypatch.setattr(speed_estimate, "MODELS", ("gcn",))
    monkeypatch.setattr(speed_estimate, "LIMITED", "gcn")
    monkeypatch.setattr(speed_estimate, "LIMITS", (8000.0,))
    monkeypatch.setattr(speed_estimate, "CONFIG", FitConfig(epochs=2, batch_residues=8192, device="cpu"))
    monkeypatch.setattr(speed_estimate, "COPIES", 1)
    monkeypatch.setattr(speed_estimate, "SAMPLE", 1000)  # all files: residues and bytes are exact
    monkeypatch.setattr(speed_estimate, "JOBS", (1,))
    training, limits, preparation = measure_costs("estimate", seconds=0)
    assert [len(table.rows) for table in (training, limits, preparation)] == [1, 1, 1]
    for table in (training, limits, preparation):
        assert all(value > 0 for value in table.rows[0][1:]) and len(table.rows[0]) == len(table.columns)
    assert preparation.rows[0][4] == pytest.approx(1.0) and preparation.rows[0][5] == pytest.approx(1.0, rel=0.02)
    assert called == ["_estimate", "_run", "_choose", "_run", "_estimate_preparation", "_prepare"]

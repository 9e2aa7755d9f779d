"""Statistics of tested splits against torchmetrics, scikit-learn and single proteins computed one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph.bench.run_predictions import (
    RunPredictions,
    bin_probabilities,
    load_predictions,
    protein_values,
    resample_mean,
)
from protgraph.bench.statistics import ModelRuns, break_down, split_statistics
from protgraph.data.datasets.dataset import read_task
from protgraph.errors import DatasetError
from protgraph.evaluation.bootstrap import bootstrap_scores
from protgraph.labels import load_dataset
from protgraph.task.predictions import SplitPredictions

MODES = {"auprc": "max", "auroc": "max", "mcc": "max"}


def binary_run(seed: int = 0, *, proteins: int = 12, signal: float = 1.0) -> RunPredictions:
    """Return predictions of proteins of several lengths, in mixed order; the first has no positives."""
    labels = np.random.default_rng(0)
    sizes = labels.integers(20, 400, proteins)
    protein = np.repeat(np.arange(proteins), sizes)
    y = (labels.random(len(protein)) < 0.2).astype(np.float32)
    y[protein == 0] = 0
    y[labels.random(len(y)) < 0.05] = np.nan
    logits = np.random.default_rng(seed + 1).normal(size=len(y)) + signal * np.nan_to_num(y) - 1
    order = np.argsort(labels.integers(0, proteins, proteins)[protein], kind="stable")
    one = SplitPredictions(
        torch.tensor(logits[order, None], dtype=torch.float32),
        torch.tensor(y[order, None]),
        torch.tensor(protein[order] * 10 + (np.arange(len(y))[order] % 2)),
        threshold=torch.tensor([0.3]),
        protein=torch.tensor(protein[order]),
    )
    return RunPredictions.of([f"p{i}" for i in range(proteins)], one)


def test_a_file_of_predictions_is_read_as_written(tmp_path):
    run = binary_run()
    again = load_predictions(run.save(tmp_path / "a" / "run.npz"))
    assert again.names == run.names
    for key in ("logits", "y", "protein", "chain", "threshold"):
        assert torch.equal(getattr(again.rows, key).nan_to_num(9), getattr(run.rows, key).nan_to_num(9))
    assert run.save(tmp_path / "b.npz").read_bytes() == (tmp_path / "a" / "run.npz").read_bytes()
    (tmp_path / "b.npz").write_bytes(b"PK")
    with pytest.raises(DatasetError, match=r"b\.npz"):
        load_predictions(tmp_path / "b.npz")


def test_rows_are_sorted_by_protein_and_counted():
    run = binary_run()
    assert bool((run.rows.protein.diff() >= 0).all())
    assert run.lengths.sum() == len(run.rows.y) and set(run.chain_counts.tolist()) == {2}


@pytest.mark.parametrize("name", ["auprc", "auroc", "mcc", "perplexity_mean"])
def test_values_of_proteins_are_those_of_their_rows_alone(name):
    run = binary_run() if name in MODES else class_run()
    values = protein_values(run, registry.metrics.get(name))
    for i in range(len(run.names)):
        rows = torch.nonzero(run.rows.protein == i).flatten()
        alone = float(registry.metrics.get(name)(run.rows.take(rows, torch.zeros_like(rows))))
        assert values[i] == pytest.approx(alone, abs=2e-6, nan_ok=True)
    if name == "auprc":
        from sklearn.metrics import average_precision_score

        known = (run.rows.protein == 3) & ~run.rows.y[:, 0].isnan()
        expected = average_precision_score(run.rows.y[known, 0].numpy(), run.rows.logits[known, 0].numpy())
        assert np.isnan(values[0]) and values[3] == pytest.approx(expected, abs=1e-12)


def class_run() -> RunPredictions:
    generator = torch.Generator().manual_seed(0)
    protein, logits = torch.arange(6).repeat_interleave(50), torch.randn(300, 4, generator=generator)
    y = torch.randint(-1, 4, (300,), generator=generator)
    return RunPredictions.of(list("abcdef"), SplitPredictions(logits, y, protein, protein=protein))


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_the_calibration_error_is_that_of_torchmetrics(kind):
    from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

    run = binary_run() if kind == "binary" else class_run()
    if kind == "binary":
        known = ~run.rows.y[:, 0].isnan()
        p, y = run.rows.logits[known, 0].double().sigmoid(), run.rows.y[known, 0].long()
        expected = binary_calibration_error(p, y, n_bins=15, norm="l1")
    else:
        expected = multiclass_calibration_error(
            run.rows.logits.double().softmax(1), run.rows.y, num_classes=4, n_bins=15, norm="l1", ignore_index=-1
        )
    assert bin_probabilities(run).error()[0] == pytest.approx(float(expected), abs=1e-6)


def test_a_perfectly_calibrated_bin_has_no_error_and_a_wrong_one_its_distance():
    y = torch.tensor([1.0] * 8 + [0.0] * 2)[:, None]
    logits = torch.full((10, 1), 0.8).double().logit().float()
    one = SplitPredictions(logits, y, protein=torch.zeros(10, dtype=torch.long))
    assert bin_probabilities(RunPredictions.of(["a"], one)).error()[0] == pytest.approx(0, abs=1e-6)
    flipped = SplitPredictions(logits, 1 - y, protein=torch.zeros(10, dtype=torch.long))
    result = bin_probabilities(RunPredictions.of(["a"], flipped))
    assert result.error()[0] == pytest.approx(0.6, abs=1e-6)
    assert result.curve() == [(pytest.approx(0.8), 0.2, 10)]


def test_the_samples_of_means_are_those_of_the_bootstrap_of_a_metric_per_chain():
    run = class_run()
    metric = registry.metrics.get("recovery_mean")
    expected = bootstrap_scores(run.rows, metric, resamples=50)
    assert resample_mean(protein_values(run, metric), resamples=50) == pytest.approx(expected, abs=1e-12)


def test_statistics_of_models_have_every_metric_and_every_pair():
    models = [
        ModelRuns(name, MODES, {seed: binary_run(10 * i + seed, signal=i) for seed in (0, 1)})
        for i, name in enumerate(("floor", "weak", "strong"))
    ]
    result = split_statistics("data", "site", "test", "auprc", models, resamples=100)
    found = {(e.model, e.metric, e.average): e for e in result.estimates}
    assert len(found) == 3 * (3 * 2 + 1)
    strong = found["strong", "auprc", "pooled"]
    runs = models[2].runs.values()
    assert strong.mean == pytest.approx(np.mean([registry.metrics.get("auprc")(run.rows) for run in runs]))
    assert strong.interval.low < strong.mean < strong.interval.high and strong.proteins == 12
    assert found["strong", "auprc", "proteins"].proteins == 11  # one protein has no positives
    tests = {(p.metric, p.one, p.other): p for p in result.pairs}
    assert len(tests) == 9
    best = tests["auprc", "floor", "strong"]
    assert best.difference < 0 and best.interval.high < 0 and best.p_value <= best.p_holm < 0.05
    assert result.ranks.ranks[2] == min(result.ranks.ranks) and result.left_out == ()


def test_models_on_other_proteins_are_in_no_pair():
    other = ModelRuns("other", MODES, {0: binary_run(proteins=11)})
    models = [ModelRuns("one", MODES, {0: binary_run()}), other]
    result = split_statistics("data", "site", "test", "auprc", models, resamples=20)
    assert result.left_out == ("other",) and result.pairs == ()


def test_groups_of_proteins_have_the_scores_of_their_rows():
    model = ModelRuns("one", MODES, {0: binary_run()})
    result = split_statistics("data", "site", "test", "auprc", [model], resamples=20)
    groups = break_down(result, {"p1": 1.5, "p2": 2.5})
    assert {g.by for g in groups} == {"length", "resolution"}  # all have two chains
    lengths = [g for g in groups if g.by == "length"]
    assert sum(g.proteins for g in lengths) == 12
    short = torch.tensor(np.flatnonzero(model.first.lengths <= 150))
    rows = torch.isin(model.first.rows.protein, short)
    o = model.first.rows
    alone = SplitPredictions(o.logits[rows], o.y[rows], protein=o.protein[rows])
    assert lengths[0].group == "up to 150 residues" and lengths[0].score == pytest.approx(
        registry.metrics.get("auprc")(alone)
    )
    assert {g.group: g.proteins for g in groups if g.by == "resolution"} == {
        "up to 2.0 Å": 1,
        "2.0 to 3.0 Å": 1,
        "unknown": 10,
    }


def constant_run(seed: int) -> RunPredictions:
    """Return predictions of one value, and those of a normal run with numbers as labels."""
    run = number_run(seed)
    return replace(run, rows=replace(run.rows, logits=torch.full_like(run.rows.logits, 0.5)))


def number_run(seed: int) -> RunPredictions:
    run = binary_run(seed)
    noise = torch.randn(run.rows.y.shape, generator=torch.Generator().manual_seed(5))
    return replace(run, rows=replace(run.rows, y=run.rows.y + noise, threshold=None))


@pytest.mark.slow
def test_undefined_metrics_of_a_constant_baseline_are_left_out_with_a_word():
    modes = {"pearson": "max", "pearson_overall": "max", "rmse": "min"}
    models = [
        ModelRuns(name, modes, {seed: make(seed + 10 * i) for seed in (0, 1)})
        for i, (name, make) in enumerate(
            (("majority", constant_run), ("one", number_run), ("two", number_run), ("three", number_run))
        )
    ]
    found = split_statistics("mine", "number", "test", "pearson", models, resamples=50)
    assert found.undefined == {"majority": ["pearson", "pearson_overall"]}
    pooled = {(e.model, e.metric): e for e in found.estimates if e.average == "pooled"}
    assert np.isnan(pooled["majority", "pearson"].mean) and np.isnan(pooled["majority", "pearson"].sd)
    assert pooled["majority", "rmse"].sd == 0 and pooled["one", "pearson"].sd > 0
    pairs = {(p.metric, p.one, p.other) for p in found.pairs}
    assert ("rmse", "majority", "one") in pairs and ("pearson", "one", "two") in pairs
    assert not any(metric.startswith("pearson") and "majority" in names for metric, *names in pairs)
    assert found.ranks.models == ("one", "two", "three")
    assert all(np.isfinite(found.ranks.ranks))
    from protgraph.bench.figures import inline_svg, ranks_figure
    from protgraph.bench.tables import estimates_csv, pair_table, pairs_csv

    series = {model.model: i for i, model in enumerate(models)}
    texts = [inline_svg(ranks_figure(found.ranks, series), "ranks"), pair_table(found).html()]
    texts += [estimates_csv([found]), pairs_csv([found])]
    assert not any("nan" in text.lower() for text in texts)


def with_copies(run: RunPredictions, copies: int) -> RunPredictions:
    """Return a run in which the first protein with positives occurs several times, in one cluster."""
    rows, count = run.rows, len(run.names)
    members = torch.nonzero(rows.protein == 1).flatten()
    order = torch.cat([torch.arange(len(rows.protein)), members.repeat(copies)])
    number = torch.cat([rows.protein, torch.arange(count, count + copies).repeat_interleave(len(members))])
    names = [*run.names, *(f"copy{i}" for i in range(copies))]
    return RunPredictions.of(names, rows.take(order, number), [*range(count), *([1] * copies)])


def test_copies_of_a_protein_count_once(tmp_path):
    alone = [ModelRuns(name, MODES, {0: binary_run(seed, signal=seed)}) for seed, name in enumerate(("floor", "model"))]
    copied = [replace(model, runs={0: with_copies(model.first, 20)}) for model in alone]
    assert load_predictions(copied[0].first.save(tmp_path / "a.npz")).clusters == copied[0].first.clusters
    once, many = (
        split_statistics("data", "site", "test", "auprc", models, resamples=200) for models in (alone, copied)
    )
    means = {(e.model, e.metric): e for e in once.estimates if e.average == "proteins"}
    clusters = {(e.model, e.metric): e for e in many.estimates if e.average == "clusters"}
    assert means.keys() == clusters.keys() and not any(e.average == "proteins" for e in many.estimates)
    for key, estimate in clusters.items():
        assert estimate.mean == pytest.approx(means[key].mean, abs=1e-6)
        assert estimate.interval.low == pytest.approx(means[key].interval.low, abs=1e-6)
        assert estimate.proteins == means[key].proteins
    assert [p.p_value for p in many.pairs] == pytest.approx([p.p_value for p in once.pairs], abs=1e-6)


def test_copies_of_pdb_core_are_in_clusters():
    dataset = load_dataset("pdb_core")
    names = [example.id for example in dataset.examples("ligand_binding", "test")]
    clusters = read_task(dataset, "ligand_binding").clusters(names)
    assert len(names) == len(clusters) == 39 and len(set(clusters)) == 19  # components of chains.tsv

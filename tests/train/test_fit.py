"""Training is reproducible, learns, selects the best epoch on validation and evaluates the test split once."""

from __future__ import annotations

import importlib
import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

from protgraph.checkpoint import load_checkpoint
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, OptionError, ProtgraphError
from protgraph.evaluation import evaluate
from protgraph.evaluation.evaluation import predict_split
from protgraph.labels import prepare
from protgraph.labels.loading import resolve_task
from protgraph.model import ModelSpec, build_model
from protgraph.registry.component import component
from protgraph.task import SplitPredictions, binary_cross_entropy, builtin, default_task
from protgraph.train import FitConfig, fit
from protgraph.train.module import learning_rate_factor
from protgraph.train.run_setup import class_weights, count_labels, initialize_head, positive_weight, training_loss

fit_module = sys.modules["protgraph.train.training"]


def same_bits(a, b) -> bool:
    a, b = a.model.state_dict(), b.model.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_a_second_thread_is_refused_and_the_first_keeps_its_bits(small, tiny, quick, trained):
    """They share the random numbers of torch: before, both runs had other weights than alone."""
    second, errors = replace(quick, seed=1), []

    def train_another() -> None:
        with pytest.raises(OptionError, match="thread") as caught:
            fit(tiny, small, "helix", config=second)
        errors.append(caught.value)

    def start(row) -> None:
        thread = threading.Thread(target=train_another)
        thread.start()
        thread.join(60)

    first = fit(tiny, small, "helix", config=quick, on_epoch=start)
    assert len(errors) == quick.epochs and same_bits(first, trained) and first.history == trained.history


@pytest.mark.slow
def test_a_callback_may_train_and_the_random_numbers_of_its_run_are_restored(small, tiny, quick, trained):
    inner = []

    def train_too(row) -> None:
        inner.append(fit(tiny, small, "helix", config=quick))

    outer = fit(tiny, small, "helix", config=quick, on_epoch=train_too)
    assert same_bits(outer, trained) and len(inner) == quick.epochs and same_bits(inner[0], trained)


def test_models_built_in_threads_have_the_weights_of_their_seeds(small):
    target = small.target("helix")
    expected = [build_model("gat", target, seed=seed).state_dict() for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            built = pool.map(lambda seed: build_model("gat", target, seed=seed).state_dict(), range(4))
            for weights, alone in zip(built, expected, strict=True):
                assert all(torch.equal(weights[name], alone[name]) for name in alone)


def test_weights_depend_on_the_seed_only(small, tiny, quick, trained):
    torch.manual_seed(99)  # has no effect
    again = fit(tiny, small, "helix", config=quick)
    assert same_bits(trained, again)
    assert again.history == trained.history
    assert again.metrics == trained.metrics
    other = fit(tiny, small, "helix", config=replace(quick, seed=1))
    assert not same_bits(trained, other)


def test_a_trained_model_exceeds_the_majority_class(small, tiny, quick):
    result = fit(tiny, small, "helix", config=replace(quick, epochs=20))
    y = torch.cat([g.y for g in prepare(small, result.task, result.model.plan).splits["test"]])
    majority = (y[y >= 0] == 1).float().mean()
    assert result.test["accuracy"] > max(majority, 1 - majority) + 0.1
    losses = [row["train_loss"] for row in result.history]
    assert losses[-1] < 0.6 * losses[0]


def test_the_weights_are_those_of_the_best_epoch_on_validation(small, tiny, quick):
    result = fit(tiny, small, "helix", config=replace(quick, epochs=6, lr=0.05))
    scores = [row["accuracy"] for row in result.history]
    assert result.best_epoch == scores.index(max(scores)) + 1
    assert result.metrics["val"]["accuracy"] == max(scores)
    splits = prepare(small, result.task, result.model.plan).splits
    for split in ("val", "test"):
        assert evaluate(result.model, splits[split], result.task) == result.metrics[split]


def test_the_first_training_loss_is_that_of_the_label_frequencies(small, tiny, quick):
    # One batch per epoch and no dropout: the first loss is that of predicting the label frequencies.
    graph = ModelSpec("plain", tiny.features, [n for n in tiny.layers if n.name != "residual"][:1])
    result = fit(graph, small, "helix", config=replace(quick, epochs=1, batch_residues=10**6))
    model = build_model(graph, result.task.target, seed=quick.seed)
    store = prepare(small, result.task, model.plan).splits["train"]
    batch = store.collate(range(len(store)))
    y = batch.y[batch.y >= 0]
    share = (y.bincount() + 0.5) / (len(y) + 1)
    expected = -share.log()[y].mean()
    assert result.history[0]["train_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_the_test_split_is_evaluated_once(small, tiny, quick, monkeypatch):
    evaluated = []

    def recorded(model, store, task, **options):
        evaluated.append(store.path.name)
        return predict_split(model, store, task, **options)

    monkeypatch.setattr(fit_module, "predict_split", recorded)
    result = fit(tiny, small, "helix", config=quick)
    assert evaluated == ["test"]
    assert list(result.metrics) == ["val", "test"]


def test_the_threshold_is_chosen_on_validation(small, tiny, quick, monkeypatch):
    chosen_on = []
    module = importlib.import_module("protgraph.train.module")
    real = module.best_threshold
    monkeypatch.setattr(module, "best_threshold", lambda o: chosen_on.append(len(o.y)) or real(o))
    result = fit(tiny, small, "buried", config=quick)
    assert set(chosen_on) == {result.sizes["val"][1]}
    assert result.threshold.shape == (1,)
    store = prepare(small, result.task, result.model.plan).splits["test"]
    batch = store.collate(range(len(store)))
    with torch.no_grad():
        predictions = SplitPredictions(result.model(batch)["logits"], batch.y, threshold=result.threshold)
    assert result.test["mcc"] == pytest.approx(result.task.metrics[2](predictions), abs=1e-6)


def test_training_stops_after_epochs_without_improvement(small, tiny, quick):
    result = fit(tiny, small, "helix", config=replace(quick, epochs=30, lr=1e-12, patience=2))
    assert result.best_epoch == 1
    assert result.epochs == 3


@pytest.mark.slow
def test_training_stops_after_max_time(small, tiny, quick):
    result = fit(tiny, small, "helix", config=replace(quick, epochs=10**5, max_time=0.3, patience=None))
    assert result.epochs < 10**4
    assert result.seconds < 60


def test_training_is_silent_and_leaves_no_file(small, tiny, quick, tmp_path, monkeypatch, capfd, recwarn):
    monkeypatch.chdir(tmp_path)
    fit(tiny, small, "helix", config=replace(quick, epochs=1))
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert [str(w.message) for w in recwarn if "torch.jit" not in str(w.message)] == []


def test_global_state_is_restored(small, tiny, quick):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(tiny, small, "helix", config=replace(quick, epochs=1))
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.is_grad_enabled()


def test_the_progress_bar_shows_the_monitored_metric(small, tiny, quick, capsys):
    fit(tiny, small, "helix", config=replace(quick, epochs=2), progress=True)
    shown = capsys.readouterr()
    assert "accuracy" in shown.out and "Epoch 1" in shown.out
    assert "Validation" not in shown.out and not {"tip", "TPU", "FLOPs", "Checkpoint"} & set(shown.err.split())


def test_on_epoch_receives_every_row(small, tiny, quick):
    rows = []
    result = fit(tiny, small, "helix", config=quick, on_epoch=rows.append)
    assert tuple(rows) == result.history
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert set(rows[0]) == {"epoch", "train_loss", "val_loss", "accuracy", "macro_f1"}


def test_a_result_has_parameters_speed_memory_and_sizes(trained):
    assert trained.parameters == sum(p.numel() for p in trained.model.parameters())
    assert trained.residues_per_second > 0
    assert trained.peak_memory > 10
    assert trained.sizes["train"][0] == 8
    assert "tiny on helix of small, version 1" in trained.summary()
    assert f"{trained.test['accuracy']:.4f}" in trained.summary()


@pytest.mark.slow
@pytest.mark.parametrize(("task", "metric"), [("size", "rmse"), ("inverse_folding", "perplexity"), ("buried", "auprc")])
def test_all_kinds_of_targets_train(task, metric, small, tiny, quick):
    result = fit(tiny, small, task, config=quick)
    assert math.isfinite(result.test[metric])
    assert result.task.monitor == metric
    values = [row[metric] for row in result.history]
    assert result.metrics["val"][metric] == (max if result.task.mode == "max" else min)(values)


def test_bfloat16_trains_and_keeps_float32_weights(small, tiny, quick):
    result = fit(tiny, small, "helix", config=replace(quick, precision="bfloat16"))
    assert {p.dtype for p in result.model.parameters()} == {torch.float32}
    assert math.isfinite(result.history[-1]["train_loss"])


def test_balanced_weights_are_negatives_over_positives(small, tiny):
    task = resolve_task("buried", small)
    store = prepare(small, task, build_model(tiny, task.target).plan).splits["train"]
    head = build_model(tiny, task.target).head
    counts = count_labels(task, store, seed=0)
    weight = positive_weight(task, FitConfig(pos_weight="balanced"), counts)
    loss = training_loss(task, weight)
    initialize_head(head, task, counts, weight)
    y = torch.cat([g.y for g in store])
    logits = torch.randn_like(y)
    expected = float((y == 0).sum() / (y == 1).sum())
    torch.testing.assert_close(loss(logits, y), binary_cross_entropy(logits, y, pos_weight=expected))
    assert head.last_linear.bias.abs().max() < 0.01  # balanced: even odds
    assert positive_weight(task, FitConfig(), counts) is None
    assert training_loss(task, None) is binary_cross_entropy


def test_weights_of_positives_for_classes_are_an_error(small, tiny, quick):
    with pytest.raises(OptionError, match="classification"):
        fit(tiny, small, "helix", config=replace(quick, pos_weight=2.0))


def test_balanced_class_weights_are_inverse_frequencies_with_mean_1(small, tiny):
    task = resolve_task("inverse_folding", small)
    store = prepare(small, task, build_model(tiny, task.target).plan).splits["train"]
    head = build_model(tiny, task.target).head
    counts = count_labels(task, store, seed=0)
    weight = class_weights(task, FitConfig(class_weight="balanced"), counts)
    y = torch.cat([g.y for g in store])
    y = y[y >= 0].numpy()
    expected = compute_class_weight("balanced", classes=np.unique(y), y=y)
    np.testing.assert_allclose(weight[np.unique(y)], expected, rtol=1e-6)
    initialize_head(head, task, counts, weight)
    logits = torch.randn(len(y), 20)
    known = torch.from_numpy(y)
    expected = torch.nn.functional.cross_entropy(logits, known, weight=weight)
    torch.testing.assert_close(training_loss(task, weight)(logits, known), expected)
    assert class_weights(task, FitConfig(), counts) is None


def test_a_weighted_class_is_predicted_more_often(small, tiny, quick):
    config = replace(quick, epochs=6, patience=None)
    usual, weighted = (fit(tiny, small, "helix", config=replace(config, class_weight=w)) for w in (None, {"yes": 50.0}))
    predicted = [result.confusion["test"][:, 1].sum() for result in (usual, weighted)]
    assert predicted[1] > predicted[0]


def test_weights_of_an_unknown_class_or_of_other_labels_are_an_error(small, tiny, quick):
    with pytest.raises(OptionError, match="'yess'.*'yes'"):
        fit(tiny, small, "helix", config=replace(quick, class_weight={"yess": 2.0}))
    with pytest.raises(OptionError, match="multilabel.*pos_weight"):
        fit(tiny, small, "buried", config=replace(quick, class_weight="balanced"))
    with pytest.raises(OptionError, match="classification.*class_weight"):
        fit(tiny, small, "helix", config=replace(quick, pos_weight="balanced"))


@pytest.mark.slow
def test_a_dataset_without_validation_is_an_error(small, tiny, quick):
    folder = small.examples("helix")[0].path.parent
    with pytest.raises(DatasetError, match="'small'.*'val'"):
        fit(tiny, type(small)(folder, {"train": ("1crn_A",), "test": ("1ubq_A",)}), "helix", config=quick)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["size", "helix"])  # accuracy is defined for NaN: argmax is the first class
def test_training_that_diverges_is_an_error(small, quick, task):
    diverging = ModelSpec("diverging", layers=[component("embed", reads=["aatype"], dim=8), component("linear", dim=8)])
    config = replace(quick, lr=1e38, gradient_clip=None, epochs=4, schedule="constant")
    with pytest.raises(ProtgraphError, match="'diverging'"):
        fit(diverging, small, task, config=config)


@pytest.mark.parametrize("device", ["gpu", "cuda:77"])
def test_an_unknown_device_is_an_error(device, small, tiny):
    with pytest.raises(OptionError, match=device):
        fit(tiny, small, "helix", config=FitConfig(device=device))


def test_the_learning_rate_warms_up_and_falls_along_half_a_cosine():
    rate = [learning_rate_factor(s, steps=100, schedule="cosine") for s in range(101)]
    assert rate[:6] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    assert rate[52] == pytest.approx(0.5 * (1 + math.cos(math.pi * 47 / 95)))
    assert rate[100] == pytest.approx(0, abs=1e-12)
    assert max(rate) == 1
    assert [learning_rate_factor(s, steps=100, schedule="constant") for s in (5, 50, 100)] == [1, 1, 1]


def test_a_name_selects_the_registered_task(small, tiny, quick):
    result = fit(tiny, small, "inverse_folding", config=replace(quick, epochs=1))
    assert result.task is builtin.INVERSE_FOLDING
    assert set(result.test) == {"perplexity", "perplexity_mean", "recovery", "recovery_mean", "recovery_median"}


@pytest.mark.cuda
def test_training_on_a_gpu_is_reproducible(small, tiny, quick):
    config = replace(quick, device="cuda")
    assert same_bits(fit(tiny, small, "helix", config=config), fit(tiny, small, "helix", config=config))


@pytest.mark.slow
def test_a_folder_with_a_table_of_labels_trains(structures_dir, tiny, quick, tmp_path):
    names = ("1crn", "2erl", "1fas", "1ubq", "1a8o", "1orc")
    splits = ("train",) * 4 + ("val", "test")
    lines = [f"{n},{len(n) * i},{s}" for i, (n, s) in enumerate(zip(names, splits, strict=True))]
    (tmp_path / "labels.csv").write_text("\n".join(["id,score,split", *lines]))
    result = fit(tiny, FolderDataset(structures_dir, tmp_path / "labels.csv", task="score"), "score", config=quick)
    assert (result.task.name, result.task.monitor, result.task.target.level) == ("score", "rmse", "graph")
    assert math.isfinite(result.test["rmse"])
    assert {split: proteins for split, (proteins, _) in result.sizes.items()} == {"train": 4, "val": 1, "test": 1}


@pytest.mark.slow
def test_regression_does_not_depend_on_the_unit(small, tiny, quick):
    def crowding(unit):
        def derive(residues):
            distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
            return (unit * (distance < 10).sum(1, keepdims=True)).astype(np.float32)

        target = Target("crowding", "node", "regression", 1)
        return replace(default_task(target), name="inverse_folding", derive=derive)  # without labels

    config = replace(quick, epochs=20, lr=0.02)
    usual, large = (fit(tiny, small, crowding(unit), config=config) for unit in (1.0, 4096.0))
    assert large.test["rmse"] == pytest.approx(4096 * usual.test["rmse"], rel=1e-3)
    for rows in (usual, large):
        assert rows.history[-1]["train_loss"] < 0.7 * rows.history[0]["train_loss"]


def test_a_constant_prediction_without_a_correlation_trains_and_is_reported(small, tiny, quick, tmp_path):
    task = replace(default_task(Target("size", "graph", "regression", 1)), monitor="pearson_overall")
    result = fit("majority", small, task, config=replace(quick, epochs=3))
    assert math.isnan(result.test["pearson_overall"]) and math.isfinite(result.test["rmse"])
    assert result.best_epoch == 1
    assert any("pearson_overall is undefined" in note and "Epoch 1" in note for note in result.notes)
    assert "pearson_overall –" in result.summary() and "nan" not in result.summary()
    assert math.isnan(load_checkpoint(result.save(tmp_path / "m.safetensors")).metrics["test"]["pearson_overall"])
    learned = fit(tiny, small, task, config=replace(quick, epochs=3))
    assert not any("undefined" in note for note in learned.notes)


@pytest.mark.slow
def test_a_correlation_that_the_labels_leave_undefined_is_an_error(small, tiny, quick):
    def derive(residues):
        return np.full((1, 1), len(residues) if len(residues) not in (70, 61) else 5, np.float32)

    target = Target("y", "graph", "regression", 1)
    task = replace(default_task(target), name="inverse_folding", derive=derive, monitor="pearson_overall")
    lengths = {len(small.read(example)) for example in small.examples("size", "val")}
    assert lengths <= {70, 61}, lengths
    with pytest.raises(ProtgraphError, match="'val' needs more labels"):
        fit(tiny, small, task, config=quick)

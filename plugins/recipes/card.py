"""Report of a recipe on its model: results on each split, calls, the page of the card, and a reliability diagram."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from protgraph import registry
from protgraph.checkpoint import CallCounts, CallRule, Checkpoint, Comparison, ModelCard, SplitResult
from protgraph.data import Target, TaskCard
from protgraph.evaluation import (
    CalibrationMap,
    bootstrap_scores,
    calibration_scores,
    cluster_scores,
    cluster_weights,
    count_split,
    label_events,
    percentile_interval,
)
from protgraph.inference import has_sites, probabilities, target_names
from protgraph.task import SplitPredictions, Task, best_threshold, compute_metrics, known_labels

__all__ = [
    "card_page",
    "comparisons_of",
    "count_calls",
    "example_noun",
    "find_calls",
    "mutation_calls",
    "site_calls",
    "split_result",
    "write_reliability_figure",
]

_COLORS = {"uncalibrated": "#999999", "calibrated": "#0072b2"}


def split_result(
    task: Task, predictions: SplitPredictions, checkpoint: Checkpoint, clusters: Sequence[int] = ()
) -> SplitResult:
    """Return metrics of a task with 95 % intervals over clusters, and calibration errors with and without calibration.

    ``clusters`` are those of the proteins of the split; without them, intervals are over proteins. If a cluster has
    several proteins, there are also metrics with one vote for each cluster.

    The predictions have uncalibrated logits. Metrics of a regression are of the calibrated values.
    """
    target, calibration = checkpoint.model.target, checkpoint.calibration
    predictions = predictions.with_threshold(checkpoint.threshold)
    if calibration is not None and target.kind == "regression":
        predictions = replace(predictions, logits=calibration.probabilities(predictions.logits, target))
    values = compute_metrics(task.metrics, predictions, task=task.name)
    metrics: dict[str, tuple[float | None, float | None, float | None]] = {}
    for metric in task.metrics:
        interval = percentile_interval(bootstrap_scores(predictions, metric, clusters=clusters))
        metrics[metric.name] = _finite(values[metric.name]), _finite(interval.low), _finite(interval.high)
    size = count_split(predictions, clusters)
    cluster_metrics: dict[str, tuple[float | None, float | None, float | None]] = {}
    if size.clusters is not None:
        for metric in task.metrics:
            of_clusters = cluster_scores(predictions, metric, clusters=clusters)
            if of_clusters is not None:
                interval = percentile_interval(of_clusters[1:])
                limits = _finite(interval.low), _finite(interval.high)
                cluster_metrics[metric.name] = _finite(of_clusters[0]), *limits
    scores = {}
    if calibration is not None and target.kind != "regression":
        before = calibration_scores(probabilities(predictions.logits, target), predictions, target)
        after = calibration_scores(calibration.probabilities(predictions.logits, target), predictions, target)
        scores = {
            "ece_before": before.ece,
            "ece_after": after.ece,
            "brier_before": before.brier,
            "brier_after": after.brier,
        }
        if size.clusters is not None:
            p = calibration.probabilities(predictions.logits, target)
            scores["ece_after_clusters"] = _cluster_calibration_error(p, predictions, clusters)
    known = known_labels(predictions.y)
    return SplitResult(
        proteins=size.proteins,
        clusters=size.clusters,
        labels=int(known.sum()),
        positives=_positives(predictions, target.size, target.kind),
        metrics=metrics,
        cluster_metrics=cluster_metrics,
        calibration=scores,
    )


def _cluster_calibration_error(p: Tensor, predictions: SplitPredictions, clusters: Sequence[int]) -> float:
    """Return the expected calibration error of probabilities ``(N, C)`` with one vote for each cluster."""
    numbers, protein_of_row = predictions.protein_of_rows.unique(return_inverse=True)
    events = label_events(p, predictions)
    bins = events.bins(protein_of_row.numpy()[events.row], len(numbers))
    return float(bins.error(cluster_weights([clusters[number] for number in numbers.tolist()])[None])[0])


def _positives(predictions: SplitPredictions, size: int, kind: str) -> list[int]:
    """Return the number of known labels of each class; none for other kinds of targets."""
    y = predictions.y
    if kind == "classification":
        return y[known_labels(y)].bincount(minlength=size).tolist()
    if kind == "multilabel":
        return [int((y[:, i] == 1).sum()) for i in range(size)]
    return []


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def card_page(card: ModelCard) -> str:
    """Return the card as Markdown."""
    unit = example_noun(card.task)
    lines = [f"# {card.name}", "", card.summary, "", "```bash", f"protgraph {_usage(card, unit)}", "```", ""]
    version = f", version {card.dataset_version}" if card.dataset_version else ""
    rows = [
        ("reads", card.reads),
        ("input", card.input or "structure or sequence files, as for every model"),
        ("trained on", f"`{card.task}` of `{card.dataset}`{version}"),
        ("license of the training data", card.license + (" (**non-commercial use only**)" * card.non_commercial)),
        ("terms of the weights", card.weights_note),
        ("left out of training", card.left_out),
        ("citation", card.citation),
        ("members", f"{'; '.join(card.members)} ({card.parameters} parameters)"),
        ("calibration", card.calibration),
        ("versions", ", ".join(f"{name} {number}" for name, number in card.versions.items())),
    ]
    lines += ["| property | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows if value), ""]
    lines += ["## Results", "", *_results(card, unit), ""]
    lines += _calls(card, unit)
    if any(result.calibration for result in card.splits.values()):
        lines += ["## Calibration", "", *_calibration(card), "", "![reliability diagram](reliability.svg)", ""]
    lines += _comparisons(card)
    if card.limits:
        lines += ["## Limits", "", *(f"- {limit}" for limit in card.limits), ""]
    lines += ["## Reproduce", "", "```bash", f"protgraph recipe {card.name} -o FOLDER", "```"]
    return "\n".join(lines) + "\n"


def example_noun(task: str) -> str:
    """Return what the examples of a task are: "variants" for tasks of mutations, else "proteins"."""
    of_mutations = task in registry.tasks.names() and registry.tasks.get(task).target.head == "mutation"
    return "variants" if of_mutations else "proteins"


def _usage(card: ModelCard, unit: str) -> str:
    """Return the arguments of the command that uses the model."""
    if unit == "variants":
        partners = " --partners A/B" if card.task == "ddg_binding" else ""
        return f"mutate my.cif --mutations A:G42D{partners} --model {card.name} -o out.csv"
    if _hides_inputs(card.task):
        return f"embed {card.name} my.cif -o vectors.parquet"
    return f"predict {card.name} my.cif -o out.csv --structure out.cif"


def _hides_inputs(task: str) -> bool:
    """Return True for tasks that hide or corrupt a part of their inputs, whose models are used for their vectors."""
    return task in registry.tasks and registry.tasks.get(task).inputs.corrupt is not None


def _results(card: ModelCard, unit: str) -> list[str]:
    """Return the table of results, and that with one vote per cluster for splits with several proteins in a cluster."""
    has_clusters = any(result.clusters is not None for result in card.splits.values())
    counted, drawn = [unit], unit
    if has_clusters:
        counted.append("clusters")
        drawn = f"clusters of the dataset, which are drawn with all of their {unit}"
    names = list(dict.fromkeys(name for result in card.splits.values() for name in result.metrics))
    lines = [f"In brackets: 95 % bootstrap interval over {drawn}.", ""]
    lines += _table_head(["split", *counted, "labels", *names])
    for split, result in card.splits.items():
        counts = [result.proteins, result.clusters or result.proteins][: len(counted)]
        cells = [split, *map(str, counts), _labels(result), *(_cell(result.metrics, name) for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + _cluster_results(card, unit)


def _cluster_results(card: ModelCard, unit: str) -> list[str]:
    """Return the table of the results with one vote per cluster; nothing without clusters."""
    splits = {split: result for split, result in card.splits.items() if result.cluster_metrics}
    if not splits:
        return []
    names = list(dict.fromkeys(name for result in splits.values() for name in result.cluster_metrics))
    lines = ["", f"One vote per cluster: each of the {unit} counts as 1 / (number of {unit} in its cluster).", ""]
    lines += _table_head(["split", "clusters", *names])
    for split, result in splits.items():
        cells = [split, str(result.clusters), *(_cell(result.cluster_metrics, name) for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _table_head(names: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]


def _labels(result: SplitResult) -> str:
    if len(result.positives) == 1:
        return f"{result.labels}, {result.positives[0]} positive"
    return str(result.labels) + (f" ({', '.join(map(str, result.positives))})" if result.positives else "")


def _cell(metrics: Mapping[str, tuple[float | None, float | None, float | None]], name: str) -> str:
    value, low, high = metrics.get(name, (None, None, None))
    if value is None:
        return "–"
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


def _comparisons(card: ModelCard) -> list[str]:
    """Return a section with floors and rivals beside the values of the model; nothing without comparisons."""
    if not card.comparisons:
        return []
    lines = ["## Floors and rivals", "", "| split | metric | this model | other method | its value | source |"]
    lines.append("|---|---|---:|---|---:|---|")
    for other in card.comparisons:
        own = card.splits[other.split].metrics[other.metric][0]
        source = other.source if other.confirmed else f"{other.source}; not confirmed"
        value = "–" if own is None else f"{own:.3f}"
        lines.append(f"| {other.split} | {other.metric} | {value} | {other.method} | {other.value:.3f} | {source} |")
    return [*lines, ""]


def comparisons_of(results: Mapping[str, SplitResult], tasks: Mapping[str, TaskCard]) -> list[Comparison]:
    """Return the floors and published values on dataset cards for metrics of a model card.

    ``results``: results of the model on each split. ``tasks``: the task on the card of the dataset of a split, by
    split.
    """
    comparisons = []
    for split, task in tasks.items():
        known = results[split].metrics if split in results else {}
        for kind, methods in (("floor", task.floors), ("rival", task.published)):
            for other in methods:
                is_of_split = split == other.split or split.endswith(f"_{other.split}")
                if is_of_split and other.metric in known:
                    data = {"kind": kind, "method": other.method, "split": split, "metric": other.metric}
                    values = {"value": other.value, "source": other.source, "confirmed": other.confirmed}
                    comparisons.append(Comparison.model_validate(data | values))
    return comparisons


def _calls(card: ModelCard, unit: str) -> list[str]:
    """Return a section with the rule of each call and its precision and recall on each split; nothing without calls."""
    if not card.calls:
        return []
    noun = "variants" if unit == "variants" else "residues"
    lines = [
        "## Calls",
        "",
        f"Thresholds are chosen on validation. Precision: fraction of the called {noun} that are right; recall: "
        f"fraction of the {noun} to call that are called.",
        "",
        f"| call | value | right if | split | called {noun} | precision | recall |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    for rule in card.calls:
        for split, counts in rule.splits.items():
            numbers = f"{counts.called} | {counts.precision:.3f} | {counts.recall:.3f}"
            lines.append(f"| {rule.name} | {rule.range} | {rule.truth} | {split} | {numbers} |")
    return [*lines, ""]


def _calibration(card: ModelCard) -> list[str]:
    columns = {
        "ece_before": "expected calibration error before",
        "ece_after": "after",
        "ece_after_clusters": "after, one vote per cluster",
        "brier_before": "Brier score before",
        "brier_after": "after",
    }
    if not any("ece_after_clusters" in result.calibration for result in card.splits.values()):
        del columns["ece_after_clusters"]
    lines = _table_head(["split", *columns.values()])
    for split, result in card.splits.items():
        values = [result.calibration.get(key) for key in columns]
        cells = ["–" if value is None else f"{value:.4f}" for value in values]
        lines.append("| " + " | ".join([split, *cells]) + " |")
    return lines


def write_reliability_figure(
    path: Path, splits: Mapping[str, SplitPredictions], calibration: CalibrationMap, target: Target
) -> None:
    """Draw a reliability diagram for each split, uncalibrated and calibrated; the same input gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "reliability", "font.size": 8}):
        figure = Figure(figsize=(2.6 * len(splits), 2.6), layout="constrained")
        axes = figure.subplots(1, len(splits), squeeze=False)[0]
        for axis, (split, predictions) in zip(axes, splits.items(), strict=True):
            axis.plot([0, 1], [0, 1], color="#cccccc", linewidth=0.8)
            curves = {
                "uncalibrated": probabilities(predictions.logits, target),
                "calibrated": calibration.probabilities(predictions.logits, target),
            }
            for label, p in curves.items():
                curve = label_events(p, predictions).bins().curve()
                x, y = [point[0] for point in curve], [point[1] for point in curve]
                axis.plot(x, y, marker="o", markersize=2.5, linewidth=1, color=_COLORS[label], label=label)
            axis.set(title=split, xlabel="predicted probability", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes[0].set_ylabel("observed frequency")
        axes[0].legend(frameon=False, fontsize=7)
        figure.savefig(path, format="svg", metadata={"Date": None})


# --- calls that a model supports, with their precision and recall ----------------------------------------------------


_LARGE = 1.0  # kcal/mol, a measured ΔΔG that matters: twice the difference of measurements of one mutation
_HALF = 0.5


def site_calls(checkpoint: Checkpoint, predictions: Mapping[str, SplitPredictions], truth: str) -> list[CallRule]:
    """Return the rule by which residues are called, for a model with one yes/no label per residue; else none.

    The threshold of the checkpoint, which validation chose, is written as a calibrated probability.

    ``predictions``: uncalibrated predictions of each split. ``truth``: what makes a call right, in words; "" for a
    sentence with the label.
    """
    target, threshold, calibration = checkpoint.model.target, checkpoint.threshold, checkpoint.calibration
    if not has_sites(target) or threshold is None or "val" not in predictions:
        return []
    label = target_names(target)[0]
    logit = threshold[None]  # (1, 1)
    probability = probabilities(logit, target) if calibration is None else calibration.probabilities(logit, target)
    splits = {}
    for split, p in predictions.items():
        logits, y = next(iter(p.columns()))  # of residues with a known label
        splits[split] = count_calls(logits >= threshold[0], y == 1)
    return [
        CallRule(name=label, at_least=float(probability), truth=truth or f"the label {label!r} is 1", splits=splits)
    ]


def mutation_calls(predictions: Mapping[str, SplitPredictions], *, of_binding: bool = False) -> list[CallRule]:
    """Return the rules by which a mutation is called destabilizing, stabilizing or neutral, from ΔΔG in kcal/mol.

    Destabilizing: the threshold with the largest Matthews correlation on validation, for a measured ΔΔG of at least
    1 kcal/mol. Stabilizing: the largest threshold for which at least half of the called variants of validation have a
    measured ΔΔG of 0 or less; nothing is called stabilizing without one. Neutral: between both. The names for binding
    are "weaker", "tighter" and "neutral".

    ``predictions``: predicted and measured ΔΔG of each split, positive = destabilizing.
    """
    unfavorable, favorable = ("weaker", "tighter") if of_binding else ("destabilizing", "stabilizing")
    values = {split: (p.logits[:, 0].double(), p.y[:, 0].double()) for split, p in predictions.items()}
    predicted, measured = values["val"]
    high = float(best_threshold(replace(predictions["val"], y=(predictions["val"].y >= _LARGE).float())))
    low = _largest_supported(predicted, measured <= 0)
    large, small = f"the measured ΔΔG is at least {_LARGE:g} kcal/mol", "the measured ΔΔG is 0 or negative"
    counts = {split: count_calls(p >= high, y >= _LARGE) for split, (p, y) in values.items()}
    rules = [CallRule(name=unfavorable, at_least=high, truth=large, splits=counts)]
    if low is not None and low < high:
        between = f"the measured ΔΔG is positive and below {_LARGE:g} kcal/mol"
        counts = {}
        for split, (p, y) in values.items():
            counts[split] = count_calls((p >= low) & (p < high), (y > 0) & (y < _LARGE))
        rules.append(CallRule(name="neutral", at_least=low, below=high, truth=between, splits=counts))
        counts = {split: count_calls(p < low, y <= 0) for split, (p, y) in values.items()}
        rules.append(CallRule(name=favorable, below=low, truth=small, splits=counts))
    return rules


def _largest_supported(predicted: Tensor, right: Tensor) -> float | None:
    """Return the largest threshold below which at least half of the predictions ``(N,)`` are right, or None."""
    order = predicted.argsort()
    precision = right[order].double().cumsum(0) / torch.arange(1, len(order) + 1)  # of the lowest k predictions
    supported = (precision[:-1] >= _HALF).nonzero().flatten()
    if len(supported) == 0:
        return None
    last = int(supported[-1])
    return float(predicted[order[last : last + 2]].mean())


def find_calls(checkpoint: Checkpoint, predictions: Mapping[str, SplitPredictions], truth: str) -> list[CallRule]:
    """Return the calls that a model supports: of residues, or of mutations; none for other models."""
    target = checkpoint.model.target
    if "val" in predictions and target.head_name == "mutation" and target.unit == "kcal/mol":
        return mutation_calls(predictions, of_binding="binding" in target.name)
    return site_calls(checkpoint, predictions, truth)


def count_calls(called: Tensor, positive: Tensor) -> CallCounts:
    """Count what is called and what should be, two masks of the same shape."""
    return CallCounts(called=int(called.sum()), positives=int(positive.sum()), correct=int((called & positive).sum()))

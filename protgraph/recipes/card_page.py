"""Page of a model card, README.md of the folder of a trained model."""

from __future__ import annotations

from protgraph import registry
from protgraph.train.trained_model import ModelCard, SplitResult

__all__ = ["card_page", "example_noun"]


def card_page(card: ModelCard) -> str:
    """Return the card as Markdown."""
    unit = example_noun(card.task)
    use = f"predict {card.name} my.cif -o out.csv --structure out.cif"
    if unit == "variants":
        partners = " --partners A/B" if card.task == "ddg_binding" else ""
        use = f"mutate my.cif --mutations A:G42D{partners} --model {card.name} -o out.csv"
    lines = [f"# {card.name}", "", card.summary, "", "```bash", f"protgraph {use}", "```", ""]
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
    lines += ["## Results", "", f"In brackets: 95 % bootstrap interval over {unit}.", "", *_results(card, unit), ""]
    if any(result.calibration for result in card.splits.values()):
        lines += ["## Calibration", "", *_calibration(card), "", "![reliability diagram](reliability.svg)", ""]
    if card.limits:
        lines += ["## Limits", "", *(f"- {limit}" for limit in card.limits), ""]
    lines += ["## Reproduce", "", "```bash", f"protgraph recipe {card.name} -o FOLDER", "```"]
    return "\n".join(lines) + "\n"


def example_noun(task: str) -> str:
    """Return what the examples of a task are: "variants" for tasks of mutations, else "proteins"."""
    of_mutations = task in registry.tasks.names() and registry.tasks.get(task).target.head == "mutation"
    return "variants" if of_mutations else "proteins"


def _results(card: ModelCard, unit: str) -> list[str]:
    names = list(dict.fromkeys(name for result in card.splits.values() for name in result.metrics))
    header = ["split", unit, "labels", *names]
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    for split, result in card.splits.items():
        cells = [split, str(result.proteins), _labels(result), *(_cell(result, name) for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _labels(result: SplitResult) -> str:
    if len(result.positives) == 1:
        return f"{result.labels}, {result.positives[0]} positive"
    return str(result.labels) + (f" ({', '.join(map(str, result.positives))})" if result.positives else "")


def _cell(result: SplitResult, name: str) -> str:
    value, low, high = result.metrics.get(name, (None, None, None))
    if value is None:
        return "–"
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


def _calibration(card: ModelCard) -> list[str]:
    lines = [
        "| split | expected calibration error before | after | Brier score before | after |",
        "|---|---:|---:|---:|---:|",
    ]
    keys = ("ece_before", "ece_after", "brier_before", "brier_after")
    for split, result in card.splits.items():
        lines.append(f"| {split} | " + " | ".join(f"{result.calibration[key]:.4f}" for key in keys) + " |")
    return lines

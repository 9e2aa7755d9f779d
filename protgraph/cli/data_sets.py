"""Commands ``protgraph data list`` and ``info``: datasets of packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.console import print_rows

if TYPE_CHECKING:
    from protgraph.data.datasets import Dataset, TaskCard
    from protgraph.data.datasets.card import KnownLeak, ReferenceScore

__all__ = ["list_datasets_command", "show_dataset_command"]

ENTRY_POINTS = {
    "protgraph.commands": {
        "data.list": "list_datasets_command",
        "data.info": "show_dataset_command",
    }
}


def list_datasets_command() -> None:
    """List the datasets: tasks, proteins, license, and the folder of those that are prepared.

    \b
    Example:
      protgraph data list
    """
    from protgraph import registry

    rows = [("name", "proteins", "license", "tasks", "where")]
    for name in registry.datasets.names():
        dataset = registry.datasets.create(name)
        proteins = sum(count.proteins for count in dataset.card.splits.values())
        tasks = list(dataset.card.tasks)
        shown = ", ".join(tasks[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")
        rows.append((name, str(proteins), dataset.card.license, shown, dataset.place))
    print_rows(rows)


def show_dataset_command(name: Annotated[str, typer.Argument(help="Dataset, see 'protgraph data list'.")]) -> None:
    """Print the card of a dataset.

    The card has labels, splits with counts and prevalence, license, citation, sources, and scores of trivial and
    published methods.

    \b
    Example:
      protgraph data info dna_site
    """
    from protgraph import registry

    dataset = registry.datasets.create(name)
    typer.echo("\n".join(_card_lines(dataset)))


def _card_lines(dataset: Dataset) -> list[str]:
    card, terms = dataset.card, dataset.card.provenance
    lines = [str(dataset.describe()), f"where: {dataset.place}", f"description: {_flat(card.description)}"]
    lines += [f"license: {card.license}. {terms.redistribution}".rstrip(), f"citation: {_flat(card.citation)}"]
    lines += [f"trained models: {terms.weights_note}"] if terms.weights_note else []
    lines += [f"train on: {terms.train_on}"] if terms.train_on else []
    lines += [f"source: https://github.com/{s.repository} at {s.commit}" for s in terms.sources]
    lines += [_leak_line(leak, card.splits[leak.split].proteins) for leak in terms.known_leaks]
    for name, task in card.tasks.items():
        lines += [f"labels of {name}: {_flat(task.labels)}", *_prevalence_lines(task)]
        lines += [_score_line("floor", score) for score in task.floors]
        lines += [_score_line("published", score) for score in task.published]
    return lines


def _leak_line(leak: KnownLeak, proteins: int) -> str:
    close = f"{leak.close} at ≥ 95 % identity"
    return (
        f"known leak: {leak.related} of {proteins} proteins of {leak.split} have a relative in {leak.other} ({close}; "
        f"{leak.source})"
    )


def _prevalence_lines(task: TaskCard) -> list[str]:
    """Return the prevalence of a binary label in each split."""
    if task.target.kind != "multilabel" or task.target.size != 1:
        return []
    counts = {split: count for split, count in task.counts.items() if count.labeled and count.per_class}
    return [f"  prevalence, {split}: {c.per_class[0] / (c.labeled or 1):.4f}" for split, c in counts.items()]


def _score_line(kind: str, score: ReferenceScore) -> str:
    notes = [score.trained_on and f"trained on {score.trained_on}", score.source]
    notes += ["" if score.confirmed else "not confirmed"]
    return f"  {kind}, {score.split}: {score.metric} {score.value:g}, {score.method} ({'; '.join(filter(None, notes))})"


def _flat(text: str) -> str:
    return " ".join(text.split())

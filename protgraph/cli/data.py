"""Command group ``protgraph data``: list, describe, inspect and verify datasets before training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.command_group import CommandGroup
from protgraph.cli.console import print_rows
from protgraph.cli.read_options import Kind, LabelColumns, LabelFile, UnknownTexts, reads_structures

if TYPE_CHECKING:
    from protgraph.data.datasets import Dataset, TaskCard
    from protgraph.data.datasets.card import KnownLeak, ReferenceScore
    from protgraph.structure import ReadOptions

__all__ = ["GROUP", "inspect_command", "list_datasets_command", "show_dataset_command", "verify_command"]

ENTRY_POINTS = {
    "protgraph.commands": {
        "data": "GROUP",
        "data.inspect": "inspect_command",
        "data.verify": "verify_command",
        "data.list": "list_datasets_command",
        "data.info": "show_dataset_command",
    }
}

GROUP = CommandGroup(
    """Datasets and graph stores before training.

\b
Examples:
  protgraph data list
  protgraph data prepare dna_site --download
  protgraph data inspect structures/ --labels labels.csv
  protgraph data split structures/ -o splits.csv
  protgraph data check pdb_core
  protgraph data verify store
""",
    first=("list", "info", "prepare", "inspect", "split", "check", "verify"),
)


@reads_structures()
def inspect_command(
    data: Annotated[
        list[str], typer.Argument(help="Dataset by name, folder or graph store, structure or FASTA files, patterns.")
    ],
    labels: LabelFile = None,
    task: Annotated[
        str | None, typer.Option(help="Task, or label column of the table. Default: every label column.")
    ] = None,
    column: LabelColumns = None,
    kind: Kind = None,
    unknown: UnknownTexts = None,
    seed: Annotated[int, typer.Option(help="Seed of the random split of a folder.")] = 0,
    *,
    read: ReadOptions,
) -> None:
    """Print what training would use: files, how each label column is understood, and the splits with their counts.

    Files that the table names and residues that a file does not have are listed, all of them with their rows. The exit
    code is then 1, also if a file cannot be read or no label column can be used. Nothing is trained or written.

    \b
    Examples:
      protgraph data inspect structures/ --labels labels.csv
      protgraph data inspect structures/ --labels labels.csv --task site --seed 1
      protgraph data inspect structures/ --task secondary_structure
      protgraph data inspect pdb_core
    """
    from protgraph.labels import inspect_dataset

    result = inspect_dataset(
        data[0] if len(data) == 1 else data,
        labels=labels,
        task=task,
        columns=column or None,
        kind=kind,
        unknown=unknown or None,
        seed=seed,
        read=read,
    )
    typer.echo(str(result))
    if result.has_faults:
        raise typer.Exit(1)


def verify_command(
    stores: Annotated[list[Path], typer.Argument(help="Graph stores of featurize, or their addresses.")],
) -> None:
    """Compare the SHA-256 checksum of every shard of a graph store with its description.

    Damaged shards are listed. Start the command that wrote the store again to write only these.
    Exit code 1: a shard is damaged; 2: not a graph store, or a shard is missing or incomplete.

    \b
    Example:
      protgraph data verify store
    """
    from protgraph.data.store import open_store
    from protgraph.wording import count_noun

    is_damaged = False
    for path in stores:
        store = open_store(path)
        damaged = store.damaged_shards()
        counts = [count_noun(len(store.shards), "shard"), count_noun(len(store), "protein")]
        counts += [count_noun(store.num_residues, "residue"), count_noun(sum(s.bytes for s in store.shards), "byte")]
        typer.echo(f"{path}: {', '.join(counts)}; {len(damaged)} damaged")
        for shard in damaged:
            typer.echo(f"damaged: {shard}", err=True)
        is_damaged |= bool(damaged)
    if is_damaged:
        raise typer.Exit(1)


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

"""Commands ``protgraph data list``, ``info`` and ``prepare``: datasets of packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.console import print_rows

if TYPE_CHECKING:
    from protgraph.data.datasets import Dataset, TaskCard
    from protgraph.data.datasets.card import KnownLeak, ReferenceScore

__all__ = ["list_datasets_command", "prepare_dataset_command", "show_dataset_command"]

ENTRY_POINTS = {
    "protgraph.commands": {
        "data.list": "list_datasets_command",
        "data.info": "show_dataset_command",
        "data.prepare": "prepare_dataset_command",
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
        rows.append((name, str(proteins), dataset.card.license, shown, _place(dataset)))
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


def prepare_dataset_command(
    name: Annotated[str, typer.Argument(help="Dataset, see 'protgraph data list'.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder of the source: a clone of its repository.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download the source at the commit of the card.")
    ] = False,
    mirror: Annotated[
        list[str] | None,
        typer.Option(help="Address to try first, with {repository}, {commit} and {path}; repeat for more."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use files that were downloaded before.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write. Default: in the cache folder.")
    ] = None,
) -> None:
    """Convert the source of a dataset, once: proteins alone, labels, checksums.

    Ligands, nucleic acids and partner chains are removed from the structures. Proteins, residues and labels of each
    split are counted and compared with the card. An interrupted run is continued. The folder can also be used as
    structures with a label table: --data FOLDER/structures --labels FOLDER/residue_labels.parquet.

    \b
    Examples:
      protgraph data prepare dna_site --from GraphSite/
      protgraph data prepare dna_site --download
    """
    from protgraph import registry
    from protgraph.data.datasets.preparation import prepare_dataset
    from protgraph.data.datasets.prepared_dataset import PreparedDataset
    from protgraph.data.datasets.source_download import download_source
    from protgraph.errors import DatasetError, OptionError, list_first

    known = registry.datasets.create(name)
    if not isinstance(known, PreparedDataset):
        raise DatasetError(f"dataset {name!r} is part of its package and needs no preparation.")
    dataset = known if out is None else type(known)(folder=str(out))
    if (source is None) == (not download):
        raise OptionError("data prepare: give either --from FOLDER or --download.")
    if source is None:
        source = download_source(
            dataset.card, dataset.card_path.parent, mirrors=tuple(mirror or ()), offline=offline or None
        )
    result = prepare_dataset(dataset, source)
    reused = f", {result.reused} of them there before" if result.reused else ""
    typer.echo(f"{result.folder}: {result.proteins} proteins{reused}; counts as on the card")
    if result.without_ca:
        number = len(result.without_ca)
        typer.echo(f"note: {number} labeled residues without CA atom are left out: {list_first(result.without_ca, 10)}")
    if result.failures:
        table = result.folder / "failures.tsv"
        typer.echo(
            f"note: {result.failures} variants without a value, or that do not fit their structure, are left out, see "
            f"{table}"
        )


def _place(dataset: Dataset) -> str:
    """Return the folder of a prepared dataset, or that it is not prepared."""
    from protgraph.data.datasets.prepared_dataset import PreparedDataset

    if not isinstance(dataset, PreparedDataset):
        return "with the package"
    return str(dataset.folder) if dataset.is_prepared else "not prepared"


def _card_lines(dataset: Dataset) -> list[str]:
    card, terms = dataset.card, dataset.card.provenance
    lines = [str(dataset.describe()), f"where: {_place(dataset)}", f"description: {_flat(card.description)}"]
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

"""Command group ``protgraph data``: datasets before training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.command_group import CommandGroup
from protgraph.cli.label_options import Kind, LabelColumns, LabelFile, UnknownTexts
from protgraph.cli.read_options import reads_structures

if TYPE_CHECKING:
    from protgraph.structure import ReadOptions

__all__ = ["GROUP", "inspect_command", "verify_command"]

ENTRY_POINTS = {
    "protgraph.commands": {
        "data": "GROUP",
        "data.inspect": "inspect_command",
        "data.verify": "verify_command",
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

"""Command group ``protgraph data``: datasets before training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.label_options import Columns, Kind, LabelFile, UnknownTexts
from protgraph.cli.read_options import reads_structures

if TYPE_CHECKING:
    from protgraph.structure import ReadOptions

__all__ = ["GROUP_HELP", "SUBCOMMANDS", "inspect_command"]

SUBCOMMANDS = {"inspect": "protgraph.cli.data:inspect_command"}
"""Subcommand → its function."""

GROUP_HELP = """Datasets before training.

\b
Example:
  protgraph data inspect structures/ --labels labels.csv
"""


@reads_structures()
def inspect_command(
    data: Annotated[
        list[str], typer.Argument(help="Dataset by name, folder or graph store, structure or FASTA files, patterns.")
    ],
    labels: LabelFile = None,
    task: Annotated[
        str | None, typer.Option(help="Task, or label column of the table. Default: every label column.")
    ] = None,
    column: Columns = None,
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
    from protgraph.train import inspect_dataset

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

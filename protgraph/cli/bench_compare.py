"""``protgraph bench compare``: test two benchmark runs against each other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from protgraph.errors import OptionError

__all__ = ["bench_compare_command"]

ENTRY_POINTS = {"protgraph.commands": {"bench.compare": "bench_compare_command"}}


def bench_compare_command(
    a: Annotated[Path, typer.Argument(help="Folder of a finished run, e.g. runs/before.")],
    b: Annotated[Path, typer.Argument(help="Folder of another run on the same data.")],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            metavar="A=B",
            help="Compare model A of the first run with model B of the second; repeat for more.  [default: models of "
            "the same name]",
        ),
    ] = None,
) -> None:
    """Test two benchmark runs against each other, paired over proteins and seeds.

    Prints a table with a verdict per task, split, model and metric: scores, the difference with its 95 % interval over
    proteins, the mean difference per protein, and the p-value of a sign permutation test over proteins, adjusted by
    Holm's method for all rows. Runs on other versions of a dataset, other proteins or other labels are refused.

    \b
    Examples:
      protgraph bench compare runs/before runs/after
      protgraph bench compare runs/one runs/two --models gcn=mpnn
    """
    from protgraph.bench.run_comparison import compare_runs, differences_table

    for text in models or ():
        if text.count("=") != 1 or not all(text.split("=")):
            raise OptionError(f"--models {text!r}. Allowed: the name in run A, '=', and the name in run B.")
    differences = compare_runs(a, b, models=dict(text.split("=") for text in models or ()) or None)
    typer.echo(differences_table(differences))
    counts = Counter(difference.verdict for difference in differences)
    typer.echo(f"\nA: {a}, B: {b}: {', '.join(f'{verdict}: {n}' for verdict, n in counts.items())}")

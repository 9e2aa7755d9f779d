"""``protgraph speed``: run time of protgraph relative to other implementations, measured in turns."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from protgraph.errors import MissingExtraError, OptionError

__all__ = ["speed_command"]


def speed_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Measurement: attention, collate, edges, featurize, generate, layers, neighbors or proteinmpnn.  "
            "[default: all]"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Approximate duration of each measurement, seconds.")] = 5.0,
    files: Annotated[
        list[Path] | None, typer.Option(help="Structure file or folder for featurize; can be repeated.")
    ] = None,
) -> None:
    """Measure run times of protgraph, plain implementations and installed libraries on the same input, in turns.

    Compare ratios; milliseconds depend on the machine. The title of each table is the input, and the caption a lower
    bound of the work. Requires a clone of the repository, which has the folder 'benchmarks'.

    \b
    Examples:
      protgraph speed attention
      protgraph speed featurize --files my_structures
      protgraph speed --seconds 2
    """
    from rich.console import Console
    from rich.table import Table

    from protgraph.structure.io import expand_files

    benchmarks = _import_benchmarks()
    if not seconds >= 0:
        raise OptionError(f"--seconds {seconds}. Allowed: 0, for one turn each, or more.")
    console = Console()
    paths = expand_files(files) if files else ()
    for chosen in [name] if name else list(benchmarks.MEASUREMENTS):
        for m in benchmarks.measure(chosen, seconds=seconds, files=paths):
            caption = f"lower bound: {m.lower_bound}\nagreement: {m.agreement}"
            table = Table(title=m.title, title_justify="left", caption=caption, caption_justify="left")
            table.add_column("implementation")
            table.add_column("median ms", justify="right")
            table.add_column(f"× {m.reference}", justify="right")
            for row in m.rows:
                table.add_row(row.name, f"{row.median_ms:.3g}", f"{row.ratio:.2f}")
            console.print(table)
            console.print()


def _import_benchmarks() -> ModuleType:
    """Import the folder ``benchmarks`` of the checkout that the installed package is in.

    Raises
    ------
    MissingExtraError
        The package was installed from a wheel, which does not contain the folder.
    """
    checkout = Path(__file__).parents[2]
    if not (checkout / "benchmarks" / "measurements.py").is_file():
        raise MissingExtraError(
            f"protgraph speed: {checkout / 'benchmarks'} not found. Speed measurements are in the folder 'benchmarks' "
            "of the source repository, which the installed package does not contain. Clone the repository and run "
            "'pip install --editable .' in it."
        )
    sys.path.insert(0, str(checkout))
    return import_module("benchmarks")

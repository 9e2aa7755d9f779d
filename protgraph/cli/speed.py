"""``protgraph speed``: how fast each way of doing one thing is, as ratios in one run."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from protgraph.errors import MissingExtraError

__all__ = ["speed_command"]


def speed_command(
    name: Annotated[
        str | None,
        typer.Argument(help="attention, collate, edges, featurize, generate, layers, neighbors, proteinmpnn; or all."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="About how long each part is measured.")] = 5.0,
    files: Annotated[
        list[Path] | None, typer.Option(help="For featurize: a structure file, or a folder of them; again for more.")
    ] = None,
) -> None:
    """Measure our way of doing something beside the naive one and the peers that are installed, in turns.

    Read the ratios: milliseconds are the machine's. Titles say on what, footers what any way has to do.

    \b
    Examples:
      protgraph speed attention
      protgraph speed featurize --files my_structures
      protgraph speed --seconds 2
    """
    from rich.console import Console
    from rich.table import Table

    from protgraph.cli.source_files import structure_files

    benchmarks = _import_benchmarks()
    console = Console()
    paths = structure_files(files) if files else ()
    for chosen in [name] if name else list(benchmarks.MEASUREMENTS):
        for m in benchmarks.measure(chosen, seconds=seconds, files=paths):
            caption = f"floor: {m.floor}\nchecked: {m.checked}"
            table = Table(title=m.title, title_justify="left", caption=caption, caption_justify="left")
            table.add_column("way")
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

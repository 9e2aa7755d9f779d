"""``protgraph speed``: run time of protgraph relative to other implementations, measured in turns."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.console import text_console
from protgraph.errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["speed_command"]


def speed_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Measurement: attention, collate, edges, estimate, featurize, generate, layers, memory, neighbors, "
            "predict, proteinmpnn, scale, scan, store or train.  "
            "[default: all]"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Approximate duration of each measurement, seconds.")] = 5.0,
    files: Annotated[
        list[Path] | None, typer.Option(help="Structure file or folder for featurize; can be repeated.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda for attention, edges, estimate, layers and train.")] = "cpu",
) -> None:
    """Measure run times of protgraph, plain implementations and installed libraries on the same input, in turns.

    Compare ratios; milliseconds depend on the machine. The title of each table is the input, and the caption a lower
    bound of the work. Requires a clone of the repository, which has the folder 'benchmarks'.

    \b
    Examples:
      protgraph speed attention
      protgraph speed featurize --files my_structures
      protgraph speed train
      protgraph speed layers --device cuda
      protgraph speed --seconds 2
    """
    from protgraph.structure.io import expand_files
    from protgraph.train import FitConfig

    benchmarks = _import_benchmarks()
    if not seconds >= 0:
        raise OptionError(f"--seconds {seconds}. Allowed: 0, for one turn each, or more.")
    console = text_console()
    paths = expand_files(files) if files else ()
    device = str(FitConfig(device=device).torch_device())
    everything = [*benchmarks.MEASUREMENTS, *benchmarks.COSTS] if device == "cpu" else benchmarks.ON_GPU
    for chosen in [name] if name else sorted(everything):
        if chosen in benchmarks.COSTS and not files:
            tables = [_cost_table(costs) for costs in benchmarks.measure_costs(chosen, seconds=seconds, device=device)]
        else:
            tables = [_ratio_table(m) for m in benchmarks.measure(chosen, seconds=seconds, files=paths, device=device)]
        for table in tables:
            console.print(table)
            console.print()


def _ratio_table(m: Any) -> Table:
    """Return the table of a ``benchmarks.Measurement``: implementations of one computation."""
    from rich.table import Table

    caption = f"lower bound: {m.lower_bound}\nagreement: {m.agreement}"
    table = Table(title=m.title, title_justify="left", caption=caption, caption_justify="left")
    table.add_column("implementation")
    table.add_column("ms", justify="right")
    table.add_column(f"× {m.reference}", justify="right")
    for row in m.rows:
        spread = f" ± {row.spread:.2f}" if row.spread else ""
        table.add_row(row.name, f"{row.ms:.3g}", f"{row.ratio:.2f}{spread}")
    return table


def _cost_table(costs: Any) -> Table:
    """Return the table of a ``benchmarks.CostTable``: costs of several models or steps."""
    from rich.table import Table

    table = Table(title=costs.title, title_justify="left", caption=costs.caption, caption_justify="left")
    for number, column in enumerate(costs.columns):
        table.add_column(column, justify="right" if number else "left")
    for name, *values in costs.rows:
        table.add_row(
            name, *("" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in values)
        )
    return table


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

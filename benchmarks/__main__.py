"""Run time of protgraph relative to other implementations, measured in turns: ``python -m benchmarks NAME``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.cost_table import CostTable
from benchmarks.measurements import COSTS, MEASUREMENTS, ON_GPU, measure, measure_costs
from benchmarks.timing import Measurement
from protgraph.structure.io import expand_files
from protgraph.train import FitConfig

__all__ = ["main"]

_DESCRIPTION = """Measure run times of protgraph, plain implementations and installed libraries on the same input.
Compare ratios; milliseconds depend on the machine. The title of each table is the input, and the caption a lower bound
of the work."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of one measurement, or of all."""
    names = sorted([*MEASUREMENTS, *COSTS])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=_DESCRIPTION)
    parser.add_argument("name", nargs="?", help=f"{', '.join(names)}; default: all")
    parser.add_argument("--seconds", type=float, default=5.0, help="approximate duration of each; 0: one turn each")
    parser.add_argument("--files", type=Path, action="append", help="structure file or folder for featurize")
    parser.add_argument("--device", default="cpu", help=f"cpu, or cuda for {', '.join(ON_GPU)}")
    options = parser.parse_args(arguments)
    device = str(FitConfig(device=options.device).torch_device())
    files = expand_files(options.files) if options.files else ()
    if options.name:
        names = [options.name]
    elif device != "cpu":
        names = list(ON_GPU)
    console = Console(width=120)
    for name in names:
        if name in COSTS and not files:
            costs = measure_costs(name, seconds=options.seconds, device=device)
            tables = [_cost_table(cost) for cost in costs]
        else:
            measurements = measure(name, seconds=options.seconds, files=files, device=device)
            tables = [_ratio_table(measurement) for measurement in measurements]
        for table in tables:
            console.print(table)
            console.print()


def _ratio_table(measurement: Measurement) -> Table:
    """Return the table of the implementations of one computation."""
    caption = f"lower bound: {measurement.lower_bound}\nagreement: {measurement.agreement}"
    table = Table(title=measurement.title, title_justify="left", caption=caption, caption_justify="left")
    table.add_column("implementation")
    table.add_column("ms", justify="right")
    table.add_column(f"× {measurement.reference}", justify="right")
    for row in measurement.rows:
        spread = f" ± {row.spread:.2f}" if row.spread else ""
        table.add_row(row.name, f"{row.ms:.3g}", f"{row.ratio:.2f}{spread}")
    return table


def _cost_table(costs: CostTable) -> Table:
    """Return the table of the costs of several models or steps."""
    table = Table(title=costs.title, title_justify="left", caption=costs.caption, caption_justify="left")
    for number, column in enumerate(costs.columns):
        table.add_column(column, justify="right" if number else "left")
    for name, *values in costs.rows:
        table.add_row(name, *map(_number, values))
    return table


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()

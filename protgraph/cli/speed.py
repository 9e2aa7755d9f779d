"""``protgraph speed``: how fast each way of doing one thing is, as ratios in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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

    from benchmarks import MEASUREMENTS, measure
    from protgraph.cli.source_files import structure_files

    console = Console()
    paths = structure_files(files) if files else ()
    for chosen in [name] if name else list(MEASUREMENTS):
        for m in measure(chosen, seconds=seconds, files=paths):
            caption = f"floor: {m.floor}\nchecked: {m.checked}"
            table = Table(title=m.title, title_justify="left", caption=caption, caption_justify="left")
            table.add_column("way")
            table.add_column("median ms", justify="right")
            table.add_column(f"× {m.reference}", justify="right")
            for row in m.rows:
                table.add_row(row.name, f"{row.median_ms:.3g}", f"{row.ratio:.2f}")
            console.print(table)
            console.print()

"""``protgraph describe``: a model as a table of nodes, fields, shapes and parameters, and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from protgraph.model import ComponentSummary

__all__ = ["describe_command"]


def describe_command(
    model: Annotated[str, typer.Argument(help="Model by name ('gat', 'gat.v1'), or a checkpoint file.")],
    task: Annotated[str, typer.Option(help="Task whose target chooses the head.")] = "secondary_structure",
    draw: Annotated[
        Path | None, typer.Option(help="Also draw the model graph to this picture file (PNG, SVG, PDF).")
    ] = None,
) -> None:
    """Show what a model computes: each node with the fields it reads and writes, their shapes, and its parameters.

    N counts residues, E edges, B proteins; "32x0e+16x1o" are e3nn irreps: 32 scalars and 16 vectors.

    \b
    Examples:
      protgraph describe tfn
      protgraph describe gat --task ligand_binding --draw gat.png
    """
    from protgraph import registry
    from protgraph.cli.model_argument import find_checkpoint
    from protgraph.model import build_model
    from protgraph.model import draw_model as draw_graph
    from protgraph.model import summarize_model as rows_of

    trained = find_checkpoint(model)
    built = build_model(model, registry.tasks.get(task).target, seed=0) if trained is None else trained.model
    _print(built.spec.name, rows_of(built), built.num_parameters)
    for text in built.spec.dead_layers():
        typer.echo(f"note: nothing reads what {text} writes")
    if draw is not None:
        typer.echo(f"drawn to {draw_graph(built.spec, draw)}")


def _print(name: str, rows: list[ComponentSummary], total: int) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    table = Table(title=f"{name}: {total:,} parameters", title_justify="left", box=SIMPLE, pad_edge=False)
    for heading in ("", "node", "options", "reads", "writes"):
        table.add_column(heading, overflow="fold")
    table.add_column("parameters", justify="right", overflow="fold")
    for r in rows:
        lines = ["\n".join(part) for part in (r.options, r.reads, r.writes)]
        table.add_row(r.path, r.name, *lines, f"{r.parameters:,}" if r.parameters else "")
    console.print(table, highlight=False, markup=False)

"""``protgraph describe``: components, fields, shapes and parameters of a model, as a table and a diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.console import text_console
from protgraph.cli.model_argument import SetValues, find_checkpoint, find_model
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.model import ComponentSummary

__all__ = ["describe_command"]

ENTRY_POINTS = {"protgraph.commands": {"describe": "describe_command"}}

#: Width of a terminal below which options are listed under the name of the component.
_NARROW = 100


def describe_command(
    model: Annotated[str, typer.Argument(help="Model name ('gat', 'gat.v1'), TOML file or checkpoint file.")],
    task: Annotated[str, typer.Option(help="Task whose target selects the head.")] = "secondary_structure",
    settings: SetValues = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a diagram as Mermaid text instead.")] = False,
    toml: Annotated[bool, typer.Option("--toml", help="Print the specification as a TOML file instead.")] = False,
) -> None:
    """Print the components of a model with the fields that they read and write, shapes, and parameters.

    N: residues, E: edges, B: proteins. "32x0e+16x1o" are e3nn irreps: 32 scalars and 16 vectors.

    \b
    Examples:
      protgraph describe tfn
      protgraph describe gat --task ligand_binding
      protgraph describe gat --mermaid > gat.mmd
      protgraph describe gat --set layers.2.heads=8 --toml > model.toml
    """
    from protgraph import registry

    if mermaid and toml:
        raise OptionError("--mermaid and --toml exclude each other. Use one of them.")
    from protgraph.model import build_model, mermaid_text, standardized_inputs, summarize_model

    trained = find_checkpoint(model, settings)
    if trained is None:
        built = build_model(find_model(model, settings), registry.tasks.get(task).target, seed=0)
    else:
        built = trained.model
    if toml:
        typer.echo(built.spec.to_toml(), nl=False)
        return
    if mermaid:
        typer.echo(mermaid_text(built.spec))
        return
    if trained is not None and trained.others:
        typer.echo(f"first of {len(trained.members)} members")
    _print(built.spec.name, summarize_model(built), built.num_parameters)
    if standardized := standardized_inputs(built):
        typer.echo(f"standardized inputs: {', '.join(standardized)}")
    for text in built.spec.dead_layers():
        typer.echo(f"note: no component reads the fields of {text}")


def _print(name: str, rows: list[ComponentSummary], total: int) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    console = text_console()
    table = Table(title=f"{name}: {total:,} parameters", title_justify="left", box=SIMPLE, pad_edge=False, padding=0)
    is_narrow = console.width < _NARROW
    for heading in ("", "component", *([] if is_narrow else ["options"]), "reads", "writes"):
        table.add_column(heading, overflow="fold")
    table.add_column("parameters", justify="right", overflow="fold")
    for r in rows:
        if is_narrow:
            writes = [field.replace(" (", "\n (") for field in r.writes]
            parts = [[r.name, *(f" {option}" for option in r.options)], r.reads, writes]
        else:
            parts = [[r.name], r.options, r.reads, r.writes]
        table.add_row(r.path, *map("\n".join, parts), f"{r.parameters:,}" if r.parameters else "")
    console.print(table)

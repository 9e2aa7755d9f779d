"""``protgraph card``: what a layer can tell apart and what it cannot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from protgraph.errors import OptionError

__all__ = ["card_command"]


def card_command(
    name: Annotated[str, typer.Argument(help="A layer that passes messages; or 'gvp', 'mace'.")],
    option: Annotated[list[str] | None, typer.Option(help="An option of the layer, as lmax=2; again for more.")] = None,
) -> None:
    """Show the expressivity card of a layer: which pairs of point clouds networks of it tell apart, and which not.

    Nothing is trained and no data is read: random weights, float64, a second.

    \b
    Examples:
      protgraph card tfn
      protgraph card tfn --option lmax=2 --option irreps=32x0e+8x1o+8x2e
      protgraph card mace --option correlation=1
    """
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from protgraph.testing.expressivity import expressivity_card as make

    given = _options(option or ())
    made = make(name, given)
    said = " ".join(f"{key}={value}" for key, value in given.items())
    table = Table(title=f"{name} {said}".rstrip(), title_justify="left", box=SIMPLE, pad_edge=False)
    table.add_column("can it tell")
    table.add_column("")
    for asked, answer in made.lines():
        table.add_row(asked, answer)
    console = Console()
    console.print(table, highlight=False, markup=False)
    typer.echo("each layer: " + ", ".join(_shown(n.to_dict()) for n in made.block.repeated))


def _options(given: Sequence[str]) -> dict[str, Any]:
    """``lmax=2`` to a number, ``irreps=8x0e`` to a string."""
    options = {}
    for text in given:
        key, equal, value = text.partition("=")
        if not (key and equal):
            raise OptionError(f"--option {text!r}: write NAME=VALUE, as lmax=2")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def _shown(node: dict[str, Any]) -> str:
    reads = " ".join(f"{local}={name}" for local, name in node.get("reads", {}).items() if local != name)
    return f"{node['name']}({reads})" if reads else node["name"]

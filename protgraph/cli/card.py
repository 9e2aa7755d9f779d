"""Command ``protgraph card``: the expressivity report of a layer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from protgraph.cli.console import text_console
from protgraph.errors import OptionError

__all__ = ["card_command"]


def card_command(
    name: Annotated[str, typer.Argument(help="A message-passing layer, or 'gvp' or 'mace'.")],
    option: Annotated[list[str] | None, typer.Option(help="Option of the layer, e.g. lmax=2; repeat for more.")] = None,
) -> None:
    """Print the expressivity report of a layer: which pairs of point clouds its networks distinguish.

    The networks have random weights, in float64; no data is read. The point clouds are those of Joshi et
    al. 2023, arXiv:2301.09308.

    \b
    Examples:
      protgraph card tfn
      protgraph card tfn --option lmax=2 --option irreps=32x0e+8x1o+8x2e
      protgraph card mace --option correlation=1
    """
    from rich.box import SIMPLE
    from rich.table import Table

    from protgraph.testing.expressivity import measure_expressivity

    options = _options(option or ())
    report = measure_expressivity(name, options)
    title = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.add_column("pair of point clouds")
    table.add_column("distinguished")
    for question, answer in report.lines():
        table.add_row(question, answer)
    text_console().print(table)
    typer.echo("each layer: " + ", ".join(_describe(n.to_dict()) for n in report.network.repeated))


def _options(texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``lmax=2`` as a number and ``irreps=8x0e`` as a string."""
    options = {}
    for text in texts:
        key, equal, value = text.partition("=")
        if not (key and equal):
            raise OptionError(f"--option {text!r}. Write it as NAME=VALUE, e.g. lmax=2.")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def _describe(component: dict[str, Any]) -> str:
    reads = " ".join(f"{local}={name}" for local, name in component.get("reads", {}).items() if local != name)
    return f"{component['name']}({reads})" if reads else component["name"]

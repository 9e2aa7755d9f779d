"""``protgraph replay``: repeat a training step whose loss or gradient was not finite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["replay_command"]

ENTRY_POINTS = {"protgraph.commands": {"replay": "replay_command"}}


def replay_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER|FILE", help="Folder of the run or of its saved step.")],
) -> None:
    """Repeat a training step that stopped with NaN or infinity, and print what is not finite first.

    Training saves such a step in the folder of the run: the batch, the weights before the step and the random state.
    Exit code 1: a value is not finite again; 0: all values are finite here.

    \b
    Examples:
      protgraph replay gat.run
      protgraph replay gat.run/nonfinite_step
    """
    from protgraph.train.saved_step import replay_step

    replay = replay_step(folder)
    saved = replay.saved
    typer.echo(f"step {saved['step']}, epoch {saved['epoch']}, proteins {', '.join(saved['proteins'])}")
    typer.echo(f"{'component':32} {'output':>10} {'gradient':>10} {'parameters':>10}   largest absolute values")
    for trace in replay.traces:
        values = (trace.output, trace.gradient, trace.parameter_gradient)
        typer.echo(f"{f'{trace.path} ({trace.name})':32} " + " ".join(f"{value:10.3g}" for value in values))
    if replay.cause:
        typer.echo(f"not finite first: {replay.cause}")
        raise typer.Exit(1)
    typer.echo(f"all values are finite here; in training it was {saved['cause'] or 'an auxiliary task'}")

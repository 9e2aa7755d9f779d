"""Checks of commands: help of the command and of its options, exit codes, and no heavy imports for the help."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from functools import lru_cache
from typing import Any

import typer

from protgraph.registry.provider import split_distribution
from protgraph.testing.runner import NotApplicable, Runner

__all__ = ["command_builds", "command_exits", "command_help", "command_imports"]

_LIMIT = 120.0  # seconds
_HEAVY = ("torch", "e3nn", "lightning", "torch_geometric")
_PROGRAM = f"""
import sys
from protgraph.cli.app import main
try:
    main(sys.argv[1:])
finally:
    loaded = [name for name in {_HEAVY} if name in sys.modules]
    sys.stderr.write("\\nloaded:" + ",".join(loaded))
"""


def command_builds(runner: Runner) -> None:
    """Check that it is a function of typer, or a group of commands with a help text."""
    if _is_group(runner.component.loaded):
        return
    with runner.errors_as_failures("building the command"):
        _command(runner)


def command_help(runner: Runner) -> None:
    """Check that the command, its options and its arguments have a help text, and that the command has an example."""
    command, registered = runner.component.loaded, runner.component.name
    path = " ".join(["protgraph", *split_distribution(registered)[1].split(".")])
    text = command.help if _is_group(command) else inspect.getdoc(command) or ""
    if not text.strip():
        raise runner.failure("it has no help text. Write the docstring.")
    if path not in text and runner.component.definition is None:
        raise runner.failure(f"its help has no example. Write lines that begin with {path!r}.")
    if _is_group(command):
        return
    silent = [p.opts[0] for p in _command(runner).params if not getattr(p, "help", None) and p.name != "help"]
    if silent:
        raise runner.failure(f"{silent[0]} has no help text. Use typer.Option(help=…).")


def command_exits(runner: Runner) -> None:
    """Check that ``--help`` exits with 0, and an unknown option with 2 and without a traceback."""
    done, _ = _run(_path(runner), "--help")
    if done.returncode:
        raise runner.failure(f"--help exits with {done.returncode}: {_last(done.stderr)}")
    done, _ = _run(_path(runner), "--no-such-option")
    if done.returncode != 2 or "Traceback" in done.stderr:
        raise runner.failure(f"an unknown option exits with {done.returncode}, not 2: {_last(done.stderr)}")


def command_imports(runner: Runner) -> None:
    """Check that ``--help`` imports neither torch nor what depends on it, which takes seconds."""
    _, loaded = _run(_path(runner), "--help")
    if loaded:
        raise runner.failure(
            f"its module imports {loaded[0]} at the top, so that 'protgraph --help' takes seconds. "
            "Import it in the function."
        )


def _is_group(command: object) -> bool:
    return not inspect.isroutine(command)


def _command(runner: Runner) -> Any:
    """Return the command that typer makes of the function."""
    single = typer.Typer(add_completion=False)
    single.command()(runner.component.loaded)
    return typer.main.get_command(single)


def _path(runner: Runner) -> tuple[str, ...]:
    """Return the words that call the command."""
    if runner.component.definition is not None:
        raise NotApplicable("it is not registered; only installed commands can be called")
    distribution, name = split_distribution(runner.component.name)
    *groups, last = name.split(".")
    return (*groups, f"{distribution}/{last}" if distribution else last)


@lru_cache(maxsize=4)
def _run(path: tuple[str, ...], *options: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run a command in a process of its own; return how it ended, and the heavy modules that it loaded."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PROTGRAPH_IMPORT": ""}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *path, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=_LIMIT,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    done.stderr, _, loaded = done.stderr.rpartition("\nloaded:")
    return done, list(filter(None, loaded.split(",")))


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]

"""Help texts at 80 columns: no line is longer, and no word or option is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from protgraph.cli import app


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (arguments, command) of a command and all its subcommands."""
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from _commands(command.get_command(None, name), (*path, name))


COMMANDS = dict(_commands(typer.main.get_command(app.app)))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: "-".join(path) or "protgraph")
def test_help_fits_80_columns_with_whole_words(run, path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    out = run(*path, "--help", columns=80).out
    assert max(map(len, out.splitlines())) <= 80
    words = set(re.sub(r"[│╭╮╰╯─]", " ", out).split())
    words.update(name for word in tuple(words) if word.startswith("--") for name in word.split(","))  # --chain,--chains
    texts = [(part.help or "").replace("\\[", "[") for part in (command, *command.params)]
    names = [name for p in command.params if p.param_type_name == "option" for name in p.opts]
    missing = {word for text in texts for word in text.replace("\b", " ").split() if word not in words}
    assert not missing and set(names) <= words

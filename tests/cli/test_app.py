"""The command line: help, exit codes, errors without tracebacks."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import protgraph
from protgraph.cli import app
from protgraph.errors import StructureFileError


def test_help_lists_every_command(run) -> None:
    result = run("--help")
    assert result.code == 0
    assert all(re.search(rf"^\W*{command} ", result.out, re.MULTILINE) for command in app.COMMANDS)


@pytest.mark.parametrize("command", app.COMMANDS)
def test_help_of_every_command_has_an_example(run, command: str) -> None:
    result = run(command, "--help")
    assert result.code == 0 and re.search(rf"Examples?:\s+protgraph {command}\b", result.out)


def test_help_texts_are_plain_text(run) -> None:
    assert "[fit]" in run("bench", "--help").out  # a TOML table, not markup of rich


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "protgraph", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"protgraph {protgraph.__version__}"


def test_version(run) -> None:
    assert run("--version").out.strip() == f"protgraph {protgraph.__version__}"


@pytest.mark.parametrize("args", [["lisst"], ["list", "--no-such-option"], ["info"], ["info", "zzz"], ["list", "zzz"]])
def test_invalid_arguments_give_exit_code_2_without_traceback(run, args: list[str]) -> None:
    result = run(*args)
    assert result.code == 2 and result.err and "Traceback" not in result.err


def test_no_arguments_print_the_help(run) -> None:
    assert "Usage" in "".join(run()[1:])


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes ``protgraph list`` raise an error."""

    def arrange(error: Exception) -> None:
        def names(*args: object, **options: object) -> None:
            raise error

        monkeypatch.setattr("protgraph.registry.Registry.names", names)

    return arrange


def test_a_protgraph_error_is_one_message_on_stderr(run, failing) -> None:
    failing(StructureFileError("a.cif [1] is not a structure file: it starts with 'x'"))
    result = run("list", "layers")
    assert (result.code, result.err) == (2, "error: a.cif [1] is not a structure file: it starts with 'x'\n")


def test_an_os_error_is_one_message_on_stderr(run, failing) -> None:
    failing(PermissionError(13, "Permission denied", "out.csv"))
    result = run("list", "layers")
    assert result.code == 2 and "out.csv" in result.err and "Traceback" not in result.err


def test_debug_raises_the_error(run, failing, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(StructureFileError("bad"))
    monkeypatch.setenv("PROTGRAPH_DEBUG", "1")
    with pytest.raises(StructureFileError):
        run("list", "layers")


def test_other_exceptions_are_not_caught(run, failing) -> None:
    failing(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        run("list", "layers")

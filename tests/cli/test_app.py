"""The command line: help, exit codes, errors without tracebacks."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import protgraph
from protgraph.cli import app
from protgraph.cli.error_report import describe_fault
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
    assert "[fit]" in run("bench", "run", "--help").out  # a TOML table, not markup of rich


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
        def problems(*args: object, **options: object) -> None:
            raise error

        monkeypatch.setattr("protgraph.registry.Registry.problems", problems)

    return arrange


def test_a_protgraph_error_is_one_message_on_stderr(run, failing) -> None:
    failing(StructureFileError("a.cif [1] is not a structure file: it starts with 'x'"))
    result = run("list", "layers")
    assert (result.code, result.err) == (2, "error: a.cif [1] is not a structure file: it starts with 'x'\n")


def test_an_os_error_is_one_message_on_stderr(run, failing) -> None:
    failing(PermissionError(13, "Permission denied", "out.csv"))
    result = run("list", "layers")
    assert result.code == 2 and "out.csv" in result.err and "Traceback" not in result.err


@pytest.mark.parametrize("args", [["--debug", "list"], ["list", "--debug"]], ids=["before", "after"])
def test_debug_shows_the_traceback(run, failing, args: list[str]) -> None:
    failing(StructureFileError("bad"))
    result = run(*args)
    assert result.code == 2 and "Traceback" in result.err and "in problems" in result.err
    assert "Traceback" not in run("list").err


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_command_has_the_option_debug(run, command: str) -> None:
    assert "--debug" in run(command, "--help").out


def _divide(*args: object) -> None:
    raise ZeroDivisionError("a bug")


def test_an_unexpected_error_is_one_line_with_its_place(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protgraph.cli.list_info._row", _divide)
    result = run("list", "layers")
    assert result.code == 70 and "Traceback" not in result.err and result.err.count("\n") == 1
    assert re.search(r"ZeroDivisionError: a bug \(.+test_app.py:\d+\)", result.err) and "--debug" in result.err


def test_an_unexpected_error_in_a_library_has_the_place_of_our_call(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protgraph.cli.list_info.typer.secho", lambda *args, **options: json.loads("{"))
    assert re.search(r"JSONDecodeError: .*\(.+test_app.py:\d+\)", run("list", "layers").err)


def test_the_distribution_of_a_plugin_is_named_for_its_error(
    broken_plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (broken_plugin / "cracked_mod.py").write_text(
        "from protgraph.nn import GraphLayer\n\nclass Cracked(GraphLayer):\n    forward = None\n    @classmethod\n"
        "    def names(cls):\n        return [][0]\n"
    )
    monkeypatch.setitem(sys.modules, "cracked_mod", None)  # removed after the test
    del sys.modules["cracked_mod"]
    component = protgraph.layers.get("cracked")
    with pytest.raises(IndexError) as caught:
        component.names()
    text = describe_fault(caught.value)
    assert "cracked_mod.py:7" in text and "cracked-dist 0.3" in text


BROKEN = {
    "at import": ("raise RuntimeError('operator nms does not exist')\n", "import broken_library"),
    "in a function": ("def f():\n    raise RuntimeError('wrong value')\n", "import broken_library; broken_library.f()"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN)
def test_a_library_that_cannot_be_imported_is_named(kind, tmp_path, monkeypatch) -> None:
    library, use = BROKEN[kind]
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "broken_library.py").write_text(library)
    (folder / "user_library.py").write_text(f"{use}\n" if kind == "at import" else f"def use():\n    {use}\n")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(RuntimeError) as caught:
        importlib.import_module("user_library").use()
    text = describe_fault(caught.value)
    is_named = "the library broken_library is imported" in text
    assert is_named == (kind == "at import")
    assert (f"torch {version('torch')}" in text) == is_named


def test_ctrl_c_is_one_line(run, failing) -> None:
    failing(KeyboardInterrupt())
    result = run("list", "layers")
    assert result.code == 130 and "interrupted" in result.err and "Traceback" not in result.err


def test_a_misspelled_command_is_suggested(run) -> None:
    assert "'list'" in run("lisst").err


def test_help_has_groups_with_questions_to_models_first_and_a_short_option(run):
    text = run("-h").out
    assert text == run("--help").out
    places = [text.index(f"─ {title} ") for title in app.GROUPS]
    assert places == sorted(places) and text.index("│ predict ") < text.index("│ train ") < text.index("│ list ")
    assert run("mutate", "-h").out == run("mutate", "--help").out
    assert run("data", "prepare", "-h").out == run("data", "prepare", "--help").out


@pytest.mark.parametrize(
    ("words", "expected"), [("protgraph pred", "predict"), ("protgraph predict ligand", "ligand_site")]
)
def test_a_shell_completes_commands_and_names_of_trained_models(words, expected):
    environment = {"_PROTGRAPH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code = "from protgraph.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [expected]

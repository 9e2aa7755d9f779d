"""Commands of other distributions: ``protgraph.commands``."""

from __future__ import annotations

import re
import sys

import pytest

from protgraph.registry import commands

GREET = '''
from typing import Annotated
import typer

def greet(name: str, loud: Annotated[bool, typer.Option(help="Capitals.")] = False) -> None:
    """Print a greeting.

    More [text] of the help.
    """
    typer.echo(f"hello {name}".upper() if loud else f"hello {name}")
'''


@pytest.fixture
def greet(install) -> None:
    points = {"greet": "greet_mod:greet", "data.greet": "greet_mod:greet", "meet.greet": "greet_mod:greet"}
    install("acme", {"protgraph.commands": points}, {"greet_mod": GREET})


@pytest.mark.usefixtures("greet")
@pytest.mark.parametrize("path", [["greet"], ["data", "greet"], ["meet", "greet"]], ids="-".join)
def test_a_command_runs_with_the_common_options(run, path: list[str]) -> None:
    assert run(*path, "Ada", "--loud").out == "HELLO ADA\n"
    text = run(*path, "--help").out
    assert "More [text] of" in text and "--import" in text and "--debug" in text and "Capitals." in text


@pytest.mark.usefixtures("greet")
def test_commands_are_listed_after_those_of_the_core(run) -> None:
    names = re.findall(r"^│ ([a-z]\S*) ", run("--help").out, re.MULTILINE)
    assert names[0] == "predict" and names[-2:] == ["greet", "meet"]
    of_data = re.findall(r"^│ ([a-z]\S*) ", run("data", "--help").out, re.MULTILINE)
    assert of_data.index("verify") < of_data.index("greet")
    assert "Commands: greet." in run("meet", "--help").out
    assert re.search(r"^  data.greet +acme 1.2 +greet_mod:greet$", run("list", "commands").out, re.MULTILINE)


@pytest.mark.usefixtures("greet")
def test_a_misspelled_subcommand_is_suggested(run) -> None:
    result = run("meet", "gret")
    assert result.code == 2 and "'greet'" in result.err


BROKEN = {
    "import": ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
    "type": ("bad = 3", "is an object of type builtins.int"),
    "signature": ("def bad(x: 'NoSuchType') -> None: pass", "name 'NoSuchType' is not defined"),
    "attribute": ("", "has no attribute 'bad'"),
}


@pytest.mark.usefixtures("greet")
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_command_is_listed_with_the_reason_and_harms_no_other(run, install, kind: str) -> None:
    code, reason = BROKEN[kind]
    install("broken", {"protgraph.commands": {"bad": "bad_command_mod:bad"}}, {"bad_command_mod": code})
    result = run("--help", columns=200)
    assert result.code == 0 and re.search(rf"^│ bad +Not available: .*{re.escape(reason)}", result.out, re.MULTILINE)
    assert "│ greet " in result.out and run("greet", "Ada").code == 0
    for args in (["bad"], ["bad", "--help"], ["bad", "--unknown", "3"]):
        result = run(*args)
        assert result.code == 2 and reason in result.err and "Traceback" not in result.err


@pytest.mark.usefixtures("greet")
def test_a_name_of_two_distributions_is_a_conflict(run, install) -> None:
    install("bcme", {"protgraph.commands": {"greet": "other_greet_mod:greet"}}, {"other_greet_mod": GREET})
    result = run("greet", "Ada")
    assert result.code == 2 and "'acme/greet' or 'bcme/greet'" in result.err
    assert run("bcme/greet", "Ada").out == "hello Ada\n"
    assert run("data", "greet", "Ada").out == "hello Ada\n"
    assert "│ greet " in run("--help").out


@pytest.mark.parametrize("name", ["list", "data", "data.list"])
def test_a_command_of_the_core_is_not_replaced(run, install, name: str) -> None:
    install("acme", {"protgraph.commands": {name: "greet_mod:greet"}}, {"greet_mod": GREET})
    group, _, command = name.rpartition(".")
    assert "hello" not in run(*name.split("."), "--help").out
    assert run(*filter(None, (group, f"acme/{command}")), "Ada").out == "hello Ada\n"
    assert [problem.name for problem in commands.problems()] == [f"acme/{name}"]


def test_components_of_a_broken_variable_do_not_stop_a_command(run, monkeypatch) -> None:
    monkeypatch.setenv("PROTGRAPH_IMPORT", "no_such_module_anywhere")
    assert run("--help").code == 0 and run("data", "verify", "--help").code == 0


@pytest.mark.usefixtures("greet")
def test_listing_commands_imports_none(run) -> None:
    sys.modules.pop("greet_mod", None)
    assert run("list", "commands").code == 0 and "greet_mod" not in sys.modules


def test_every_name_for_commands_can_be_imported() -> None:
    import protgraph.cli

    assert all(getattr(protgraph.cli, name) is not None for name in protgraph.cli.__all__)


@pytest.mark.usefixtures("greet")
def test_without_plugins_the_commands_of_other_distributions_are_absent(run, monkeypatch) -> None:
    monkeypatch.setenv("PROTGRAPH_PLUGINS", "acme")  # the option is set for the rest of the process
    assert run("greet", "Ada").code == 0
    result = run("--no-plugins", "greet", "Ada")
    assert result.code == 2 and "No such command 'greet'" in result.err
    assert "gcn" in run("--no-plugins", "list", "layers").out

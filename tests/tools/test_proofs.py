"""Proofs: the page, the Makefile and the tool agree, failures do not stop the others, and the exit code counts them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE_ROW = re.compile(r"^\| ([a-z ]+) \| .* \| `([^`]+)` \|$", re.MULTILINE)


def load(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


proofs = load("proofs")


def test_the_page_has_the_proofs_of_the_tool_in_their_order():
    _, _, page = (ROOT / "docs" / "promises.md").read_text("utf-8").partition("## Proofs")
    assert TABLE_ROW.findall(page) == list(proofs.PROOFS.items())


def test_make_runs_the_tool():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipe = re.search(r"^proofs:.*\n\t(.*)$", makefile, re.MULTILINE)
    assert "tools/proofs.py" in recipe[1]


@pytest.mark.parametrize("command", proofs.PROOFS.values())
def test_each_command_exists(command):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    program, *arguments = command.split()
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE)
    elif program == "python" and arguments[0] != "-m":
        assert (ROOT / arguments[0]).is_file()
    else:
        assert program in ("protgraph", "nox", "python")


def test_files_named_on_the_page_exist():
    page = (ROOT / "docs" / "promises.md").read_text("utf-8")
    paths = [path for command in re.findall(r"`pytest ([^`]+)`", page) for path in command.split()]
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_failure_does_not_stop_the_others(tmp_path):
    shown = []
    commands = {
        "fails": f"{sys.executable} -c 'import sys; print(7); sys.exit(3)'",
        "is missing": "no-such-program --option",
        "passes": f"{sys.executable} -c ''",
    }
    code = proofs.main(["--logs", str(tmp_path)], commands, shown.append)
    assert code == 1
    rows = [re.split(r"  +", line) for line in shown[-1].splitlines() if line and "  " in line]
    assert [row[0] for row in rows] == ["proof", "fails", "is missing", "passes"]
    assert [row[2] for row in rows[1:]] == ["failed (3)", "failed (127)", "passed"]
    assert (tmp_path / "fails.log").read_text() == "7\n"
    assert proofs.main(["--logs", str(tmp_path), "passes"], commands, shown.append) == 0


def test_an_unknown_name_is_an_error(tmp_path):
    with pytest.raises(SystemExit):
        proofs.main(["nothing"], {"a": "true"}, print)


def test_the_kill_tool_compares_without_measured_columns(tmp_path):
    kills = load("kill_anywhere")
    row = '{"key": "a", "score": 1, "seconds": %d}\n'
    for name, seconds in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.jsonl").write_text(row % seconds)
    first, second = (kills.contents(tmp_path / name, ("rows.jsonl",)) for name in ("one", "two"))
    assert first == second != {}


@pytest.mark.parametrize("name", ["csv", "fasta", "toml"])
def test_a_parser_reads_its_own_files(name, tmp_path):
    fuzz = load("fuzz_parsers")
    parser = fuzz.PARSERS[name]
    for number, content in enumerate(parser.files()):
        path = tmp_path / f"{number}{parser.suffix}"
        path.write_bytes(content)
        fuzz.check_file(parser, path)

"""``protgraph check`` of components that end the process, crash or hang: a failed check, a summary, exit code 1."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LAYER = """
{top}
import protgraph as pg

class Layer(pg.GraphLayer):
    reads, writes = ("h",), ("h",)

    def __init__(self, fields):
        super().__init__(fields)
        self.declare(h=fields["h"].irreps)

    def forward(self, f):
        {forward}
        return {{"h": f["h"].clone()}}
"""


def install(name: str, folder: Path, *, top: str = "", forward: str = "pass", kind: str = "layers") -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[protgraph.{kind}]\n{name} = {name}_mod:Layer\n")
    (folder / f"{name}_mod.py").write_text(textwrap.dedent(LAYER).format(top=top, forward=forward))


EXIT = "import ctypes; ctypes.CDLL(None)._exit(0)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ({"top": EXIT}, ("✗ builds", "of host_import 1.0 (host_import_mod:Layer)", "ended with exit status 0")),
        ({"top": "import ctypes; ctypes.string_at(0)"}, ("✗ builds", "was killed by SIGSEGV")),
        ({"forward": "import os; os._exit(0)"}, ("✓ builds", "✗ rotation", "ended with exit status 0")),
        ({"forward": "import sys; sys.exit(0)"}, ("✗ rotation", "SystemExit: 0")),
        ({"forward": "raise KeyboardInterrupt"}, ("✗ rotation", "KeyboardInterrupt")),
        ({"forward": "import time; time.sleep(1000)"}, ("✗ rotation", "did not finish within 15 s")),
    ],
    ids=["exit at import", "crash at import", "exit", "sys.exit", "interrupt", "hang"],
)
def test_a_component_that_ends_its_process_fails_with_a_summary(code, words, run, tmp_path, monkeypatch):
    install("host_import", tmp_path, **code)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run("check", "host_import", "--only", "rotation", "--timeout", "15")
    assert result.code == 1, result.out + result.err
    assert all(part in result.out for part in (*words, "0 of 1 components pass, 1 failed")), result.out


@pytest.mark.slow
def test_a_foreign_component_that_passes_is_checked_in_another_process(run, tmp_path, monkeypatch):
    install("host_good", tmp_path, top="import os; print('loaded by', os.getpid())")
    install("host_exit", tmp_path, top=EXIT, kind="featurizers")  # installed, and not needed
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run("check", "host_good", "linear", "--only", "rotation", "--only", "global_state")
    assert result.code == 0 and "2 of 2 components pass" in result.out, result.out + result.err
    assert "loaded by" not in result.out + result.err


def test_a_mutation_scorer_has_no_checks(run):
    result = run("check", "esm2")
    assert result.code == 2 and "'esm2' is a mutation scorer, a kind without checks" in result.err


def test_a_scorer_needs_only_the_documented_methods(tmp_path):
    install("host_scorer", tmp_path, kind="mutation_scorers")
    (tmp_path / "host_scorer_mod.py").write_text(
        "class Layer:\n    name, unit = 'host_scorer', ''\n    def score(self, residues, variants): return [0.0]\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-m", "protgraph", "info", "host_scorer"]  # nothing else has imported the protocol
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0 and "host_scorer_mod:Layer" in done.stdout, done.stderr

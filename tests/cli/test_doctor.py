"""``protgraph doctor``: every fault of a distribution is named, and the command survives all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from protgraph.process_state import describe_changes, new_threads, read_state
from protgraph.registry import hooks, registries
from protgraph.registry.discovery import malformed_metadata, metadata_problems
from tests.first_use.broken_plugins import BROKEN_PLUGINS, MALFORMED_PLUGIN, install_plugin


@pytest.mark.slow
def test_a_complete_installation_gives_exit_code_0(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "pos.npy").write_bytes(bytes(3 * 2**20))
    result = run("doctor")
    assert result.code == 0, result.out
    assert version("torch") in result.out
    assert f"{tmp_path}: 3 MiB" in result.out
    count = sum(len(registry) for registry in (registries | hooks).values())
    assert f"{count} of {count} loaded" in result.out


@pytest.mark.slow
def test_an_extra_that_does_not_import_is_a_problem(run, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "openpyxl.py").write_text("raise OSError('undefined symbol')")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run("doctor")
    assert result.code == 1 and "extra xlsx" in result.out and "undefined symbol" in result.out


@pytest.mark.slow
def test_a_torch_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libtorch.so: cannot open shared object file')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    code = "from protgraph.cli.app import main; main(['doctor'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "library torch" in done.stdout and done.stdout.count("libtorch.so") >= 2


@pytest.mark.slow
def test_every_broken_distribution_is_named_with_its_fault(run, tmp_path: Path, monkeypatch) -> None:
    for plugin in BROKEN_PLUGINS:
        install_plugin(plugin, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    state, threads = read_state(), set(threading.enumerate())
    result = run("doctor", "--timeout", "10")
    assert result.code == 1 and "Traceback" not in result.out + result.err
    for plugin in BROKEN_PLUGINS:
        found = [part for part in (plugin.name, *plugin.report) if part not in result.out]
        assert not found, f"{plugin.name}: {found} not in\n{result.out}"
        assert plugin.module not in sys.modules
    changes = describe_changes(state, read_state())
    assert not [text for text in changes if "random state" not in text and "COLUMNS" not in text]  # of the command
    assert "BAD_STATE" not in os.environ and not new_threads(threads, wait=0.0)


def test_malformed_metadata_is_named_before_torch_is_imported(tmp_path: Path) -> None:
    install_plugin(MALFORMED_PLUGIN, tmp_path)
    code = (
        "import sys; from protgraph.cli.app import main\ntry: main(['doctor'])\nfinally: print('torch' in sys.modules)"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert all(part in done.stdout for part in MALFORMED_PLUGIN.report) and done.stdout.endswith("False\n")


@pytest.mark.parametrize("file", ["entry_points.txt", "METADATA"])
def test_metadata_that_are_not_utf8_are_named(file: str, run, tmp_path: Path, monkeypatch) -> None:
    info = tmp_path / "latin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: latin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[protgraph.layers]\nmine = m:A\n")
    (info / file).write_bytes((info / file).read_bytes() + b"# \xe9: \xff\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (problem,) = malformed_metadata()
    assert "latin" in problem.source and "UTF-8" in problem.source + problem.message
    result = run("list", "heads")
    assert result.code == 0 and "latin" in result.err and "node_classifier" in result.out
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "protgraph", "doctor"], env={"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr and "latin" in done.stdout


def test_metadata_of_the_installation_is_valid() -> None:
    assert malformed_metadata() == metadata_problems() == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[protgraph.layer]\na = m:A\n", ("protgraph.layer", "'protgraph.layers'")),
        ("[protgraph_layers]\na = m:A\n", ("protgraph_layers", "'protgraph.layers'")),
        ("[protgraph.layers]\nmy layer = m:A\n", ("my layer", "not valid")),
        ("[protgraph.heads]\nα = m:A\n", ("α", "not valid")),
        ("[protgraph.tasks]\nmine = m A\n", ("mine", "'m A'")),
    ],
    ids=["group", "underscore", "space", "letter", "value"],
)
def test_groups_names_and_values_are_checked(text: str, parts: tuple[str, ...], tmp_path: Path, monkeypatch) -> None:
    info = tmp_path / "odd-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (problem,) = metadata_problems()
    assert problem.source == "odd 1.0" and all(part in f"{problem.name} {problem.message}" for part in parts)


def test_changes_of_the_global_state_are_described() -> None:
    before = read_state()
    assert describe_changes(before, read_state()) == []
    torch.rand(1)
    assert describe_changes(before, read_state()) == ["the random state of torch"]
    changed = before | {"environment variables": before["environment variables"] | {"NEW": "1"}}
    assert describe_changes(before, changed) == ["environment variables: NEW"]

"""Tests of the wheel, its data files and entry points, and of the targets of the Makefile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import protgraph
from protgraph.registry import registries

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SUFFIXES = (".py", ".bcif", ".json", ".safetensors", ".svg", ".toml", ".tsv", ".parquet", ".tmpl", ".typed")
#: Folder of the checkout → importable package.
SOURCES = {"protgraph": "protgraph", "plugins": "protgraph_plugins", "datasets": "protgraph_datasets"}


def test_installed_entry_points_are_those_of_pyproject() -> None:
    for plural, registry in registries.items():
        ours = {name for name in registry if registry.entry(name).source.startswith("protgraph-pyg ")}
        assert ours == set(PROJECT["entry-points"][f"protgraph.{plural}"]), "run `pip install -e .` again"


@pytest.mark.parametrize("plural", registries)
def test_every_entry_point_is_used_under_its_own_name(plural: str) -> None:
    points = PROJECT["entry-points"][f"protgraph.{plural}"]
    pattern = r"[a-z]+([.-][a-z]+)*" if plural == "commands" else r"[a-z][a-z0-9_]*"
    assert all(re.fullmatch(pattern, name) for name in points)


@pytest.mark.parametrize("path", ["CITATION.cff", "docs/citation.md"])
def test_the_citation_has_the_version_of_the_package(path: str) -> None:
    versions = re.findall(r"^ *version:? *=? *\{?([\d.]+\d)", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert versions == [protgraph.__version__]


def test_the_hosted_workflow_runs_the_targets_of_the_local_one() -> None:
    local, hosted = ((ROOT / path).read_text(encoding="utf-8") for path in (".ci/run", ".github/workflows/ci.yml"))
    targets = re.findall(r"make ([a-z-]+) ", local)
    assert targets == ["lint", "docs", "test"]
    assert all(f"make {target}" in hosted for target in (*targets, "test-slow", "test-lowest"))
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert f"python: {json.dumps(supported)}" in hosted


@pytest.mark.parametrize(
    "path", ["Makefile", "pyproject.toml", "constraints.txt", ".ci/run", ".github/workflows/ci.yml"]
)
def test_no_package_registry_is_named(path: str) -> None:
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", (ROOT / path).read_text(encoding="utf-8"))


def test_make_installs_only_if_a_file_of_the_environment_has_changed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt", ".installed", ".installed-test"):
        (tmp_path / name).touch()
    for i, name in enumerate(("pyproject.toml", "constraints.txt", ".installed", ".installed-test")):
        os.utime(tmp_path / name, (i, i))

    def plan(target: str) -> str:
        command = ["make", "--dry-run", "VENV=.", target]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert "pip" not in plan("bench") + plan("test")
    os.utime(tmp_path / "constraints.txt", (9, 9))
    assert "--editable ." in plan("bench") and "[test]" not in plan("bench")
    assert "--editable '.[test]'" in plan("test")


def test_ci_hides_the_variables_of_the_machine_from_its_steps(tmp_path: Path) -> None:
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\nenv\n")
    make.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    environment = {"HOME": "/home/a", "PATH": path, "PIP_CERT": "b", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "3"}
    command = ["bash", ROOT / ".ci" / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"HOME", "PATH", "LANG", "PIP_CERT"}  # the shell sets the others


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources and return the folder with its contents."""
    copy = tmp_path_factory.mktemp("copy")
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--wheel-dir", str(copy / "dist"), str(copy)], check=True)
    (wheel,) = (copy / "dist").glob("protgraph_pyg-*.whl")
    zipfile.ZipFile(wheel).extractall(copy / "site")
    return copy / "site"


@pytest.mark.slow
def test_the_wheel_has_every_module_and_data_file(site: Path) -> None:
    for folder, package in SOURCES.items():
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT / folder)
            skipped = {"build", "__pycache__"} & set(inside.parts) or (
                folder == "plugins" and inside.parts[0] == "template"
            )
            if path.is_file() and path.suffix in SUFFIXES and not skipped:
                assert (site / package / inside).is_file(), path


@pytest.mark.slow
def test_the_wheel_has_nothing_but_our_packages(site: Path) -> None:
    top = {p.name for p in site.iterdir() if not p.name.endswith(".dist-info")}
    assert top == set(SOURCES.values())
    assert not (site / "protgraph_plugins" / "template").exists()


@pytest.mark.slow
def test_the_wheel_works_away_from_the_sources(site: Path, tmp_path: Path) -> None:
    code = """if True:
        import protgraph as pg
        from protgraph.cli.new_plugin import render_template
        assert pg.__file__.startswith({site!r}), pg.__file__
        example = pg.datasets.create("pdb_core").examples("secondary_structure")[0]
        assert str(example.path).startswith({site!r})
        residues = pg.clean(pg.load_structure(example.path), chains=example.chains)
        assert len(pg.build_graph(residues, ["knn"]).pos) == len(residues)
        assert "pyproject.toml" in render_template("protgraph_lens")
    """
    environment = {**os.environ, "PYTHONPATH": str(site)}
    subprocess.run([sys.executable, "-c", code.format(site=str(site))], cwd=tmp_path, env=environment, check=True)

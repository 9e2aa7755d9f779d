"""``protgraph new-plugin``: files and names; tests/plugins/test_template.py installs and runs the plugin."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from protgraph.cli.new_plugin import render_template
from protgraph.registry import registries


def test_names_follow_the_package() -> None:
    files = render_template("protgraph_deep_lens")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["name"] == "protgraph-deep-lens"
    points = project["entry-points"]
    assert points["protgraph.models"] == {"deep_lens": "protgraph_deep_lens.model:FAMILY"}
    without = ("trained_models", "mutation_scorers", "functions")  # the first two need weights
    assert set(points) == {f"protgraph.{kind}" for kind in registries if kind not in without}
    assert points["protgraph.layers"] == {"deep_lens_mean": "protgraph_deep_lens.layer:DeepLensMean"}
    for group in points.values():
        for ref in group.values():
            module, _, attribute = ref.partition(":")
            source = files[f"src/{module.replace('.', '/')}.py"]
            assert attribute in source
    for path, text in files.items():
        assert "template" not in text and "$" not in text and "PACKAGE" not in path
        if path.endswith(".py"):
            compile(text, path, "exec")


@pytest.mark.parametrize("name", ["Protgraph-Lens", "protgraph_lens"])
def test_the_command_writes_the_files(run, tmp_path: Path, name: str) -> None:
    result = run("new-plugin", name, "--in", tmp_path)
    assert result.code == 0 and "protgraph info lens" in result.out
    folder = tmp_path / "protgraph_lens"
    written = {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}
    assert written == render_template("protgraph_lens")


def test_existing_files_are_not_overwritten(run, tmp_path: Path) -> None:
    (tmp_path / "protgraph_lens").mkdir()
    assert run("new-plugin", "protgraph_lens", "--in", tmp_path).code == 0
    before = (tmp_path / "protgraph_lens" / "README.md").read_bytes()
    result = run("new-plugin", "protgraph_lens", "--in", tmp_path)
    assert result.code == 2 and "not empty" in result.err
    assert (tmp_path / "protgraph_lens" / "README.md").read_bytes() == before


@pytest.mark.parametrize("name", ["1lens", "le ns", "../lens", "protgraph", "léns"])
def test_an_invalid_package_name_is_refused(run, tmp_path: Path, name: str) -> None:
    result = run("new-plugin", name, "--in", tmp_path)
    assert result.code == 2 and "protgraph_lens" in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("class", "protgraph_class"),
        ("json", "protgraph_json"),
        ("torch", "torch/__init__.py"),
        ("protgraph_plugins.gat", "protgraph_lens"),
        ("gcn", "model 'gcn'"),
        ("protgraph-graph-transformer", "model 'graph_transformer'"),
    ],
)
def test_an_existing_name_is_refused(run, tmp_path: Path, name: str, part: str) -> None:
    result = run("new-plugin", name, "--in", tmp_path)
    assert result.code == 2 and part in result.err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []

"""``DISTRIBUTION/NAME`` on the command line: models, layers and tasks of a distribution that claims built-in names."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import protgraph as pg
from protgraph.bench.report import _file_name
from protgraph.labels import load_dataset
from protgraph.labels.loading import resolve_task

CODE = """
import protgraph as pg

class GCN(pg.GraphLayer):
    reads, writes = ("h",), ("h",)
    def __init__(self, fields):
        super().__init__(fields)
        self.declare(h=fields["h"].irreps)
    def forward(self, f):
        return {"h": f["h"] + 1}

MODEL = pg.ModelSpec("gcn", [], [pg.component("embed", reads=["aatype"], dim=8), "acme-gated/gcn"])
TASK = pg.tasks.get("secondary_structure")
NUMBER = 3
"""
POINTS = """[protgraph.layers]
gcn = acme_gated_cli:GCN
odd_type = acme_gated_cli:NUMBER
[protgraph.models]
gcn = acme_gated_cli:MODEL
odd_type = acme_gated_cli:GCN
[protgraph.tasks]
secondary_structure = acme_gated_cli:TASK
odd_type = acme_gated_cli:GCN
[protgraph.datasets]
odd_type = acme_gated_cli:GCN
"""


@pytest.fixture(autouse=True)
def _acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install acme-gated 0.3."""
    site = tmp_path / "site"
    info = site / "acme_gated-0.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-gated\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(POINTS)
    (site / "acme_gated_cli.py").write_text(CODE)
    monkeypatch.delitem(sys.modules, "acme_gated_cli", raising=False)
    monkeypatch.syspath_prepend(str(site))


def test_describe_finds_both_models(run) -> None:
    assert "acme-gated/gcn" in run("describe", "acme-gated/gcn").out
    assert "acme-gated" not in run("describe", "gcn").out


def test_a_task_is_used_under_the_given_name(structures_dir: Path, tmp_path: Path) -> None:
    name = "acme-gated/secondary_structure"
    shutil.copytree(structures_dir, tmp_path / "files", ignore=lambda _, names: [n for n in names if n[:2] != "1c"])
    for data in (tmp_path / "files", "pdb_core"):
        dataset = load_dataset(data, task=name, cache=tmp_path / "cache")
        assert resolve_task(name, dataset).name == name
        assert resolve_task(name, dataset).target == pg.tasks.get("secondary_structure").target


def test_figures_have_valid_file_names() -> None:
    assert _file_name("confusion", "acme-gated/gcn", "a/b") == "confusion_acme-gated_gcn_a_b.png"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["info", "odd_type", "--kind", "layers"], "layer"),
        (["describe", "odd_type"], "model"),
        (["train", "odd_type", "--data", "pdb_core", "--task", "secondary_structure"], "model"),
        (["train", "gcn", "--data", "pdb_core", "--task", "odd_type"], "task"),
        (["train", "gcn", "--data", "odd_type", "--task", "secondary_structure"], "dataset"),
        (["describe", "gcn", "--task", "odd_type"], "task"),
    ],
    ids=["info", "describe", "model", "task", "dataset", "describe_task"],
)
def test_objects_of_another_type_are_errors_with_their_distribution(run, arguments, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.code == 2 and "Traceback" not in result.err
    assert f"{kind} 'odd_type'" in result.err and "acme-gated 0.3" in result.err

"""The template plugin as an external distribution: built, installed, listed, tested and trained in other processes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import protgraph as pg
from protgraph.cli.new_plugin import render_template

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "plugins" / "template"
NAMES = {
    "featurizers": "template_crowding",
    "layers": "template_mean",
    "heads": "template_classifier",
    "models": "template",
    "tasks": "template_bend",
    "datasets": "template_disulfides",
    "metrics": "template_recall",
    "readers": "template",
    "commands": "template",
}
NOT_SOURCE = ("build", "__pycache__", "*.egg-info", ".pytest_cache")


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the folder of the template, and install the distribution in ``site`` next to it."""
    folder = tmp_path_factory.mktemp("external")
    shutil.copytree(TEMPLATE, folder / "source", ignore=shutil.ignore_patterns(*NOT_SOURCE))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder / "site")]
    subprocess.run([*pip, *options, str(folder / "source")], check=True)
    return folder


def run_python(plugin: Path, *args: str) -> str:
    """Return the output of a new Python process in another folder, with the plugin on its path."""
    environment = {**os.environ, "PYTHONPATH": str(plugin / "site"), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    command = [sys.executable, *args]
    done = subprocess.run(command, cwd=plugin / "source", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_template_equals_the_output_of_new_plugin() -> None:
    files = [p for p in TEMPLATE.rglob("*") if p.is_file() and not {"build", "__pycache__"} & set(p.parts)]
    files = [p for p in files if not any(part.endswith((".egg-info", "_cache")) for part in p.parts)]
    assert {str(p.relative_to(TEMPLATE)): p.read_text(encoding="utf-8") for p in files} == render_template(
        "protgraph_template"
    )


@pytest.mark.slow
def test_the_wheel_contains_only_the_package(plugin: Path) -> None:
    installed = {p.name for p in (plugin / "site").iterdir()}
    assert installed == {"protgraph_template", "protgraph_template-0.1.0.dist-info"}


@pytest.mark.slow
def test_components_are_listed_with_their_distribution(plugin: Path) -> None:
    code = "import sys; from protgraph.cli.app import main; main(['list'])"
    lines = run_python(plugin, "-c", code).splitlines()
    for name in NAMES.values():
        assert [line for line in lines if line.split()[:3] == [name, "protgraph-template", "0.1.0"]]


@pytest.mark.slow
def test_components_load_without_problems(plugin: Path) -> None:
    code = (
        "from protgraph.registry import registries\n"
        f"for plural, name in {NAMES}.items():\n"
        "    registry = registries[plural]\n"
        "    print(registry.where(name), [p for p in registry.problems(load=True) if p.name == name])"
    )
    lines = run_python(plugin, "-c", code).splitlines()
    assert len(lines) == len(NAMES)
    assert all(line.startswith(str(plugin / "site" / "protgraph_template")) and line.endswith(" []") for line in lines)


@pytest.mark.slow
def test_the_tests_of_the_plugin_pass(plugin: Path) -> None:
    last = run_python(plugin, "-m", "pytest", "-q", "-p", "no:cacheprovider").splitlines()[-1]
    passed = re.search(r"(\d+) passed", last)
    assert passed and int(passed.group(1)) > 100  # ten tests, and the checks of eleven components
    assert "failed" not in last


@pytest.fixture(scope="module")
def labeled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of six small proteins with ``labels.csv``, their secondary structure."""
    dataset = pg.datasets.create("pdb_core")
    examples = {e.path: e for e in dataset.examples("secondary_structure")}.values()  # one chain per entry
    small = sorted(examples, key=lambda e: e.path.stat().st_size)[:6]
    folder = tmp_path_factory.mktemp("labeled")
    rows = ["file,chain,res_id,ins_code,state,split"]
    for example, split in zip(small, ["train"] * 4 + ["val", "test"], strict=True):
        shutil.copy(example.path, folder)
        labels = dataset.labels("secondary_structure", example)
        for chain, number, code, value in zip(labels.chain, labels.res_id, labels.ins_code, labels.values, strict=True):
            if value >= 0:
                rows.append(f"{example.path.name},{chain},{number},{code},{'HEC'[value]},{split}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.slow
def test_the_model_trains_by_name_and_predicts_in_other_processes(plugin: Path, labeled: Path) -> None:
    run = "import sys; from protgraph.cli.app import main; main(sys.argv[1:])"
    checkpoint, table = labeled / "out" / "template.safetensors", labeled / "out" / "prediction.csv"
    data = ["--data", str(labeled), "--labels", str(labeled / "labels.csv")]
    out = run_python(plugin, "-c", run, "train", "template", *data, "--epochs", "2", "-o", str(checkpoint))
    losses = [float(line.split()[3]) for line in out.splitlines() if line.startswith("epoch")]
    assert len(losses) == 2 and losses[1] < losses[0]
    structure = next(labeled.glob("*.bcif"))
    run_python(plugin, "-c", run, "predict", str(checkpoint), str(structure), "-o", str(table))
    residues = pg.clean(pg.load_structure(structure))
    assert len(table.read_text().splitlines()) == 1 + len(residues)

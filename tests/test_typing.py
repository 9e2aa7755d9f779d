"""The Python of the documentation and of the plugin template passes mypy and pyright, as in a user's editor."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "plugins").glob("*/README.md"))]
spec = importlib.util.spec_from_file_location("check_types", ROOT / "tools" / "check_types.py")
check_types = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_types)

#: A user's file: the types that an editor must know, and the error of a wrong argument.
USER_FILE = """
import protgraph as pg

reveal_type(pg.fit("gcn", "my_structures", "secondary_structure"))
reveal_type(pg.layers.get("gcn"))
reveal_type(pg.models.get("gcn"))
reveal_type(pg.tasks.get("secondary_structure").target)
reveal_type(pg.load_structure("1ubq.cif"))
reveal_type(pg.predict("model.safetensors", "1ubq.cif"))
reveal_type(pg.find_pockets("1ubq.cif")[0])
pg.FitConfig(epochs="many")
"""
REVEALED = [
    "FitResult",
    "type[protgraph.nn.module.GraphLayer]",
    "ModelSpec",
    "Target",
    "Structure",
    "Predictions",
    "Pocket",
]


@pytest.fixture(scope="module")
def user_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the packages, each Python block of the pages as a file, and the template."""
    folder = tmp_path_factory.mktemp("typed")
    check_types.link_packages(folder)
    (folder / "blocks").mkdir()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(r"^```python\b[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, block.start()) + 2
            name = re.sub(r"\W", "_", f"{page.relative_to(ROOT).with_suffix('')}_{line}")
            (folder / "blocks" / f"{name}.py").write_text(block[1], encoding="utf-8")
    shutil.copytree(ROOT / "plugins" / "template" / "src", folder / "template")
    return folder


def run_mypy(folder: Path, *files: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--follow-imports", "silent", "--cache-dir", str(folder / "cache"), "--scripts-are-modules"]
    command += map(str, files)
    environment = os.environ | {"MYPYPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def test_blocks_of_the_pages_pass_mypy(user_folder):
    output = run_mypy(user_folder, *sorted((user_folder / "blocks").glob("*.py")), user_folder / "template")
    assert "error" not in output, output


def test_blocks_of_the_pages_pass_pyright(user_folder):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    settings = {"typeCheckingMode": "basic", "include": ["blocks", "template"], "reportMissingImports": False}
    (user_folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=user_folder, capture_output=True, text=True, check=False)
    errors = []
    for finding in json.loads(done.stdout)["generalDiagnostics"]:
        if finding["severity"] == "error":
            errors.append(f"{finding['file']}:{finding['range']['start']['line'] + 1}: {finding['message']}")
    assert errors == []


def test_names_of_the_package_have_types(user_folder):
    path = user_folder / "user_file.py"
    path.write_text(USER_FILE, encoding="utf-8")
    output = run_mypy(user_folder, path)
    revealed = re.findall(r'Revealed type is "([^"]+)"', output)
    assert len(revealed) == len(REVEALED), output
    for found, expected in zip(revealed, REVEALED, strict=True):
        assert found.endswith(expected), output
    assert 'Argument "epochs" to "FitConfig" has incompatible type "str"' in output

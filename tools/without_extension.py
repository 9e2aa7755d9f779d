"""Copy the tree without one extension, and show that the core and the other extensions do without it.

``python tools/without_extension.py foldcomp`` copies the tracked files without ``plugins/foldcomp`` and
``tests/plugins/foldcomp`` to a temporary folder and writes the metadata of an installed distribution beside them, so
that nothing is installed. There it imports every module of the core, and runs ``protgraph list`` and
``protgraph --help``. ``--tests tests/structure`` also runs these tests of the copy.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

__all__ = ["copy_without", "extensions", "problems_without"]

ROOT = Path(__file__).resolve().parents[1]
#: Folders of the copy; the others are links to those of the tree.
_COPIED = ("protgraph", "plugins", "tests")
#: Modules that cannot be imported without a library that comes with torch for GPUs alone.
_NEED_GPU = ("protgraph.ops.kernels.triton_programs",)
_IMPORT_ALL = f"""
import importlib, pkgutil, sys
import protgraph
for module in pkgutil.walk_packages(protgraph.__path__, "protgraph."):
    if module.name not in {_NEED_GPU} and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert not [name for name in sys.modules if name.startswith("protgraph_plugins.")], "the core imports an extension"
assert protgraph.__file__.startswith(sys.argv[1]), protgraph.__file__
"""
_COMMAND = "import sys; from protgraph.cli.app import main; main(sys.argv[1:])"


def extensions(root: Path = ROOT) -> list[str]:
    """Return the names of the folders of ``plugins/``, without the template, which is a distribution of its own."""
    return sorted(p.parent.name for p in (root / "plugins").glob("*/__init__.py") if p.parent.name != "template")


def copy_without(name: str, copy: Path, root: Path = ROOT) -> dict[str, str]:
    """Copy the tree without an extension, and return the environment variables with which Python finds the copy."""
    removed = {root / "plugins" / name, root / "tests" / "plugins" / name}

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {n for n in names if n == "__pycache__" or Path(folder, n) in removed}

    copy.mkdir(parents=True, exist_ok=True)
    for item in root.iterdir():
        if item.name in _COPIED:
            shutil.copytree(item, copy / item.name, ignore=ignored)
        elif item.name in ("pyproject.toml", "setup.py"):
            shutil.copy(item, copy)
        elif not item.name.startswith("."):
            (copy / item.name).symlink_to(item)
    packages = copy / ".packages"
    packages.mkdir()
    for package, folder in {"protgraph_plugins": "plugins", "protgraph_datasets": "datasets"}.items():
        (packages / package).symlink_to(copy / folder)
    _write_metadata(copy, packages)
    return {"PYTHONPATH": os.pathsep.join([str(copy), str(packages)]), "PROTGRAPH_IMPORT": "", "COLUMNS": "120"}


def _write_metadata(copy: Path, packages: Path) -> None:
    """Write the metadata that an installation of the copy would have, with the entry points of its modules."""
    tool = _entry_points_tool()
    project = tomllib.loads((copy / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = _version(copy)
    info = packages / f"{project['name'].replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
    lines = []
    for group, names in tool.declared(copy).items():
        lines += [f"[{group}]", *(f"{name} = {ref}" for name, ref in names.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def _version(copy: Path) -> str:
    text = (copy / "protgraph" / "__init__.py").read_text(encoding="utf-8")
    return text.partition('__version__ = "')[2].partition('"')[0]


def _entry_points_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("entry_points", Path(__file__).with_name("entry_points.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems_without(name: str, copy: Path, tests: Sequence[str] = (), root: Path = ROOT) -> list[str]:
    """Return what fails in a copy of the tree without an extension, with the end of its output."""
    environment = {**os.environ, **copy_without(name, copy, root)}
    runs = {
        "import of all modules of the core": [sys.executable, "-c", _IMPORT_ALL, str(copy)],
        "protgraph list": [sys.executable, "-c", _COMMAND, "list"],
        "protgraph --help": [sys.executable, "-c", _COMMAND, "--help"],
    }
    if tests:
        runs["tests"] = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    problems = []
    for title, command in runs.items():
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        is_named = f"protgraph_plugins.{name}" in output or "Not available" in output
        if done.returncode or (is_named and title != "tests"):
            problems.append(f"{title}: exit code {done.returncode}\n{output[-3000:]}")
    return problems


def main() -> int:
    """Print what fails, and return the exit code."""
    parser = argparse.ArgumentParser(description="Run the core without one extension.")
    parser.add_argument("name", choices=extensions())
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run in the copy, e.g. tests/structure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = problems_without(options.name, Path(folder).resolve() / "copy", options.tests)
    print("\n".join(problems) or f"nothing fails without plugins/{options.name}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())

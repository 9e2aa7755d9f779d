"""Write the entry points of ``pyproject.toml`` from the ``ENTRY_POINTS`` of the modules, without importing them.

A module that defines registered components declares them below its ``__all__``, by group and registry name::

    ENTRY_POINTS = {"protgraph.layers": {"gat": "GAT"}}

``python tools/entry_points.py`` rewrites the block between the two marker lines, sorted by group and name.
With ``--check`` it writes nothing, prints the differences and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

__all__ = ["block", "declared", "modules", "replace_block"]

ROOT = Path(__file__).resolve().parents[1]
#: Folder of the checkout → importable package, as in ``setup.py``.
PACKAGES = {"protgraph": "protgraph", "plugins": "protgraph_plugins", "datasets": "protgraph_datasets"}
#: Distributions of their own.
EXCLUDED = (Path("plugins", "template"),)
START, END = "# --- entry points ---\n", "# --- end of entry points ---\n"


def modules(root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """Yield the dotted name and the path of every module of this distribution, sorted by path."""
    for folder, package in PACKAGES.items():
        for path in sorted((root / folder).rglob("*.py")):
            if any(path.is_relative_to(root / excluded) for excluded in EXCLUDED):
                continue
            names = [package, *path.relative_to(root / folder).with_suffix("").parts]
            if names[-1] == "__init__":
                names.pop()
            yield ".".join(names), path


def declared(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return group → registry name → ``module:object``, as the modules declare them.

    Raises
    ------
    ValueError
        Two modules declare the same name in a group, or a module declares an object that it does not define.
    """
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for module, path in modules(root):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        defined = _defined(tree)
        for group, names in _entry_points(tree).items():
            for name, obj in names.items():
                if obj not in defined:
                    raise ValueError(f"entry point {name!r} ({path}): {obj!r} is not defined in the module.")
                if name in groups[group]:
                    raise ValueError(f"entry point {name!r} of {group} ({path}): also {groups[group][name]}.")
                groups[group][name] = f"{module}:{obj}"
    return {group: dict(sorted(names.items())) for group, names in sorted(groups.items())}


def block(groups: dict[str, dict[str, str]]) -> str:
    """Return the TOML tables of the entry points, between the marker lines."""
    tables = []
    for group, names in groups.items():
        lines = [f'[project.entry-points."{group}"]']
        lines += [f'{_key(name)} = "{reference}"' for name, reference in names.items()]
        tables.append("\n".join(lines) + "\n")
    return START + "\n".join(tables) + END


def _key(name: str) -> str:
    """Return the key of TOML; a dot would begin a table."""
    return f'"{name}"' if "." in name else name


def replace_block(text: str, new: str) -> str:
    """Return the content of ``pyproject.toml`` with ``new`` in place of the block between the marker lines."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"marker lines {START!r} and {END!r} not found.")
    return before + new + after


def _entry_points(tree: ast.Module) -> dict[str, dict[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and _targets(node) == ["ENTRY_POINTS"]:
            return ast.literal_eval(node.value)
    return {}


def _defined(tree: ast.Module) -> set[str]:
    """Return the names of the classes, functions and variables that a module defines."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            names.update(_targets(node))
    return names


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def main() -> int:
    """Write or check the block, and return the exit code."""
    parser = argparse.ArgumentParser(description="Write the entry points of pyproject.toml from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file is out of date")
    options = parser.parse_args()
    path = ROOT / "pyproject.toml"
    old = path.read_text(encoding="utf-8")
    new = replace_block(old, block(declared()))
    if not options.check:
        path.write_text(new, encoding="utf-8")
        return 0
    old_lines = old.splitlines(keepends=True)
    new_lines = new.splitlines(keepends=True)
    sys.stdout.writelines(difflib.unified_diff(old_lines, new_lines, "pyproject.toml", "code", n=0))
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())

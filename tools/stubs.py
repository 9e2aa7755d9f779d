"""Write ``__init__.pyi`` beside each package whose names are imported on first use, for editors, pyright and mypy.

A package that imports its names lazily declares them in a dictionary, ``_HOME`` (name → module). Type checkers do not
read it; they read the stub. That of ``protgraph`` also has the functions of extensions (``protgraph.functions``).
``python tools/stubs.py`` writes all stubs, with ``--check`` it prints those that are out of date and exits with 1.

References
----------
Scientific Python Ecosystem Coordination, SPEC 1 — Lazy loading of submodules and functions.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

sys.path.insert(0, str(Path(__file__).resolve().parent))

from entry_points import declared

__all__ = ["main", "stub_of", "stubs"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"protgraph": "protgraph", "plugins": "protgraph_plugins", "datasets": "protgraph_datasets"}
_LINE = 120


def stubs(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yield path and text of each stub."""
    for folder, package in PACKAGES.items():
        for path in sorted((root / folder).rglob("__init__.py")):
            if "template" in path.relative_to(root).parts:
                continue
            name = ".".join((package, *path.parent.relative_to(root / folder).parts))
            functions = _functions_of_extensions(root) if name == "protgraph" else {}
            text = stub_of(ast.parse(path.read_text(encoding="utf-8")), name, functions)
            if text:
                yield path.with_suffix(".pyi"), text


def stub_of(tree: ast.Module, package: str, functions: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the stub of a package; "" if it imports its names eagerly, or some of them for type checkers.

    ``functions`` (name → module) are those that extensions add.
    """
    if any(isinstance(item, ast.If) for item in tree.body):
        return ""
    value = _value(tree, "_HOME")
    if not isinstance(value, dict):
        return ""
    lines = ["# Written by tools/stubs.py."]
    packages = _value(tree, "_PACKAGES")
    if isinstance(packages, tuple):
        lines.append(_import(package, sorted(packages)))
    names_of_module: dict[str, list[str]] = {}
    for name, module in sorted({**value, **functions}.items()):
        names_of_module.setdefault(module, []).append(name)
    for module, names in sorted(names_of_module.items()):
        lines.append(_import(module, names))
    for item in tree.body:
        if isinstance(item, ast.ImportFrom) and item.module not in ("__future__", "protgraph.lazy_names"):
            lines.append(_import(str(item.module), [alias.name for alias in item.names]))
    if _value(tree, "__version__"):
        lines.append("\n__version__: str")
    return "\n".join(lines) + "\n"


def _functions_of_extensions(root: Path) -> dict[str, str]:
    """Return the module of each function that extensions of this distribution add to ``protgraph``."""
    references = declared(root).get("protgraph.functions", {})
    return {name: reference.partition(":")[0] for name, reference in references.items()}


def _import(module: str, names: list[str]) -> str:
    """Return an import statement that exports its names."""
    exports = [f"{name} as {name}" for name in names]
    line = f"from {module} import {', '.join(exports)}"
    if len(line) <= _LINE:
        return line
    return f"from {module} import (\n" + "".join(f"    {export},\n" for export in exports) + ")"


def _value(tree: ast.Module, name: str) -> object:
    """Return the literal value of a variable of the module, or None."""
    for item in tree.body:
        if isinstance(item, ast.Assign) and getattr(item.targets[0], "id", "") == name:
            return ast.literal_eval(item.value)
    return None


def main(arguments: list[str]) -> int:
    """Write or check the stubs, and return the exit code."""
    outdated = []
    for path, text in stubs():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            outdated.append(path)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    if "--check" in arguments and outdated:
        names = ", ".join(str(path.relative_to(ROOT)) for path in outdated)
        print(f"out of date: {names}. Run python tools/stubs.py.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

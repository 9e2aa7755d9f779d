"""Digest of the code that a module depends on: its own, and that of the modules of its package that it imports.

A digest of the whole package would change with each edit of it; this one changes only with code that a component can
run. Imports are read from the source, those inside functions included, without importing anything.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from importlib.util import find_spec, resolve_name
from pathlib import Path

from protgraph.data.cache_key import component_package, digest, source_digest

__all__ = ["closure_digest", "import_closure", "object_digest"]

_OWN = "protgraph"
#: Packages of protgraph whose code does not change numbers: error texts, registration, files.
_WITHOUT = ("errors", "failure", "file_io", "process_memory", "registry", "validation", "wording")


@functools.cache
def closure_digest(module: str) -> str:
    """Return the digest of the code of a module and of the modules of its package that it imports, directly or not."""
    return digest([(name, _read(name).digest) for name in import_closure(module)])


@functools.cache
def object_digest(module: str, name: str) -> str:
    """Return the digest of the code of an object of a plugin's package, from the module that defines it.

    Parameters
    ----------
    module, name : str
        Where the object is found; a package may import it from one of its modules.
    """
    found = dict.fromkeys(_targets(module, [name], component_package(module)))
    return digest([(home, closure_digest(home)) for home in found or [module]])


def import_closure(module: str) -> list[str]:
    """Return a module and the modules of its package that it imports, directly or not, sorted.

    A name that is imported from a package leads to the module that defines it; the other modules of the package do not
    count.

    Examples
    --------
    >>> "protgraph.ops.edges" in import_closure("protgraph.nn.layers.gcn")
    True
    """
    root, found, waiting = component_package(module), set(), [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += [target for home, names in _read(name).imports for target in _targets(home, names, root)]
    return sorted(found)


class _Source:
    """Code of one module: its digest, its imports as (module, names), and the names that it imports from elsewhere."""

    def __init__(self, module: str, path: Path) -> None:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        self.is_package = path.name == "__init__.py"
        package = module if self.is_package else module.rpartition(".")[0]
        self.digest = source_digest(text)
        self.imports = list(_imports(tree, package))
        self.exports = dict(_exports(tree, package))


@functools.cache
def _read(module: str) -> _Source:
    return _Source(module, _path(module))


def _path(module: str) -> Path | None:
    """Return the file of a module, or None if there is no such module in Python."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is not None:  # also for a module that can no longer be found on sys.path
        return Path(loaded) if loaded.endswith(".py") else None
    root = component_package(module)
    parts = module.removeprefix(root).split(".")[1:]
    spec = find_spec(root)
    if spec is None or spec.origin is None:
        return None
    base = Path(spec.origin).parent.joinpath(*parts)
    places = (base / "__init__.py", base.with_suffix(".py") if parts else base / "__init__.py")
    return next((place for place in places if place.is_file()), None)


def _targets(module: str, names: list[str], root: str) -> Iterator[str]:
    """Yield the modules of the package ``root`` that an import leads to."""
    if component_package(module) != root or _path(module) is None:
        return
    rest = module.removeprefix(root).removeprefix(".")
    if root == _OWN and rest.partition(".")[0] in _WITHOUT:
        return
    source = _read(module)
    if not source.is_package or (root != _OWN and not names):
        yield module
    for name in names if source.is_package else ():
        home, original = source.exports.get(name, (module, name))
        if name == "*":  # of a plugin: all that the package's own file imports
            yield module
        elif home != module:
            yield from _targets(home, [original], root)
        elif _path(f"{module}.{name}") is not None:
            yield from _targets(f"{module}.{name}", [], root)
        elif rest or root != _OWN:  # defined in the package's own file
            yield module


def _home(item: ast.ImportFrom, package: str) -> str:
    """Return the absolute name of the module of an import in a package."""
    return resolve_name("." * item.level + (item.module or ""), package)


def _imports(tree: ast.Module, package: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (module, names) of each import that is not for type checkers only."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, ast.If) and getattr(item.test, "id", "") == "TYPE_CHECKING":
            waiting += item.orelse
            continue
        if isinstance(item, ast.Import):
            yield from ((alias.name, []) for alias in item.names)
        elif isinstance(item, ast.ImportFrom):
            yield _home(item, package), [alias.name for alias in item.names]
        waiting += ast.iter_child_nodes(item)


def _exports(tree: ast.Module, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (name, (module, name there)) of imports of a package, also of those on first use by a table of strings."""
    for item in tree.body:
        if isinstance(item, ast.ImportFrom):
            home = _home(item, package)
            yield from ((alias.asname or alias.name, (home, alias.name)) for alias in item.names)
        for table in (part for part in ast.walk(item) if isinstance(part, ast.Dict)):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield str(key.value), (value.value, str(key.value))

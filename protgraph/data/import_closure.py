"""Digest of the code that a module of protgraph depends on: its own, and that of the modules that it imports.

A digest of the whole package would change with each edit of protgraph; this one changes only with code that a component
can run. Imports are read from the source, those inside functions included, without importing anything.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from protgraph.data.cache_key import digest, source_digest

__all__ = ["closure_digest", "import_closure"]

#: Packages whose code does not change numbers: error texts, registration, files.
_WITHOUT = ("errors", "failure", "file_io", "process_memory", "registry", "validation", "wording")


@functools.cache
def closure_digest(module: str) -> str:
    """Return the digest of the code of a module and of the modules of its package that it imports, directly or not."""
    return digest([(name, _read(name).digest) for name in import_closure(module)])


def import_closure(module: str) -> list[str]:
    """Return a module and the modules of its top-level package that it imports, directly or not, sorted.

    A name that is imported from a package leads to the module that defines it; the other modules of the package do not
    count.

    Examples
    --------
    >>> "protgraph.ops.edges" in import_closure("protgraph.nn.layers.gcn")
    True
    """
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += [target for home, names in _read(name).imports for target in _targets(home, names)]
    return sorted(found)


class _Source:
    """Code of one module: its digest, its imports as (module, names), and the names that it imports from elsewhere."""

    def __init__(self, path: Path) -> None:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        self.is_package = path.name == "__init__.py"
        self.digest = source_digest(text)
        self.imports = list(_imports(tree))
        self.exports = dict(_exports(tree))


@functools.cache
def _read(module: str) -> _Source:
    return _Source(_path(module))


def _path(module: str) -> Path | None:
    """Return the file of a module, or None if there is no such module."""
    root, *parts = module.split(".")
    base = Path(find_spec(root).origin).parent.joinpath(*parts)
    places = (base / "__init__.py", base.with_suffix(".py") if parts else base / "__init__.py")
    return next((place for place in places if place.is_file()), None)


def _targets(module: str, names: list[str]) -> Iterator[str]:
    """Yield the modules of protgraph that an import leads to."""
    root, _, rest = module.partition(".")
    if root != "protgraph" or rest.partition(".")[0] in _WITHOUT:
        return
    source = _read(module)
    if not source.is_package:
        yield module
    for name in names if source.is_package else ():
        if name in source.exports:
            yield from _targets(source.exports[name], [name])
        elif _path(f"{module}.{name}") is not None:
            yield from _targets(f"{module}.{name}", [])
        elif rest:  # defined in the package's own file
            yield module


def _imports(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
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
            yield item.module, [alias.name for alias in item.names]
        waiting += ast.iter_child_nodes(item)


def _exports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (name, module) of the names that a package imports, or imports on first use by a table of strings."""
    for item in tree.body:
        if isinstance(item, ast.ImportFrom):
            yield from ((alias.asname or alias.name, item.module) for alias in item.names)
        for table in (part for part in ast.walk(item) if isinstance(part, ast.Dict)):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield str(key.value), value.value

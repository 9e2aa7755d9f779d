"""Keys of cached data: digests of plain data, files and source code.

Digests of code are computed from syntax trees without docstrings. Only edits of code change them: edits of docstrings,
comments and layout do not. They are compared between computers, so the text of a syntax tree is the same in all
supported versions of Python.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from protgraph.data.digest_cache import cached_digests

__all__ = ["code_digest", "component_digest", "component_package", "digest", "source_digest", "stamps"]

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_CODE = ("ctx", "kind", "type_comment")
_FAMILIES = ("protgraph_plugins", "protgraph_datasets")  # top-level packages of several independent families


def digest(*parts: object) -> str:
    """Return 24 hexadecimal digits of the SHA-256 of plain data and bytes."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part if isinstance(part, bytes) else json.dumps(part, sort_keys=True, default=str).encode())
        whole.update(b"\0")
    return whole.hexdigest()[:24]


@functools.cache
def code_digest(*packages: str) -> str:
    """Return the digest of the code of whole packages, so that edited code makes cached data stale.

    Parameters
    ----------
    *packages : str
        Importable names; only the first folder of a namespace package is read.
    """
    names, paths = [], []
    for name in packages:
        folder = Path(next(iter(importlib.import_module(name).__path__)))
        own = sorted(folder.rglob("*.py"))
        names += [f"{name}/{path.relative_to(folder).as_posix()}" for path in own]
        paths += own
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return digest(list(zip(names, cached_digests(paths, source_digest, version=version), strict=True)))


@functools.cache  # several digests include the same files
def source_digest(source: str) -> str:
    """Return the digest of Python source from its syntax tree without docstrings.

    Examples
    --------
    >>> source_digest("x = 1  # a comment") == source_digest("x=1")
    True
    """
    tree = ast.parse(textwrap.dedent(source))
    for item in ast.walk(tree):
        if isinstance(item, _DOCUMENTED) and ast.get_docstring(item, clean=False) is not None:
            del item.body[0]
    return digest(_tree_text(tree))


def _tree_text(item: object) -> str:
    """Return a syntax tree as text.

    Not ast.dump: its text of the same tree differs between Python 3.11, 3.12 and 3.13 (2026-11-22).
    """
    if isinstance(item, list):
        return f"[{','.join(map(_tree_text, item))}]"
    if not isinstance(item, ast.AST):
        return repr(item)
    values = ((name, getattr(item, name, None)) for name in item._fields if name not in _NOT_CODE)
    parts = [f"{name}={_tree_text(value)}" for name, value in values if value is not None and value != []]
    return f"{type(item).__name__}({','.join(parts)})"


def component_package(module: str) -> str:
    """Return the package that a module of a component belongs to: its top-level package, or its plugin family.

    Examples
    --------
    >>> component_package("protgraph_plugins.esm.featurizer"), component_package("my_plugin.layers")
    ('protgraph_plugins.esm', 'my_plugin')
    """
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] in _FAMILIES else 1])


def component_digest(component: object, *, module: str | None = None) -> str | None:
    """Return the digest of the code of a component: its package, or its module or class alone.

    None if the code does not determine the result: there is no source (a class typed at a prompt), or it is a function
    of the running script or a closure. Results of such a component cannot be cached.

    Parameters
    ----------
    component : object
        A class, a function, or an instance, which has the digest of its class.
    module : str, optional
        Name of the module that defines an instance. By default that of its class.
    """
    own = component if inspect.isfunction(component) or inspect.isclass(component) else type(component)
    if inspect.isfunction(own) and (own.__closure__ or own.__module__ == "__main__"):
        return None
    package = component_package(module or own.__module__)
    if package == "__main__" != own.__module__:  # an instance that a script or notebook makes of an imported class
        return None
    try:
        if package != "__main__" and hasattr(sys.modules[package], "__path__"):
            return code_digest(package)
        return source_digest(inspect.getsource(own if package == "__main__" else sys.modules[package]))
    except (OSError, TypeError, KeyError, SyntaxError):
        return None


def stamps(paths: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Return the path, size and modification time of each file; −1 for a missing file."""
    stamped = []
    for path in paths:
        try:
            stat = path.stat()
            stamped.append((str(path), stat.st_size, stat.st_mtime_ns))
        except OSError:
            stamped.append((str(path), -1, -1))
    return stamped

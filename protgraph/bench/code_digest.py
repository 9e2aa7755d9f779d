"""Digest of source code that ignores docstrings, comments and layout, so that only edits of code change it."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
from pathlib import Path

__all__ = ["package_digest", "source_digest"]


@functools.cache
def package_digest(*packages: str) -> str:
    """Compute the digest of the code of whole packages, file by file, from their syntax trees.

    Parameters
    ----------
    *packages : str
        Importable names; only the first folder of a namespace package is read.

    Returns
    -------
    str
        24 hexadecimal digits of a SHA-256.
    """
    digest = hashlib.sha256()
    for name in packages:
        folder = Path(next(iter(importlib.import_module(name).__path__)))
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(source_digest(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:24]


def source_digest(source: str) -> str:
    """Compute the digest of the syntax tree of Python source, without docstrings.

    Returns
    -------
    str
        24 hexadecimal digits of a SHA-256. It depends on the version of Python, whose syntax trees differ.
    """
    tree = ast.parse(source)
    for item in ast.walk(tree):
        if isinstance(item, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _remove_docstring(item)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:24]


def _remove_docstring(item: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = item.body[0] if item.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        del item.body[0]

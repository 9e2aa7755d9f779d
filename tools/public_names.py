"""Names of packages, modules and their public members, read from the syntax trees without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

__all__ = ["FOLDERS", "ROOT", "anchor", "exports", "home", "modules_of", "public_names", "summary"]

ROOT = Path(__file__).resolve().parents[1]
#: Importable package → folder.
FOLDERS = {"protgraph": "protgraph", "protgraph_plugins": "plugins", "protgraph_datasets": "datasets"}


def modules_of(package: str, *, deep: bool = True) -> Iterator[str]:
    """Yield the dotted names of the modules of a package that export names, sorted, without packages."""
    top, _, inner = package.partition(".")
    folder = ROOT / FOLDERS[top] / inner.replace(".", "/")
    paths = folder.rglob("*.py") if deep else folder.glob("*.py")
    for path in sorted(paths):
        names = path.relative_to(ROOT / FOLDERS[top]).with_suffix("").parts
        if path.name.startswith("__") or "template" in names:
            continue
        if _exported(_tree(path)):
            yield ".".join((top, *names))


def public_names(module: str) -> list[str]:
    """Return the names that a module exports, in the order of its ``__all__``."""
    return _exported(_tree(_path(module)))


def summary(name: str) -> str:
    """Return the first line of the docstring of a module or of ``module.Name``, also of a constant."""
    if _path(name).exists():
        text = ast.get_docstring(_tree(_path(name)))
    else:
        module, _, member = name.rpartition(".")
        text = _member_docstring(_tree(_path(module)), member)
    return (text or "").partition("\n")[0].replace("``", "`")


def _member_docstring(tree: ast.Module, member: str) -> str | None:
    """Return the docstring of a class or function, or the text below a constant."""
    for item in tree.body:
        if isinstance(item, ast.ClassDef | ast.FunctionDef) and item.name == member:
            return ast.get_docstring(item)
    for item, after in pairwise(tree.body):
        if member in _assigned(item) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return str(after.value.value)
    return None


def _assigned(item: ast.stmt) -> list[str]:
    """Return the names that a statement assigns."""
    targets: list[ast.expr] = []
    if isinstance(item, ast.Assign):
        targets = item.targets
    elif isinstance(item, ast.AnnAssign):
        targets = [item.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def home(package: str, name: str) -> str:
    """Return ``module.name`` of the module that defines a name which a package exports."""
    tree = _tree(_path(package))
    modules = _dictionary(package, "_HOME")
    for item in ast.walk(tree):
        if isinstance(item, ast.ImportFrom) and item.module:
            for alias in item.names:
                modules[alias.asname or alias.name] = item.module
    module = modules.get(name)
    if module is None:
        return f"{package}.{name}"
    return home(module, name) if _path(module).name == "__init__.py" else f"{module}.{name}"


def anchor(path: str) -> str | None:
    """Return the anchor of the API reference for a package, a module, an exported name or a method of a class.

    An attribute has the anchor of its class, and a name that a package exports that of the module that defines it. None
    if the path is not public.
    """
    if path.partition(".")[0] not in FOLDERS:
        return None
    if _path(path).exists():
        return path if _path(path).name == "__init__.py" or public_names(path) else None
    module, _, name = path.rpartition(".")
    if _path(module).exists():
        exported = home(module, name)
        return exported if name in public_names(exported.rpartition(".")[0]) else None
    owner = anchor(module)
    if owner is None:
        return None
    module_of_class, _, class_name = owner.rpartition(".")
    if not _path(module_of_class).exists():
        return owner
    return f"{owner}.{name}" if _has_method(module_of_class, class_name, name) else owner


def _has_method(module: str, class_name: str, name: str) -> bool:
    for item in _tree(_path(module)).body:
        if getattr(item, "name", "") == class_name:
            return any(getattr(member, "name", "") == name for member in item.body)
    return False


def exports(package: str) -> list[str]:
    """Return the names that a package exports, sorted."""
    names = _exported(_tree(_path(package)))
    return sorted({*names, *_dictionary(package, "_HOME")} - {"__version__"}, key=str.lower)


def _dictionary(package: str, variable: str) -> dict[str, str]:
    """Return a literal dictionary of strings of a package's ``__init__``; empty without one."""
    for item in _tree(_path(package)).body:
        if isinstance(item, ast.Assign) and variable in _assigned(item):
            value = ast.literal_eval(item.value)
            return dict(value)
    return {}


def _exported(tree: ast.Module) -> list[str]:
    """Return the names in the ``__all__`` of a module."""
    for item in tree.body:
        if isinstance(item, ast.Assign) and "__all__" in _assigned(item):
            texts = [node.value for node in ast.walk(item.value) if isinstance(node, ast.Constant)]
            return [text for text in texts if isinstance(text, str)]
    return []


def _path(module: str) -> Path:
    top, _, inner = module.partition(".")
    path = ROOT / FOLDERS[top] / inner.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _tree(path: Path) -> ast.Module:
    if path not in _TREES:
        _TREES[path] = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return _TREES[path]


_TREES: dict[Path, ast.Module] = {}

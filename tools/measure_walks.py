"""Follow a parameter through the calls of the package, and count the modules that it passes.

``python tools/measure_walks.py protgraph/train/training.py:fit:dataset`` prints the modules in the order in which the
parameter reaches them. The source is read, not run: a call is followed if its function is found by name (imports,
functions and classes of the module, methods of ``self``). Carried are the parameter, its attributes and items, what
loops and comprehensions take from it, and results of calls inside the module. A climb is a
step to a module of a higher package than the one before, by the longest chain of imports between packages.
"""

from __future__ import annotations

import argparse
import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["WALKS", "Limit", "Walk", "follow"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "protgraph"


class Limit(NamedTuple):
    """Most modules and climbs of a walk; None for any number."""

    modules: int | None = None
    climbs: int | None = None


#: Walks of the table that is printed without arguments, with their limits.
WALKS = {
    "protgraph/train/training.py:fit:dataset": Limit(20, 6),
    "protgraph/train/training.py:fit:model": Limit(),
    "protgraph/inference/prediction.py:predict:sources": Limit(12),
    "protgraph/inference/prediction.py:predict:checkpoint": Limit(),
    "protgraph/bench/run.py:run_bench:spec": Limit(10),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Walk:
    """Modules that a parameter reaches, in order; a module is listed again when the parameter returns to it."""

    stays: list[str] = field(default_factory=list)
    seen: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def modules(self) -> list[str]:
        """Every module once."""
        return list(dict.fromkeys(self.stays))

    @property
    def climbs(self) -> int:
        """Number of steps to a module of a higher floor."""
        floors = [_floor(module.split(".")[1]) for module in self.stays]
        return sum(after > before for before, after in itertools.pairwise(floors))

    def enter(self, module: str) -> None:
        """Add a module, unless the parameter is in it already."""
        if not self.stays or self.stays[-1] != module:
            self.stays.append(module)


def follow(start: str) -> Walk:
    """Follow ``FILE:FUNCTION:PARAMETER``."""
    file, function, parameter = start.split(":")
    module = file.removesuffix(".py").replace("/", ".")
    walk = Walk()
    _visit(walk, module, function, parameter)
    return walk


def _visit(walk: Walk, module: str, name: str, parameter: str) -> None:
    """Walk through one function, named ``function`` or ``Class.method``, and those that it passes the parameter to."""
    if (module, name, parameter) in walk.seen:
        return
    walk.seen.add((module, name, parameter))
    walk.enter(module)
    function = _definitions(module)[name]
    carried = {parameter}
    for statement in _statements(function.body):
        for call in _calls(statement):
            target = _target(module, name, function, call)
            if target is None:
                continue
            for received in _received(call, target, carried):
                _visit(walk, target[0], target[1], received)
        carried |= _names_from(statement, carried, module, name, function)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body in order, those of nested blocks after their heads."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            continue
        yield statement
        for block in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, block, []))
        for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _statements(handler.body)


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the syntax nodes of a statement without those of the statements in its blocks."""
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop(0)
        yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                queue.append(child)


def _calls(statement: ast.stmt) -> list[ast.Call]:
    calls = [node for node in _own_nodes(statement) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _mentions(node: ast.AST, carried: set[str]) -> bool:
    """Return True if a carried name is read in an expression, outside of calls to functions of the package."""
    if isinstance(node, ast.Name):
        return node.id in carried
    return any(_mentions(child, carried) for child in ast.iter_child_nodes(node))


def _names_from(statement: ast.stmt, carried: set[str], module: str, name: str, function: Function) -> set[str]:
    """Return the names that a statement gives to carried values."""
    names: set[str] = set()
    for target, value in _assignments(statement):
        if not _mentions(value, carried | names):
            continue
        called = _target(module, name, function, value) if isinstance(value, ast.Call) else None
        if called is None or called[0] == module:
            names |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    return names


def _assignments(statement: ast.stmt) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the target and the value of each assignment, loop, comprehension and context of a statement."""
    for node in _own_nodes(statement):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.target, node.iter
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield node.optional_vars, node.context_expr


def _received(call: ast.Call, target: tuple[str, str], carried: set[str]) -> Iterator[str]:
    """Yield the parameters of the called function that get a carried value."""
    arguments = _definitions(target[0])[target[1]].args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if names and names[0] in ("self", "cls"):
        names = names[1:]
    for name, value in zip(names, call.args, strict=False):
        if _mentions(value, carried):
            yield name
    allowed = {*names, *(argument.arg for argument in arguments.kwonlyargs)}
    for keyword in call.keywords:
        if keyword.arg in allowed and _mentions(keyword.value, carried):
            yield keyword.arg


def _target(module: str, name: str, function: Function, call: ast.Call) -> tuple[str, str] | None:
    """Return module and name of the function that is called; None if it is not found by its name."""
    called = call.func
    imported = _imports(module) | _imports_of(function)

    # ``function(…)`` or ``Class(…)``
    if isinstance(called, ast.Name):
        home, defined = imported.get(called.id, (module, called.id))
        return _resolve(home, defined)
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return None

    # ``self.method(…)``
    owner = called.value.id
    if owner in ("self", "cls"):
        class_name = name.partition(".")[0]
        method = f"{class_name}.{called.attr}"
        return (module, method) if method in _definitions(module) else None

    # ``Class.method(…)``
    home, defined = imported.get(owner, (module, owner))
    return _resolve(home, f"{defined}.{called.attr}")


@cache
def _resolve(module: str, name: str) -> tuple[str, str] | None:
    """Return the definition of a function, or of the constructor of a class, through the packages that export it."""
    if not _path(module).is_file():
        return None
    definitions = _definitions(module)
    if name in definitions:
        return module, name
    if f"{name}.__init__" in definitions:
        return module, f"{name}.__init__"
    owner, mark, method = name.partition(".")
    home = _imports(module).get(owner)
    return None if home is None or home == (module, owner) else _resolve(home[0], home[1] + mark + method)


def _path(module: str) -> Path:
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text(encoding="utf-8"))


@cache
def _definitions(module: str) -> dict[str, Function]:
    """Return the functions of a module, and the methods of its classes as ``Class.method``."""
    definitions: dict[str, Function] = {}
    for node in _tree(module).body:
        if isinstance(node, Function):
            definitions[node.name] = node
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, Function):
                    definitions[f"{node.name}.{item.name}"] = item
    return definitions


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return the names that a module imports from the package, also by a table of lazy names."""
    names = _imports_of(_tree(module))
    for node in ast.walk(_tree(module)):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(value, ast.Constant):
                continue
            if str(value.value).startswith(f"{PACKAGE}."):
                names[key.value] = (value.value, key.value)
    return names


@cache
def _imports_of(node: ast.AST) -> dict[str, tuple[str, str]]:
    """Return local name → module and name, of the imports from the package below a node."""
    names = {}
    for item in ast.walk(node):
        if isinstance(item, ast.ImportFrom) and (item.module or "").partition(".")[0] == PACKAGE:
            for alias in item.names:
                names[alias.asname or alias.name] = (item.module, alias.name)
    return names


@cache
def _floor(package: str) -> int:
    """Return the largest number of packages in a chain of imports that a package (or module at the top) begins."""
    path = _path(f"{PACKAGE}.{package}")
    files = path.parent.rglob("*.py") if path.name == "__init__.py" else [path]
    imported: set[str] = set()
    for file in files:
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for item in _tree(module).body:
            if isinstance(item, ast.ImportFrom) and (item.module or "").startswith(f"{PACKAGE}."):
                imported.add(item.module.split(".")[1])
    floors_below = [_floor(other) for other in imported - {package}]
    return 1 + max(floors_below, default=0)


def main() -> None:
    """Print the walks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("walks", nargs="*", metavar="FILE:FUNCTION:PARAMETER")
    chosen = parser.parse_args().walks
    for start in chosen or WALKS:
        walk = follow(start)
        print(f"{start}: {len(walk.modules)} modules, {len(walk.stays)} stays, {walk.climbs} climbs")
        if chosen:
            print("\n".join(f"  floor {_floor(module.split('.')[1]):2} {module}" for module in walk.stays))


if __name__ == "__main__":
    main()

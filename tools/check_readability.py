"""Find what makes code dense, and compare with ``tools/readability.toml``, which may only get shorter.

Run ``python tools/check_readability.py`` in the checkout (``make lint`` does). The file lists the functions that are
more complex than allowed, and the number of findings of the other rules. A new function or a higher number is an error,
and so is a function or a number that is out of date: ``python tools/check_readability.py --update`` takes them out.
``--list RULE`` prints all findings of a rule.

Rules
-----
complexity
    Radon's cyclomatic complexity of a function is above 12; boolean operators and comprehensions count as branches.
nested_comprehension
    A comprehension inside another one.
long_condition
    A comprehension with a condition that is longer than a line.
filled_parameter
    A function adds to a list, dict or set that its caller passed.
unnamed_results
    A function returns more than three values as a tuple without names.
vague_name
    A variable that lives longer than three lines has a name that does not say what it is.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from radon.visitors import ComplexityVisitor

__all__ = ["RULES", "Comparison", "Finding", "compare", "findings_of", "main"]

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ROOT / "tools" / "readability.toml"
FOLDERS = ("protgraph", "plugins", "datasets", "benchmarks", "tools")
MAX_COMPLEXITY = 12
MAX_RESULTS = 3
MAX_LIFE = 3  # lines from the first to the last use of a variable with a vague name
VAGUE = {
    "own", "found", "place", "part", "parts", "what", "one", "given", "others", "rest", "whole", "same", "kept", "each",
    "shown", "problem",
}  # fmt: skip
#: Functions whose tuple another library defines: pickling, and gradients of autograd.
TUPLES_OF_LIBRARIES = {"__reduce__", "__getstate__", "backward", "setup_context", "vmap"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ADDING = {"append", "extend", "insert", "add", "update", "setdefault"}


class Finding(NamedTuple):
    """A place that breaks a rule."""

    path: Path
    line: int
    text: str
    function: str = ""


def complex_functions(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Yield the functions and methods above the limit, nested ones included."""
    visitor = ComplexityVisitor.from_ast(tree)
    functions = list(visitor.functions)
    for cls in visitor.classes:
        functions += cls.methods
    for function in functions:
        if function.complexity > MAX_COMPLEXITY:
            name = function.fullname
            yield Finding(path, function.lineno, f"{name}: complexity {function.complexity}", name)


def nested_comprehensions(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Yield comprehensions that have another one inside."""
    for node in ast.walk(tree):
        if isinstance(node, _COMPREHENSIONS):
            below = (child for child in ast.walk(node) if child is not node)
            if any(isinstance(child, _COMPREHENSIONS) for child in below):
                yield Finding(path, node.lineno, "nested comprehension")


def long_conditions(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Yield comprehensions with a condition that do not fit on a line."""
    for node in ast.walk(tree):
        if not isinstance(node, _COMPREHENSIONS) or node.end_lineno == node.lineno:
            continue
        if any(generator.ifs for generator in node.generators):
            yield Finding(path, node.lineno, "comprehension with a condition over several lines")


def filled_parameters(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Yield additions to a container that is a parameter of the function."""
    for function in _functions(tree):
        arguments = [*function.args.args, *function.args.kwonlyargs]
        containers = {argument.arg for argument in arguments if _is_container(argument.annotation)}
        for node in _own_nodes(function):
            name = _container_added_to(node)
            if name in containers:
                yield Finding(path, node.lineno, f"{function.name} adds to its parameter {name!r}")


def _is_container(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).startswith(("list[", "dict[", "set["))


def _container_added_to(node: ast.AST) -> str | None:
    """Return the name of the variable that a call or an assignment adds to."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
        return node.func.value.id if isinstance(node.func.value, ast.Name) else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0].value
        return target.id if isinstance(target, ast.Name) else None
    return None


def unnamed_results(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Yield ``return`` statements with a tuple of many values."""
    for function in _functions(tree):
        if function.name in TUPLES_OF_LIBRARIES:
            continue
        for node in _own_nodes(function):
            is_tuple = isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
            if is_tuple and len(node.value.elts) > MAX_RESULTS:
                yield Finding(path, node.lineno, f"{function.name} returns {len(node.value.elts)} values")


def vague_names(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Yield variables with a vague name that live longer than some lines."""
    for function in _functions(tree):
        lines: dict[str, list[int]] = {}
        for node in _own_nodes(function):
            if isinstance(node, ast.Name) and node.id in VAGUE:
                lines.setdefault(node.id, []).append(node.lineno)
            if isinstance(node, ast.arg) and node.arg in VAGUE:
                lines.setdefault(node.arg, []).append(node.lineno)
        for name, used in lines.items():
            if max(used) - min(used) > MAX_LIFE:
                yield Finding(path, min(used), f"{function.name}: variable {name!r}")


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, _FUNCTIONS):
            yield from _own_nodes(child)


RULES = {
    "complexity": complex_functions,
    "nested_comprehension": nested_comprehensions,
    "long_condition": long_conditions,
    "filled_parameter": filled_parameters,
    "unnamed_results": unnamed_results,
    "vague_name": vague_names,
}


def findings_of(rule: str, root: Path = ROOT) -> list[Finding]:
    """Return the findings of a rule in the checkout, sorted."""
    findings = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
            findings += RULES[rule](path.relative_to(root), tree)
    return sorted(findings)


class Comparison(NamedTuple):
    """Findings of a rule that the file does not list, whether it lists too many, and its line for the findings."""

    new: list[Finding]
    is_outdated: bool
    line: str


def compare(rule: str, findings: list[Finding], limit: int | list[str]) -> Comparison:
    """Compare the findings of a rule with their largest number, or with the names of the functions allowed."""
    if isinstance(limit, list):
        new = [finding for finding in findings if finding.function not in limit]
        current = sorted({finding.function for finding in findings})
        names = "".join(f'    "{name}",\n' for name in current)
        return Comparison(new, set(limit) > set(current), f"{rule} = [\n{names}]\n")
    new = findings if len(findings) > limit else []
    return Comparison(new, len(findings) < limit, f"{rule} = {len(findings)}\n")


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.text}")


def main(arguments: list[str]) -> int:
    """Compare with the recorded counts and return the exit code."""
    parser = argparse.ArgumentParser(description="Count what makes code dense.")
    parser.add_argument("--update", action="store_true", help="write counts that fell")
    parser.add_argument("--list", choices=RULES, metavar="RULE", help=f"print all findings of {', '.join(RULES)}")
    options = parser.parse_args(arguments)
    if options.list:
        _print(findings_of(options.list))
        return 0
    limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    lines, code = [], 0
    for rule in RULES:
        comparison = compare(rule, findings_of(rule), limits[rule])
        lines.append(comparison.line)
        if comparison.new:
            _print(comparison.new)
            print(f"{rule}: more than in {LIMITS.name}. Write the new ones in plain statements.")
            code = 1
        elif comparison.is_outdated and not options.update:
            print(f"{rule}: fewer than in {LIMITS.name}. Run python tools/check_readability.py --update.")
            code = 1
    if options.update and code == 0:
        header = "# What breaks the rules of tools/check_readability.py; may only get shorter.\n"
        LIMITS.write_text(header + "".join(lines), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

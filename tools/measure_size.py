"""Print the size of the checkout as one table: syntax nodes, modules, lines of code and docstrings, words of the pages.

Syntax nodes do not depend on how lines are broken, so they measure how much code there is; nodes per line of code
tell how dense it is. ``python tools/measure_size.py [FOLDER]``, with another checkout as FOLDER.
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["Size", "measure_folder", "measure_source", "print_table"]

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("protgraph", "plugins", "datasets", "tests", "benchmarks", "tools")


class Size(NamedTuple):
    """Counts of one or more modules."""

    nodes: int = 0  # of the syntax tree
    modules: int = 0
    code: int = 0  # lines that are not blank, comment or docstring
    docstrings: int = 0  # lines of docstrings, blank ones included
    lines: int = 0  # all lines

    def plus(self, other: Size) -> Size:
        """Add two sizes."""
        return Size(*(a + b for a, b in zip(self, other, strict=True)))


def measure_source(source: str) -> Size:
    """Count the syntax nodes and lines of one module."""
    tree = ast.parse(source)
    lines = source.splitlines()
    docstring_lines = _docstring_lines(tree)
    code = 0
    for number, line in enumerate(lines, start=1):
        is_text = number in docstring_lines or not line.strip() or line.lstrip().startswith("#")
        code += not is_text
    nodes = sum(1 for _ in ast.walk(tree))
    return Size(nodes, 1, code, len(docstring_lines), len(lines))


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of all lines of docstrings."""
    numbers: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            numbers.update(range(docstring.lineno, docstring.end_lineno + 1))
    return numbers


def measure_folder(folder: Path) -> Size:
    """Sum the sizes of all modules below a folder."""
    total = Size()
    for path in sorted(folder.rglob("*.py")):
        total = total.plus(measure_source(path.read_text(encoding="utf-8")))
    return total


def count_words(folder: Path) -> int:
    """Count the words of all Markdown pages below a folder, as ``wc -w`` does."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in folder.rglob("*.md"))


def print_table(root: Path) -> None:
    """Print one row per folder of a checkout, and the words of its documentation."""
    header = ("folder", "nodes", "modules", "code lines", "docstring lines", "all lines", "nodes per line")
    print("{:12}{:>10}{:>10}{:>12}{:>17}{:>11}{:>16}".format(*header))
    for name in FOLDERS:
        size = measure_folder(root / name)
        density = size.nodes / max(size.code, 1)
        print(
            f"{name:12}{size.nodes:10,}{size.modules:10,}{size.code:12,}{size.docstrings:17,}"
            f"{size.lines:11,}{density:16.1f}"
        )
    print(f"\nwords in docs/: {count_words(root / 'docs'):,}")


def main() -> int:
    """Print the table of one checkout."""
    parser = argparse.ArgumentParser(description="Print the size of the checkout.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="checkout to measure, by default this one")
    print_table(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

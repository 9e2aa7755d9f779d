"""Check that the docstring of every public name gives the shape of each tensor and array, and units.

Run ``python tools/check_shapes.py`` in the checkout (``make lint`` does), or with Python files to check only those.
Prints one line per finding and exits with 1 if there is any.

Names are those of the API reference: exported classes and functions, public methods and ``__call__``. A parameter,
result or attribute whose annotation is a Tensor or ndarray, also in an Optional, tuple, sequence or mapping of these,
needs a shape in double backquotes, e.g. ``(N, 3)``, or one of the phrases of ``PHRASE``, e.g. "scalar", "same shape" or
"any shape", in its entry. Without an entry, a sentence of the text must have the name of the parameter and a shape; for
a result, the text must have a shape that is not that of a parameter. A tuple of two tensors needs two shapes.
The entry of a physical quantity (``QUANTITY``: names such as ``pos``, ``cutoff``, ``timeout``) needs a unit.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from public_names import FOLDERS, ROOT, modules_of, public_names

__all__ = [
    "Callables",
    "Docstring",
    "Item",
    "aliases",
    "items",
    "items_of_files",
    "main",
    "modules",
    "shape_findings",
    "shapes",
]

#: ``(N, 3)`` or ``x (N, 3)`` in double backquotes, which may go on in the next line.
SHAPE = re.compile(
    r"``(?:[\w.,:\"{}\[\] \n]*[ \n])?\((?:|…|(?:[^()`]|\([^()`]*\))*,(?:[^()`]|\([^()`]*\))*)\)[^`]*``",
)
#: Words in place of a shape.
PHRASE = re.compile(
    r"\bscalars?\b|\b0-d\b|\b(?:same|equal|any) (?:length and )?shapes?\b|\bshapes? of\b|\bshaped (?:as|like)\b",
    re.IGNORECASE,
)
#: One shape for several tensors.
EACH = re.compile(r"\b(?:each|both|all|every|same)\b", re.IGNORECASE)
#: Names of lengths, angles, masses, charges, energies, areas and times.
QUANTITY = re.compile(
    r"(?:pos|backbone|xyz|coords?|coordinates|translations?|probe|area|sasa|(?:\w+_)?(?:cutoff|radius|radii|dist|distances?)"
    r"|angles?|dihedrals?|phi|psi|omega|mass(?:es)?|charges?|energy|energies|seconds|timeout|duration)"
)
#: Units, counts, and links to where the unit is.
UNIT = re.compile(
    r"Å|radian|degree|\bDa\b|elementary charge|kcal|kJ|\bm?s\b|second|minute|hour|dimensionless|unit|number of|bool"
    r"|:(?:func|class|meth|data):",
    re.IGNORECASE,
)
ARRAYS = {"Tensor", "ndarray"}
MAPPINGS = {"Mapping", "dict", "MutableMapping"}
#: Mappings with the names and shapes of a module's parameters; so is the result of a function ``*_state``.
STATES = {"state", "state_dict"}
_GIVEN = ("Parameters", "Other Parameters", "Attributes")
#: "See :func:`name`" and "Result of :func:`name`", where the shapes are those of that function.
LINK = re.compile(r"\b([Ss]ee|[Aa]s|[Aa]s\s+(?:for|in)|[Rr]esult\s+of|[Oo]f)\s+:(?:meth|func):`~?([\w.]+)`")
#: (N, 3) without quotes, as in the types of the sections "Reads" and "Writes".
_PLAIN = re.compile(r"\([\w.…]+,[^()]*(?:\([^()]*\)[^()]*)*\)")
_TITLE = re.compile(r"^(\S[^\n]*)\n-{3,}[^\S\n]*$", re.MULTILINE)
_ENTRY = re.compile(r"^\S.*(?:\n(?:[^\S\n]+\S.*|[^\S\n]*))*", re.MULTILINE)

Finding = tuple[Path, int, str]


def shapes(text: str) -> int:
    """Return the number of shapes and of phrases in place of one."""
    return len(SHAPE.findall(text)) + len(PHRASE.findall(SHAPE.sub("", text)))


class Item(NamedTuple):
    """One parameter, result or attribute that has tensors or arrays.

    Parameters
    ----------
    name : str
        Name; empty for a result.
    line : int
        Line in the file.
    needed : int
        Number of shapes: the tensors of a tuple of fixed length, else 1.
    is_mapping : bool
        True for a mapping of tensors by name.
    """

    name: str
    line: int
    needed: int
    is_mapping: bool


class Docstring:
    """Text and sections of a numpydoc docstring.

    Parameters
    ----------
    text : str
        Docstring without indentation.
    """

    def __init__(self, text: str) -> None:
        titles = list(_TITLE.finditer(text))
        ends = [*(match.start() for match in titles[1:]), len(text)][: len(titles)]
        self.text = text[: titles[0].start()] if titles else text
        self.sections = {m[1].strip(): text[m.end() + 1 : end] for m, end in zip(titles, ends, strict=True)}
        self.results = self.sections.get("Returns") or self.sections.get("Yields")

    def entries(self, *titles: str) -> dict[str, str]:
        """Return name → header and description of the entries of these sections."""
        found = {}
        for title in titles:
            for match in _ENTRY.finditer(self.sections.get(title, "")):
                header = match.group().partition("\n")[0].partition(" : ")[0]
                found.update({name.strip(" *`:"): match.group() for name in header.split(",")})
        return found

    def missing(self, item: Item, alone: list[str], *, result: bool) -> bool:
        """Return True if the shape of an item is missing.

        Parameters
        ----------
        item : Item
            Parameter, result or attribute.
        alone : list of str
            Parameters with tensors that have no entry.
        result : bool
            True if the callable returns tensors.
        """
        if entry := self.entries(*_GIVEN).get(item.name):
            return not _enough(entry, item.needed)
        if self.results and not item.name:
            return not _enough(self.results, item.needed)
        if len(alone) == 1 and item.name and item.needed == 1:  # "Pool ``(N, C)`` to ``(B, C)``."
            return not _enough(self.text, 1 + (result and not self.results))
        if item.name:
            sentences = (s for s in _sentences(self.text) if re.search(rf"\b{re.escape(item.name)}\b", s))
            return not _enough(" ".join(sentences), item.needed)
        text = self.text
        for name in alone:
            text = re.sub(rf"\b{name}(?:``)? (?=``\()", "\0", text)
            text = re.sub(rf"\0{SHAPE.pattern}|``(?:[\w ]*[ ,])?{name} \([^`]*``", "", text)
        return not _enough(text, item.needed)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.;])\s+(?=[A-Z`])|\n\s*\n", text)


def _enough(text: str, needed: int) -> bool:
    count = shapes(text)
    return count >= needed or (count > 0 and bool(EACH.search(PHRASE.sub("", text))))


def aliases(trees: dict[Path, ast.Module]) -> dict[str, ast.expr]:
    """Return name → annotation of the type aliases of modules, e.g. ``Pairs = Sequence[tuple[Tensor, Tensor]]``."""
    found = {}
    for tree in trees.values():
        for item in tree.body:
            name = getattr(item.targets[0], "id", "") if isinstance(item, ast.Assign) else ""
            if re.fullmatch(r"[A-Z][A-Za-z]*", name) and isinstance(item.value, ast.Subscript | ast.BinOp):
                found[name] = item.value
    return found


def _arrays(annotation: ast.expr | None, known: dict[str, ast.expr]) -> int:
    """Return the number of tensors of an annotation: in a tuple of fixed length each, elsewhere one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    name = getattr(annotation, "id", getattr(annotation, "attr", ""))
    if name in ARRAYS:
        return 1
    if name in known:
        return _arrays(known[name], {k: v for k, v in known.items() if k != name})
    if isinstance(annotation, ast.BinOp):
        return max(_arrays(annotation.left, known), _arrays(annotation.right, known))
    if isinstance(annotation, ast.Subscript):
        outer = getattr(annotation.value, "id", getattr(annotation.value, "attr", ""))
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        counts = [_arrays(each, known) for each in inner]
        if outer in ("Callable", "Literal", "type"):
            return 0
        return sum(counts) if outer == "tuple" else max(counts)
    return 0


def _marks(item: ast.FunctionDef) -> set[str]:
    return {getattr(d, "id", getattr(d, "attr", "")) for d in item.decorator_list}


def items(node: ast.FunctionDef | ast.ClassDef, known: dict[str, ast.expr]) -> tuple[list[Item], list[Item]]:
    """Return the parameters or attributes with tensors of a function or class, and its result."""
    results: list[Item] = []
    if isinstance(node, ast.ClassDef):
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
        found = [_item(each.target.id, each, each.annotation, known) for each in fields]
        starts = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        found += [item for each in starts for item in items(each, known)[0]]
    else:
        given = node.args
        every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        found = [_item(each.arg, each, each.annotation, known) for each in every if each is not None]
        results = [_item("", node, node.returns, known)]
        if node.name.endswith("_state") and results[0].is_mapping:
            results = []
    found = [each for each in found if not (each.is_mapping and each.name in STATES) and each.name[0] != "_"]
    return [each for each in found if each.needed], [each for each in results if each.needed]


def _item(name: str, place: ast.AST, annotation: ast.expr | None, known: dict[str, ast.expr]) -> Item:
    text = ast.unparse(annotation) if annotation is not None else ""
    is_mapping = re.match(rf"(?:tuple\[)?(?:{'|'.join(MAPPINGS)})\b", text) is not None
    return Item(name, place.lineno, _arrays(annotation, known), is_mapping)


def _nodes(tree: ast.Module, names: list[str]) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Yield the qualified names and nodes of exported functions and classes, and of public methods."""
    for item in tree.body:
        if not isinstance(item, ast.ClassDef | ast.FunctionDef) or item.name not in names:
            continue
        yield item.name, item
        for method in item.body if isinstance(item, ast.ClassDef) else []:
            is_public = isinstance(method, ast.FunctionDef) and not re.match(r"_(?!_call__$)", method.name)
            if is_public and not _marks(method) & {"overload", "setter", "deleter"}:
                yield f"{item.name}.{method.name}", method


class Callables:
    """Exported functions and classes, and public methods, of all modules, by name and by qualified name.

    Parameters
    ----------
    trees : dict of Path to ast.Module
        Syntax trees of the modules.
    names : dict of Path to list of str
        Their exported names.
    """

    def __init__(self, trees: dict[Path, ast.Module], names: dict[Path, list[str]]) -> None:
        self.known = aliases(trees)
        self.nodes = {path: list(_nodes(tree, names[path])) for path, tree in trees.items()}
        self.by_name = {name: node for nodes in self.nodes.values() for name, node in nodes}

    def findings(self, path: Path) -> Iterator[tuple[Finding, bool]]:
        """Yield one finding for each shape and unit of a module, and True if it is missing."""
        for name, node in self.nodes[path]:
            for item, is_missing in self.check(name, node):
                title = f"{name}: {item.name or 'result'} has no shape. Add it, e.g. ``(N, 3)``"
                yield (path, item.line, title), is_missing
            for entry, text in Docstring(ast.get_docstring(node) or "").entries(*_GIVEN).items():
                if QUANTITY.fullmatch(entry):
                    yield (path, node.lineno, f"{name}: {entry} has no unit. Add it, e.g. Å"), not UNIT.search(text)

    def check(
        self, name: str, node: ast.FunctionDef | ast.ClassDef, *, follow: bool = True
    ) -> Iterator[tuple[Item, bool]]:
        """Yield the items of a function or class, and True for each whose shape is missing."""
        doc, (given, results) = Docstring(ast.get_docstring(node) or ""), items(node, self.known)
        alone = [item.name for item in given if item.name not in doc.entries(*_GIVEN)]
        for item in [*given, *results]:
            is_missing = doc.missing(item, alone, result=bool(results))
            is_stated = is_missing and (self._in_class(name, item) or (follow and self._by_link(name, doc, item)))
            yield item, is_missing and not is_stated

    def _in_class(self, name: str, item: Item) -> bool:
        """Return True for the fields of a layer or featurizer whose class has their shapes, "Reads" and "Writes"."""
        owner = self.by_name.get(name.rpartition(".")[0])
        text, title = (owner and ast.get_docstring(owner)) or "", "Reads" if item.name else "Writes"
        if not item.is_mapping or not text:
            return False
        found = re.search(rf"\b{title}(?: \(variadic\))?: .*(?:\n *\S.*)*", text)
        return _PLAIN.search(Docstring(text).sections.get(title, "") + (found.group() if found else "")) is not None

    def _by_link(self, name: str, doc: Docstring, item: Item) -> bool:
        """Return True if the text, or the entry, is a link to a callable that has the shape of the same name."""
        entry = doc.entries(*_GIVEN).get(item.name) if item.name else doc.results
        for words, link in LINK.findall(entry or doc.text):
            wanted = "" if entry and words.lower().endswith("of") else item.name
            if not entry and words.lower().endswith("of"):
                continue
            for target in (".".join(link.split(".")[-2:]), f"{name.rpartition('.')[0]}.{link}", link.split(".")[-1]):
                if node := self.by_name.get(target):
                    return (wanted, False) in [(i.name, bad) for i, bad in self.check(target, node, follow=False)]
        return False


def modules() -> dict[Path, list[str]]:
    """Return the files of the modules that export names, with the names."""
    found = {}
    for package, folder in FOLDERS.items():
        for module in modules_of(package):
            inner = module.partition(".")[2].replace(".", "/")
            found[ROOT / folder / f"{inner}.py"] = public_names(module)
    return found


def shape_findings() -> Iterator[Finding]:
    """Yield the items of the public names that have no shape or unit."""
    return (finding for finding, is_missing in items_of_files() if is_missing)


def items_of_files(chosen: set[Path] | None = None) -> Iterator[tuple[Finding, bool]]:
    """Yield each item of the public names, of the chosen files or all, and True if its shape is missing."""
    names = modules()
    callables = Callables({path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in names}, names)
    for path in names:
        if chosen is None or path in chosen:
            yield from callables.findings(path)


def main(arguments: list[str]) -> int:
    """Print the findings of the given files, or of all, and return the exit code."""
    every = list(items_of_files({Path(a).resolve() for a in arguments} if arguments else None))
    found = [finding for finding, is_missing in every if is_missing]
    for path, line, text in found:
        print(f"{path.relative_to(ROOT)}:{line}: {text}")
    print(f"{len(found)} findings" if found else f"shapes: no findings, {len(every)} shapes and units")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

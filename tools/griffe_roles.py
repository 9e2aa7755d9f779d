"""Griffe extension: convert the reStructuredText roles of docstrings to Markdown for the documentation site.

Docstrings follow numpydoc. MkDocs renders Markdown, so ``:func:`name``` becomes a link, ``:math:`…``` a formula between
dollar signs, and ``::`` before an indented block a colon.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe
from public_names import FOLDERS, anchor

__all__ = ["RolesExtension", "to_markdown"]

#: ``:func:`target```, ``:class:`~package.target``` or ``:func:`title <target>```.
ROLE = re.compile(r":(?:py:)?(attr|class|data|exc|func|meth|mod|obj):`(?:([^`<]+?)\s*<)?(~?)([\w.]+)>?`")
MATH = re.compile(r":math:`([^`]+)`")


class RolesExtension(griffe.Extension):
    """Rewrite the docstring of every object before it is parsed into sections, and add constants assigned together."""

    def on_attribute_node(self, *, node: ast.AST, agent: Any, **_: Any) -> None:
        """Add the constants of a line ``A, B = 1, 2`` of a module, which griffe leaves out."""
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Tuple) or not agent.current.is_module:
            return
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [None] * len(target.elts)
        for element, value in zip(target.elts, values, strict=True):
            text = None if value is None else ast.unparse(value)
            constant = griffe.Attribute(element.id, value=text, lineno=node.lineno, endlineno=node.end_lineno)
            constant.labels.add("module-attribute")
            agent.current.set_member(element.id, constant)
            constant.docstring = griffe.Docstring(_comment(constant) or "Constant.", parent=constant)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the text of the docstring of one object; a comment at a constant or a field is its docstring."""
        if obj.docstring is None and obj.is_attribute and obj.parent is not None:
            comment = _comment(obj)
            if obj.parent.is_module:
                obj.docstring = griffe.Docstring(comment or "Constant.", parent=obj)
            elif comment and _is_field(obj):
                obj.docstring = griffe.Docstring(comment, parent=obj)
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value, obj)


def to_markdown(text: str, obj: griffe.Object | None = None) -> str:
    """Return a docstring with Markdown in place of reStructuredText roles.

    Parameters
    ----------
    text : str
        Docstring.
    obj : griffe.Object
        Object in whose scope names of roles are looked up; None leaves them as code without a link.

    Examples
    --------
    >>> to_markdown("See :func:`numpy.cross`::")
    'See `numpy.cross`:'
    >>> to_markdown(":math:`x_i`, :class:`~a.B`, :meth:`the method <a.b>`")
    '$x_i$, `B`, `the method`'
    """

    def link(match: re.Match[str]) -> str:
        _, title, short, target = match.groups()
        shown = title or (target.rpartition(".")[2] if short else target)
        path = _resolve(target, obj)
        return f"[`{shown}`][{path}]" if path else f"`{shown}`"

    text = MATH.sub(r"$\1$", ROLE.sub(link, text))
    return re.sub(r"::$", ":", text, flags=re.MULTILINE)


def _comment(obj: griffe.Object) -> str:
    """Return the comment above or behind a constant or a field; "" without one."""
    lines = obj.lines_collection[obj.filepath]
    first, last = (obj.lineno or 1) - 1, (obj.endlineno or obj.lineno or 1) - 1
    above: list[str] = []
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
        above.insert(0, lines[first].lstrip("#: "))
    behind = lines[last].partition("  # ")[2]
    text = " ".join(above) or behind
    return text[:1].upper() + text[1:]


def _is_field(obj: griffe.Object) -> bool:
    """Return True for an attribute that is declared in the body of a class, rather than set in a method."""
    line = obj.lines_collection[obj.filepath][(obj.lineno or 1) - 1]
    return re.match(rf"\s+{obj.name}\b", line) is not None


def _resolve(target: str, obj: griffe.Object | None) -> str | None:
    """Return the anchor of a name of this repository, as seen from an object; None for other packages."""
    if target.split(".")[0] in FOLDERS:
        return anchor(target)
    scope = obj
    while scope is not None:
        head, _, tail = target.partition(".")
        if scope.is_class and head in scope.members:
            return anchor(f"{scope.path}.{target}")
        if scope.is_module:
            try:
                path = scope.resolve(head)
            except griffe.NameResolutionError:
                return None
            return anchor(f"{path}.{tail}" if tail else path)
        scope = scope.parent
    return None

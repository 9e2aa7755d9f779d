"""Test the check of the shapes in docstrings on modules that break its rule."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
spec = importlib.util.spec_from_file_location("check_shapes", ROOT / "tools" / "check_shapes.py")
check_shapes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_shapes)

#: Items that may lack a shape; raise it only with a reason in the commit.
CLASS = 'class A:\n    """{}"""\n\n    {}\n'


def missing(source: str) -> list[str]:
    """Return the names of the items without a shape of a module that exports every name."""
    path, tree = Path("module.py"), ast.parse(source)
    names = [item.name for item in tree.body if isinstance(item, ast.FunctionDef | ast.ClassDef)]
    callables = check_shapes.Callables({path: tree}, {path: names})
    return [text.split(" has no")[0] for (_, _, text), is_missing in callables.findings(path) if is_missing]


def function(signature: str, doc: str) -> str:
    """Return the source of a function with a docstring."""
    return f'def f{signature}:\n    """{doc}"""\n'


@pytest.mark.parametrize(
    "annotation",
    [
        "Tensor", "torch.Tensor", "np.ndarray", "Tensor | None", "Optional[Tensor]", "'Tensor'", "list[Tensor]",
        "Sequence[np.ndarray | None]", "Mapping[str, Tensor]", "tuple[Tensor, ...]", "Iterator[tuple[int, Tensor]]",
    ],
)  # fmt: skip
def test_parameters_and_results_without_a_shape_are_found(annotation):
    entry = "Do.\n\n    Parameters\n    ----------\n    x : Tensor\n        {} of nodes.\n    "
    assert missing(function(f"(x: {annotation}) -> None", entry.format("Values"))) == ["f: x"]
    assert missing(function(f"(x: {annotation}) -> None", entry.format("``(N, C)`` values"))) == []
    result = "Do.\n\n    Returns\n    -------\n    Tensor\n        {} of nodes.\n    "
    assert missing(function(f"() -> {annotation}", result.format("Values"))) == ["f: result"]
    assert missing(function(f"() -> {annotation}", result.format("``(N, C)`` values"))) == []


@pytest.mark.parametrize("annotation", ["int", "Callable[[Tensor], Tensor]", "Data", "None"])
def test_other_annotations_need_no_shape(annotation):
    assert missing(function(f"(x: {annotation}) -> {annotation}", "Do.")) == []


@pytest.mark.parametrize(
    "text",
    ["``(N,)``", "``(N, 3)``", "``h (N, C)``", "``(…)``", "``()``", "``(R, f(D, d), 2l+1)``", '``{"h": (N, C)}``',
     "a scalar", "of the shape of y", "of any shape", "0-d"],
)  # fmt: skip
def test_forms_of_a_shape(text):
    assert missing(function("() -> Tensor", f"Return values, {text}.")) == []


@pytest.mark.parametrize("text", ["(N, 3)", "`(N, 3)`", "``N``", "``f(x)``", "3 × 3", "the shape"])
def test_other_forms_are_no_shape(text):
    assert missing(function("() -> Tensor", f"Return values, {text}.")) == ["f: result"]


@pytest.mark.parametrize(
    ("signature", "doc", "found"),
    [
        ("(x: Tensor) -> Tensor", "Pool ``(N, C)`` to ``(B, C)``.", []),
        ("(x: Tensor) -> Tensor", "Pool ``(N, C)``.", ["f: x"]),
        ("(x: Tensor) -> Tensor", "Scale ``(N, C)`` to the same shape.", []),
        ("(a: Tensor, b: Tensor) -> None", "Check ``a (N,)`` and ``b (M,)``.", []),
        ("(a: Tensor, b: Tensor) -> None", "Check ``a (N,)``.", ["f: b"]),
        ("(a: Tensor, b: Tensor) -> None", "Check a.\n\n    It is ``(N,)``, and ``b`` ``(M,)``.\n    ", ["f: a"]),
        ("(a: Tensor, b: Tensor) -> Tensor", "Join ``a (N,)`` and ``b (M,)``.", ["f: result"]),
        ("(a: Tensor, b: Tensor) -> Tensor", "Join ``a (N,)`` and ``b (M,)`` to ``(N + M,)``.", []),
        ("() -> tuple[Tensor, Tensor]", "Return rows ``(N,)`` and columns.", ["f: result"]),
        ("() -> tuple[Tensor, Tensor]", "Return rows and columns, ``(N,)`` each.", []),
        ("(state_dict: Mapping[str, Tensor]) -> None", "Load weights.", []),
    ],
)
def test_shapes_in_sentences(signature, doc, found):
    assert missing(function(signature, doc)) == found


def test_attributes_and_methods_of_a_class():
    assert missing(CLASS.format("Values.", "x: Tensor")) == ["A: x"]
    assert missing(CLASS.format("Values ``(N,)``.", "x: Tensor")) == []
    assert missing(CLASS.format("Values.", "_x: Tensor")) == []
    assert missing(CLASS.format("Values.", "def __init__(self, x: Tensor) -> None: ...")) == ["A: x"]
    assert missing(CLASS.format("Values.", "def __call__(self, x: Tensor) -> None: ...")) == ["A.__call__: x"]
    assert missing(CLASS.format("Values.", "def __add__(self, x: Tensor) -> None: ...")) == []
    assert missing(CLASS.format("Values.", "@property\n    def x(self) -> Tensor: ...")) == ["A.x: result"]


def test_reads_and_writes_of_a_class_are_the_shapes_of_its_mappings():
    method = "def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]: ..."
    notes = "A layer.\n\n    Notes\n    -----\n    Reads: ``h`` ``(N, C)``.\n    {}: ``h`` ``(N, C)``.\n    "
    assert missing(CLASS.format(notes.format("Writes"), method)) == []
    assert missing(CLASS.format(notes.format("Gives"), method)) == ["A.forward: result"]
    assert missing(CLASS.format(notes.format("Writes"), method.replace("dict[str, Tensor]", "Tensor"))) == [
        "A.forward: result"
    ]


@pytest.mark.parametrize("name", ["pos", "cutoff", "ca_cutoff", "edge_dist", "angles", "mass", "timeout"])
def test_physical_quantities_need_a_unit(name):
    doc = "Do.\n\n    Parameters\n    ----------\n    {} : float\n        Largest value{}.\n    "
    assert missing(function(f"({name}: float) -> None", doc.format(name, ""))) == [f"f: {name}"]
    for unit in (", Å", " in radians", ", Da", " in seconds", ", s", "; dimensionless"):
        assert missing(function(f"({name}: float) -> None", doc.format(name, unit))) == []
    assert missing(function("(width: float) -> None", doc.format("width", ""))) == []


def test_a_link_to_a_documented_function_is_enough():
    target = 'def g(x: Tensor) -> Tensor:\n    """Scale {}."""\n\n\n'
    link = function("(x: Tensor) -> Tensor", "Scale; see :func:`g`.")
    assert missing(target.format("``(N,)`` to ``(N,)``") + link) == []
    assert missing(target.format("it") + link) == ["g: x", "g: result", "f: x", "f: result"]
    assert missing(target.format("``(N,)`` to ``(N,)``") + link.replace("(x:", "(y:")) == ["f: y"]


def test_every_public_name_has_its_shapes(capsys):
    assert check_shapes.main([]) == 0, capsys.readouterr().out
    assert len(list(check_shapes.items_of_files())) > 1400


def test_the_style_check_has_the_shapes(monkeypatch):
    style = importlib.util.spec_from_file_location("check_style", ROOT / "tools" / "check_style.py")
    module = importlib.util.module_from_spec(style)
    style.loader.exec_module(module)
    import check_shapes as loaded

    monkeypatch.setattr(loaded, "shape_findings", lambda: iter([(ROOT / "planted.py", 1, "planted")]))
    assert [text for *_, text in module.shapes_in_docstrings()] == ["planted"]

"""Types of arguments: unions, containers, literals, NumPy numbers, and the message of a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from protgraph.argument_types import check_arguments, check_fields
from protgraph.errors import FieldError, OptionError


@check_arguments("path", "chains", "kind", "scale", "counts")
def read(
    path: str | Path,
    chains: Sequence[str] | None = None,
    kind: Literal["node", "edge"] = "node",
    scale: float = 1.0,
    counts: int | Iterable[int] = 1,
    *,
    other: object = None,
) -> str:
    """Return the path."""
    return str(path)


@pytest.mark.parametrize(
    "options",
    [
        {"chains": ["A"]},
        {"chains": ("A", "B")},
        {"kind": "edge"},
        {"scale": 2},
        {"scale": np.float32(0.5)},
        {"counts": np.int64(3)},
        {"counts": range(3)},
        {"counts": (i for i in range(3))},
        {"other": object()},
    ],
    ids=lambda options: next(iter(options)),
)
def test_values_of_the_annotated_type_are_accepted(options: Mapping[str, object]) -> None:
    assert read("a", **options) == "a" and read(Path("a"), **options) == "a"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("path", None, "a string or a path"),
        ("chains", "A", "a sequence of string or None"),
        ("chains", [1], "a sequence of string or None"),
        ("kind", "nodes", "'node', 'edge'"),
        ("scale", "big", "a number"),
        ("scale", True, "a number"),
        ("counts", 1.5, "an integer or an iterable of integer"),
        ("counts", [1, "x"], "an integer or an iterable of integer"),
    ],
)
def test_another_type_is_an_error_with_function_argument_value_and_types(
    name: str, value: object, allowed: str
) -> None:
    with pytest.raises(OptionError) as caught:
        read(**{"path": "a", name: value})
    text = str(caught.value)
    assert text.startswith(f"read: {name} = {value!r}.") and text.endswith(f"Allowed: {allowed}.")


def test_a_misspelled_choice_is_suggested() -> None:
    with pytest.raises(OptionError, match="'node'"):
        read("a", kind="nod")


def test_a_long_value_is_named_by_its_type() -> None:
    with pytest.raises(OptionError) as caught:
        read(["x" * 1000])
    assert "list" in str(caught.value) and len(str(caught.value)) < 100


def test_a_missing_argument_is_an_error_of_python() -> None:
    with pytest.raises(TypeError, match="path"):
        read()


@dataclass
class Row:
    """Record with checked fields."""

    name: str
    size: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, "name", "size", error=FieldError)


def test_fields_of_a_dataclass_are_checked_with_the_given_error() -> None:
    assert Row("a", 3).size == 3
    with pytest.raises(FieldError, match=r"Row: size = '3'\. Allowed: an integer or None\."):
        Row("a", "3")

"""Errors of declared types in one line with the path of the key."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from protgraph.errors import DatasetError, OptionError
from protgraph.validation import check_value, describe_errors


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    seeds: tuple[int, ...] = ()


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    inner: Inner = Inner()


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"name": 3}, ["name = 3", "a string"]),
        ({"nme": "x"}, ["name is missing", "'nme'", "'name'"]),
        ({"name": "x", "inner": {"seeds": (1, "b")}}, ["inner.seeds[1] = 'b'", "an integer"]),
    ],
    ids=["type", "unknown_and_missing", "nested"],
)
def test_errors_have_path_value_and_allowed_values(data, parts):
    with pytest.raises(ValidationError) as e:
        Outer.model_validate(data)
    text = describe_errors(e.value, keys=Outer.model_fields)
    assert all(part in text for part in parts)


def test_check_value_has_the_path_of_the_element():
    check_value({"a": [1]}, dict[str, list[int]], path="options")
    with pytest.raises(OptionError, match=r"options\.a\[1\] = 'x'"):
        check_value({"a": [1, "x"]}, dict[str, list[int]], path="options")
    with pytest.raises(DatasetError):
        check_value(1, str, path="name", error=DatasetError)


@pytest.mark.parametrize(
    ("annotation", "allowed"),
    [
        (int | str, "an integer or a string"),
        (str | int, "a string or an integer"),
        (Literal[1], "1"),
        (Literal[True], "True"),
        (Annotated[int, ["Å"]], "an integer"),
    ],
)
def test_equal_types_keep_their_own_messages(annotation, allowed):
    for _ in range(2):
        with pytest.raises(OptionError, match=f"Allowed: {allowed}\\."):
            check_value(None, annotation, path="option")

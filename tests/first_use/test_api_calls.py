"""Wrong arguments of public functions raise typed errors that name the argument, its value and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.first_use.api_calls import API_CALLS, ApiCall, api_names, call_faults


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the objects that the expressions use."""
    return api_names(tmp_path_factory.mktemp("calls") / "inputs")


@pytest.mark.parametrize("call", API_CALLS, ids=str)
def test_a_wrong_argument_raises_a_typed_error_with_its_data(call: ApiCall, names: dict[str, Any]) -> None:
    assert call_faults(call, names) == []


def test_there_are_as_many_calls_as_in_the_review() -> None:
    assert len({call.expression for call in API_CALLS}) == len(API_CALLS) >= 104

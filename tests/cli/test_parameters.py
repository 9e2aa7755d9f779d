"""Empty values and values of another type of every kind of parameter."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("args", "parameter"),
    [
        (["train", "gcn", "--data", "", "--task", "interface"], "--data"),
        (["train", "gcn", "--data", "A", "--task", ""], "--task"),
        (["train", "", "--data", "A"], "model"),
        (["train", "gcn", "--data", "A", "--labels", ""], "--labels"),
        (["predict", "ss.safetensors", "", "-o", "x.csv"], "files"),
        (["predict", "ss.safetensors", "1ubq.cif", "", "-o", "x.csv"], "files"),
        (["predict", "ss.safetensors", "1ubq.cif", "-o", ""], "--out"),
        (["view", "1ubq.cif", "-o", "x.html", "--color", ""], "--color"),
        (["list", ""], "kind"),
        (["bench", ""], "spec"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[:1]),
)
def test_an_empty_value_is_refused_with_the_name_of_its_parameter(run, args: list[str], parameter: str) -> None:
    result = run(*args)
    # Old versions of Typer print the names of arguments in capitals.
    assert result.code == 2 and parameter in result.err.lower() and "''" in result.err


@pytest.mark.parametrize(
    ("args", "option"),
    [
        (["design", "x.cif", "--redesign", ""], "--redesign"),
        (["scan", "x.cif", "-o", "x.csv", "--positions", ""], "--positions"),
        (["mutate", "x.cif", "--mutations", "A:G1A", "--partners", ""], "--partners"),
        (["view", "x.cif", "--edges", ""], "--edges"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_empty_value_is_refused_where_it_would_mean_all(run, args: list[str], option: str) -> None:
    result = run(*args)
    assert result.code == 2 and option in result.err and "''" in result.err


@pytest.mark.parametrize("value", ["1.5", "abc"])
def test_a_value_of_another_type_is_named(run, value: str) -> None:
    result = run("train", "gcn", "--data", "A", "--seed", value)
    assert result.code == 2 and "--seed" in result.err and f"'{value}'" in result.err

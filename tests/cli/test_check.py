"""``protgraph check``: verdicts, exit codes and the table."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg


def test_each_check_is_shown_with_what_was_measured(run):
    result = run("check", "linear")
    assert result.code == 0
    assert "layer linear" in result.out and "✓ rotation" in result.out and "1 of 1 components pass" in result.out


def test_a_failure_is_exit_code_1_and_says_what(run, monkeypatch):
    class CliZero(pg.GraphLayer):
        reads, writes = ("h",), ("h",)

        def __init__(self, fields):
            super().__init__(fields)
            self.declare(h=fields["h"].irreps)

        def forward(self, f):
            return {"h": 0 * f["h"]}

    monkeypatch.setattr(pg.layers, "_session", dict(pg.layers._session))
    pg.layers.register("cli_zero", CliZero)
    result = run("check", "cli_zero")
    assert result.code == 1
    assert "✗ non_trivial" in result.out and "nothing but zeros" in result.out and "0 of 1" in result.out


def test_all_of_a_kind_with_a_table(run, tmp_path):
    table = tmp_path / "docs" / "equivariance.md"
    result = run("check", "--all", "--kind", "heads", "--table", table)
    assert result.code == 0, result.out
    text = table.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| head ")]
    assert len(rows) == len(pg.heads)
    assert "float64, CPU" in text and f"torch {torch.__version__}" in text and "protgraph" in text
    worst = max(float(row.split("|")[2]) for row in rows)
    assert 0 < worst < 1e-10


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["schnett"], "Did you mean 'schnet'"),
        ([], "--all"),
        (["gat", "--all"], "--all"),
        (["gat", "--kind", "task"], "--kind"),
        (["gat", "--dtype", "float8"], "float8"),
        (["gat", "--device", "nowhere"], "nowhere"),
    ],
)
def test_a_wrong_request_is_exit_code_2(run, args, says):
    result = run("check", *args)
    assert result.code == 2 and says in result.err

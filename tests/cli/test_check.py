"""Command ``protgraph check``: reports, exit codes and the table."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from importlib.metadata import version

import pytest

import protgraph as pg
from protgraph.testing.equivariance_table import EquivarianceRow, equivariance_csv, equivariance_markdown


@pytest.mark.slow
def test_each_check_is_shown_with_its_error(run):
    result = run("check", "linear")
    assert result.code == 0
    assert "layer linear" in result.out and "✓ rotation" in result.out and "1 of 1 components pass" in result.out


@pytest.mark.slow
def test_a_failure_is_shown_with_exit_code_1(run, monkeypatch):
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
    assert "✗ non_trivial" in result.out and "zero" in result.out and "0 of 1" in result.out


@pytest.mark.slow
def test_all_of_a_kind_with_a_table(run, tmp_path):
    table = tmp_path / "docs" / "equivariance.md"
    result = run("check", "--all", "--kind", "heads", "--table", table)
    assert result.code == 0, result.out
    rows = rows_of(table.with_suffix(".csv").read_text(encoding="utf-8"))
    assert len(rows) == len(pg.heads)
    assert 0 < max(float(row["float64, CPU"]) for row in rows) < 1e-10
    page = table.read_text(encoding="utf-8")
    assert "(equivariance.csv)" in page and f"torch {version('torch')}" in page and "protgraph" in page
    assert "[^1]" not in page


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.slow
def test_an_expected_failure_in_the_table_has_a_footnote_with_its_reason(run, tmp_path):
    page = tmp_path / "equivariance.md"
    assert run("check", "ca_pair_rbf", "linear", "--table", page).code == 0
    reason = pg.featurizers.get("ca_pair_rbf").conformity.expected_failures["rotation"]
    lines = page.read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.startswith("| featurizer ca_pair_rbf"))
    assert float(row.split("|")[2].split()[0]) > 1e-3 and row.count("[^1]") == 2
    assert any(line.startswith("[^1]: ") and reason in line for line in lines)
    failing, linear = rows_of(page.with_suffix(".csv").read_text(encoding="utf-8"))
    assert reason in failing["note"] and linear["note"] == ""


@pytest.mark.slow
def test_the_summary_has_the_peak_memory(run):
    *_, size, unit = run("check", "linear").out.split()
    assert float(size) > 100 and unit == "MiB"


@pytest.mark.slow
def test_the_largest_model_is_checked_below_1300_mib():
    """Its parameters take 666 MiB in float64, and the imported libraries 460 MiB."""
    program = [sys.executable, "-m", "protgraph", "check", "bert.devlin2019"]
    result = subprocess.run(program, capture_output=True, text=True, check=False)
    *_, peak, unit = result.stdout.split()
    assert (result.returncode, unit) == (0, "MiB") and float(peak) < 1300


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["schnett"], "Did you mean 'schnet'"),
        ([], "--all"),
        (["gat", "--all"], "--all"),
        (["gat", "--kind", "vertex"], "--kind"),
        (["gat", "--dtype", "float8"], "float8"),
        (["gat", "--device", "nowhere"], "nowhere"),
    ],
)
def test_a_wrong_request_is_exit_code_2(run, args, text):
    result = run("check", *args)
    assert result.code == 2 and text in result.err


@pytest.mark.slow
def test_worker_processes_give_the_same_reports_and_table(run, tmp_path):
    found = []
    for jobs in (1, 2):
        table = tmp_path / f"{jobs}.md"
        some = ("--only", "rotation", "--only", "state_dict")
        result = run("check", "linear", "add", "concat", "layer_norm", "mlp", *some, "--jobs", jobs, "--table", table)
        assert result.code == 0
        errors = table.with_suffix(".csv").read_text(encoding="utf-8")
        found.append(([line for line in result.out.splitlines() if "✓" in line], errors))
    assert found[0] == found[1] and len(found[0][0]) == 5


def test_a_process_that_dies_fails_its_component(run, monkeypatch):
    from protgraph.worker_process import WorkerDied

    def results(self, items, *, in_order):
        yield from ((item, WorkerDied("was killed by SIGKILL (out of memory?)")) for item in items)

    monkeypatch.setattr("protgraph.worker_pool.WorkerPool.run", results)
    result = run("check", "linear", "add", "--jobs", 2)
    assert result.code == 1
    assert "✗ layer linear" in result.out and "its process was killed by SIGKILL" in result.out
    assert "0 of 2 components pass, 2 failed" in result.out


def test_only_named_checks_run(run):
    result = run("check", "linear", "--only", "rotation", "--only", "state_dict")
    assert result.code == 0
    assert [line.split()[1] for line in result.out.splitlines() if "✓" in line] == ["builds", "rotation", "state_dict"]
    result = run("check", "linear", "--only", "rotations")
    assert result.code == 2 and "'rotations'" in result.err and "rotation" in result.err


def test_rows_of_the_table_are_kept_if_the_command_is_interrupted(run, tmp_path, monkeypatch):
    from protgraph.cli import check_reports

    def interrupted(components, *arguments, **options):
        yield from check_components(components[:2], *arguments, **options)
        raise KeyboardInterrupt

    check_components = check_reports.check_components
    monkeypatch.setattr(check_reports, "check_components", interrupted)
    table = tmp_path / "errors.md"
    assert run("check", "linear", "add", "concat", "--only", "rotation", "--table", table).code == 130
    assert not table.exists()
    rows = rows_of((tmp_path / "errors.csv.partial").read_text(encoding="utf-8"))
    assert [row["component"] for row in rows] == ["layer linear", "layer add"]


def test_the_page_has_the_largest_errors_and_the_csv_file_all():
    rows = [EquivarianceRow(f"layer number{n}", 1e-4, {"float32, CPU": n * 1e-7}) for n in range(12)]
    rows.append(EquivarianceRow("layer strict", 1e-5, {"float32, CPU": 5e-6}))  # half of its tolerance
    rows.append(EquivarianceRow("layer missing", 1e-5, {"float32, CPU": "not installed"}))
    page = equivariance_markdown(rows, table="errors.csv", command="protgraph check")
    components = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| layer")]
    assert components == ["| layer strict", *(f"| layer number{n}" for n in range(11, 7, -1))]
    assert "are missing: layer missing." in page
    cells = {row["component"]: row["float32, CPU"] for row in rows_of(equivariance_csv(rows))}
    assert len(cells) == 14 and cells["layer missing"] == "not installed" and cells["layer number3"] == "3.0e-07"

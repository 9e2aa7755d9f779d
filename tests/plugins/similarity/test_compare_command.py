"""``protgraph compare``: scores, tables, files that exist, chains."""

from __future__ import annotations

import csv

import pytest


def test_scores_and_table(run, tmp_path, structures_dir):
    file, out = structures_dir / "1crn.bcif", tmp_path / "lddt.csv"
    result = run("compare", file, file, "-o", out)
    assert result.code == 0, result.err
    assert "46 residues compared" in result.err and "lddt     1.0000" in result.out
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == 46 and all(row["lddt"] == row["lddt_ca"] == "1.0000" for row in rows)
    scores = {row["score"]: float(row["value"]) for row in csv.DictReader((tmp_path / "lddt.csv.scores.csv").open())}
    assert scores == pytest.approx(
        {"lddt": 1, "lddt_ca": 1, "tm_score": 1, "gdt_ts": 1, "gdt_ha": 1, "rmsd": 0}, abs=1e-5
    )
    assert run("compare", file, file, "-o", out).code == 2
    assert run("compare", file, file, "-o", out, "--overwrite").code == 0


def test_chains_and_rules_that_do_not_fit_are_named(run, structures_dir):
    one, four = structures_dir / "1crn.bcif", structures_dir / "1jk9.bcif"
    for chains, word in (("A:Z", "'Z'"), ("A", "MODEL:REFERENCE"), ("A:A,A:B", "MODEL:REFERENCE")):
        result = run("compare", one, four, "--chains", chains)
        assert result.code == 2 and word in result.err and "Traceback" not in result.err
    assert run("compare", one, four, "--match", "name").code == 2
    assert run("compare", one, structures_dir / "9zzz.cif").code == 2


def test_the_input_is_not_replaced(run, tmp_path, structures_dir):
    copy = tmp_path / "model.csv"
    copy.write_bytes((structures_dir / "1crn.bcif").read_bytes())
    assert run("compare", copy, structures_dir / "1crn.bcif", "-o", copy, "--overwrite").code == 2

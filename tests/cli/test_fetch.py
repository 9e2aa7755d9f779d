"""Identifiers to files in a folder, and in the place of files."""

from __future__ import annotations

import csv
import sys

import pytest


@pytest.fixture(autouse=True)
def _archive(structures_dir, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PROTGRAPH_PDB_BCIF_URL", f"file://{structures_dir}/{{id}}.bcif")
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PROTGRAPH_OFFLINE", raising=False)


def test_fetch_puts_files_in_a_folder(run, tmp_path, structures_dir):
    (tmp_path / "ids.txt").write_text("# mine\n1crn\n\npdb:1JK9\n")
    result = run("fetch", f"@{tmp_path / 'ids.txt'}", "-o", tmp_path / "out")
    assert result.code == 0, result.err
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["1crn.bcif", "1jk9.bcif"]
    assert (tmp_path / "out" / "1crn.bcif").read_bytes() == (structures_dir / "1crn.bcif").read_bytes()


def test_what_fails_is_named_and_the_others_go_on(run, tmp_path):
    result = run("fetch", "1crn", "9zzz", "ubiquitin", "--retries", 0)
    assert result.code == 1 and "1crn →" in result.out
    assert "9zzz" in result.err and "ubiquitin" in result.err and "Traceback" not in result.err
    assert run("fetch", "1jk9", "--offline").code == 2


@pytest.mark.slow
def test_an_accession_can_replace_a_file(run, tmp_path, monkeypatch):
    result = run("featurize", "pdb:1crn", "pdb:9zzz", "-o", tmp_path / "graphs", "-f", "dihedral", "--jobs", 1)
    assert result.code in (1, 2), result.err
    assert "1crn" in (tmp_path / "graphs.manifest.tsv").read_text()
    rows = {r["source"]: r for r in csv.DictReader((tmp_path / "graphs.manifest.tsv").open(), delimiter="\t")}
    assert rows["pdb:1crn"]["status"] == "done" and rows["pdb:9zzz"]["status"] == "failed"
    monkeypatch.chdir(tmp_path)
    result = run("featurize", "1crn", "-o", tmp_path / "other")
    assert result.code == 2 and "pdb:1crn" in result.err


def test_a_changed_copy_is_replaced_only_with_overwrite(run, tmp_path, monkeypatch):
    archived = tmp_path / "cache" / "1crn.cif"
    archived.parent.mkdir()
    archived.write_text("data_1crn")
    monkeypatch.setattr(sys.modules["protgraph.structure.io.archives"], "fetch", lambda *_, **__: archived)
    copy = tmp_path / "out" / "1crn.cif"
    assert run("fetch", "1crn", "-o", copy.parent).code == 0
    assert run("fetch", "1crn", "-o", copy.parent).code == 0  # equal: nothing to replace
    copy.write_text("data_mine")
    refused = run("fetch", "1crn", "-o", copy.parent)
    assert refused.code == 2 and str(copy) in refused.err and copy.read_text() == "data_mine"
    assert run("fetch", "1crn", "-o", copy.parent, "--overwrite").code == 0 and copy.read_text() == "data_1crn"

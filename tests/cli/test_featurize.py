"""Folders, patterns and lists to one graph store and a manifest."""

from __future__ import annotations

import csv
import json
import shutil

import pytest

from protgraph import errors as errors_of_protgraph
from protgraph.data.store.graph_store import GraphStore
from protgraph.structure import LossReport, clean, load_structure


@pytest.fixture
def tree(tmp_path, structures_dir):
    for name, place in {"1crn": "", "10sb": "a", "1jk9": "a/b"}.items():
        (tmp_path / "in" / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "in" / place)
    (tmp_path / "in" / "notes.txt").write_text("not a structure")
    return tmp_path / "in"


@pytest.mark.parametrize("given", ["{0}", "{0}/**/*.bcif", "@{0}/list.txt"])
def test_folders_are_searched_recursively_and_patterns_and_lists_expanded(run, tree, tmp_path, given):
    (tree / "list.txt").write_text(f"# all\n{tree}/a\n\n{tree}/1crn.bcif\n{tree}/*.bcif\n")
    result = run("featurize", given.format(tree), "-o", tmp_path / "out", "-f", "dihedral")
    assert result.code == 0, result.err
    assert sorted(GraphStore(tmp_path / "out").names) == ["10sb", "1crn", "1jk9"] and "3 graphs" in result.out
    assert not (tmp_path / ".out.parts").exists()


@pytest.mark.parametrize("suffix", ["tsv", "csv", "json"])
def test_the_manifest_counts_losses(run, tree, tmp_path, suffix):
    table = tmp_path / f"m.{suffix}"
    assert run("featurize", tree, "-o", tmp_path / "out", "--manifest", table).code == 0
    report = clean(load_structure(tree / "a" / "b" / "1jk9.bcif")).report
    if suffix == "json":
        row = next(r for r in json.loads(table.read_text()) if r["protein"] == "1jk9")
        assert LossReport.from_dict(row["loss"]) == report
    else:
        rows = csv.DictReader(table.open(), delimiter="," if suffix == "csv" else "\t")
        row = next(r for r in rows if r["protein"] == "1jk9")
        assert int(row["ligands"]) == sum(report.ligands.values())
    assert row["left_out"] == "; ".join(report.lines()) and int(row["edges"]) == 30 * int(row["residues"])


def test_alternate_locations_are_chosen_by_option(run, shared_data, tmp_path):
    for altloc in ("occupancy", "first"):
        args = ["-o", tmp_path / altloc, "--altloc", altloc, "-f", "b_factor"]
        assert run("featurize", shared_data / "formats" / "3o5r.bcif", *args).code == 0
    a, b = (GraphStore(tmp_path / name)[0] for name in ("occupancy", "first"))
    assert a.num_nodes == b.num_nodes and not bool((a.pos == b.pos).all())


@pytest.mark.slow
def test_every_awkward_file_gives_a_graph_or_an_error(run, shared_data, tmp_path):
    table = tmp_path / "m.json"
    result = run("featurize", shared_data / "robustness", "-o", tmp_path / "out", "--manifest", table, "--jobs", 1)
    assert result.code == 1 and "Traceback" not in result.err
    rows = {r["source"].rsplit("/", 1)[1]: r for r in json.loads(table.read_text())}
    names = {p.name for p in (shared_data / "robustness").iterdir() if not p.name.endswith((".tsv", ".mmtf"))}
    assert set(rows) == names
    errors = [r["error_type"] for r in rows.values() if r["status"] == "failed"]
    assert len(errors) == 33 and all(hasattr(errors_of_protgraph, name) for name in errors)
    assert all(g.validate() for g in GraphStore(tmp_path / "out"))

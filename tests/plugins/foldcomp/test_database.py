"""Foldcomp databases: entries by name and in the order of the file, sources of commands, and damaged tables."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.foldcomp import FoldcompDatabase

from protgraph import load_structure
from protgraph.data.datasets.protein_files import open_folder
from protgraph.errors import SelectionError, StructureFileError
from protgraph.failure import Failure
from protgraph.featurize import FeaturePlan, iter_graphs
from protgraph.labels.loading import cached_fingerprint
from protgraph.prepare import file_records, prepare_store
from protgraph.structure import ReadOptions
from protgraph.structure.io import expand_files, read_residues
from protgraph.structure.io.registered_readers import split_entry
from tests.plugins.foldcomp.files import CHAINS, atom_lines, chain_atoms, compress, write_database
from tests.plugins.foldcomp.test_entry import with_stop_codon

NAMES = ["one", "two:a", "three.cif.gz", "AF-P69905-F1-model_v4", "five"]
PLAN = FeaturePlan(["knn"])


@pytest.fixture(scope="module")
def entries(structures_dir):
    return [compress(atom_lines(chain_atoms(structures_dir / f"{name}.bcif")), name) for name in CHAINS]


@pytest.fixture
def database(entries, tmp_path):
    """Database whose tables have another order than its entries."""
    keys, order = [7, 3, 12, 4, 5], [4, 2, 0, 1, 3]
    return write_database(tmp_path / "db", list(zip(NAMES, entries, strict=True)), keys, order)


def test_entries_by_name_and_in_the_order_of_the_file(database, entries):
    opened = FoldcompDatabase(database)
    assert len(opened) == 5 and list(opened) == [NAMES[i] for i in (4, 2, 0, 1, 3)] and opened[-1] == NAMES[3]
    for name, entry in zip(NAMES, entries, strict=True):
        assert opened.read(name) == entry and name in opened
    assert "six" not in opened and 5 not in opened


def test_absent_entry_is_named_with_a_likely_one(database):
    opened = FoldcompDatabase(database)
    with pytest.raises(SelectionError, match="AF-P69905-F1-model_v4"):
        opened.read("P69905")
    with pytest.raises(SelectionError, match="three.cif.gz"):
        opened.read("three")
    with pytest.raises(SelectionError, match="nothing"):
        opened.read("nothing")


def test_repeated_names_have_their_numbers(entries, tmp_path):
    path = write_database(tmp_path / "db", [("a", entries[0]), ("b", entries[1]), ("a", entries[2])], [4, 5, 6])
    opened = FoldcompDatabase(path)
    assert list(opened) == ["a@4", "b", "a@6"]
    assert [opened.read(name) for name in opened] == entries[:3]
    with pytest.raises(SelectionError, match="a@4.*a@6"):
        opened.read("a")
    for name in ("a@5", "b@5", "a@x", "a@"):
        assert name not in opened


@pytest.mark.slow
def test_names_are_found_as_in_a_dictionary(entries, tmp_path):
    random = np.random.default_rng(0)
    letters = np.array(list("ABCDEFGHIJ0123456789-_é"))
    names = sorted({"".join(random.choice(letters, random.integers(1, 40))) for _ in range(3000)})
    opened = FoldcompDatabase(write_database(tmp_path / "db", [(name, entries[0]) for name in names]))
    expected = {name: i for i, name in enumerate(names)}
    assert list(opened) == names and all(opened._find(name) == i for name, i in expected.items())
    assert not any(f"{name}x" in opened for name in names if f"{name}x" not in expected)


def test_lookup_may_have_more_names_than_the_index(database, entries):
    with open(f"{database}.lookup", "a") as file:
        file.write("99\tother\t0\n")
    assert len(FoldcompDatabase(database)) == 5 and "other" not in FoldcompDatabase(database)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".index", "7\t0\n"),
        (".index", "x\ty\tz\n"),
        (".index", "7\t0\t10\n7\t10\t10\n"),
        (".lookup", "7\tone\t0\n"),
        (".lookup", "one\n"),
        (".lookup", "7x\tone\t0\n"),
        ("", "MMseqs sequences, not entries"),
    ],
)
def test_other_tables_are_refused(database, suffix, text):
    Path(f"{database}{suffix}").write_text(text)
    with pytest.raises(StructureFileError, match="db"):
        FoldcompDatabase(database)


def test_entry_beyond_the_end_is_a_failure_of_its_own(database):
    os.truncate(database, os.path.getsize(database) - 1000)
    opened = FoldcompDatabase(database)
    opened.read(opened[0])
    with pytest.raises(StructureFileError, match="cut off"):
        opened.read(opened[-1])


def test_changed_files_are_read_again(database, entries):
    first = expand_files(database)
    write_database(database, [("new", entries[0])])
    assert expand_files(database) == [f"{database}:new"] and len(first) == 5


def test_sources(database, entries, tmp_path):
    names = [f"{database}:{NAMES[i]}" for i in (4, 2, 0, 1, 3)]
    (tmp_path / "a.fcz").write_bytes(entries[0])
    assert expand_files(database) == names
    assert expand_files(tmp_path) == [str(tmp_path / "a.fcz"), *names]
    assert expand_files([names[0], database, f"{tmp_path}/*.fcz"]) == [*names, str(tmp_path / "a.fcz")]
    assert split_entry(f"{database}:two:a")[1:] == (str(database), "two:a")
    assert split_entry(f"{tmp_path}/a.fcz:x") is None and split_entry("pdb:1ubq") is None
    assert load_structure(f"{database}:one").name == "one"


@pytest.mark.slow
def test_one_crash_is_one_failure(database, entries, tmp_path):
    bad = with_stop_codon(entries[1])
    path = write_database(tmp_path / "bad", [("a", entries[0]), ("crash", bad), ("c", entries[2])])
    serial = list(iter_graphs(path, PLAN))
    assert [isinstance(result, Failure) for result in serial] == [False, True, False]
    assert serial[1].source == f"{path}:crash" and serial[1].error_type == "StructureFileError"
    assert [r.source for r in serial] == [f"{path}:{name}" for name in ("a", "crash", "c")]
    assert serial[0].residues.name == "a"
    for one, two in zip(serial, iter_graphs(path, PLAN, jobs=2), strict=True):
        assert one.source == two.source and one.sha256 == two.sha256
        if not isinstance(one, Failure):
            assert (one.graph.edge_index == two.graph.edge_index).all() and (one.graph.pos == two.graph.pos).all()


def test_entries_have_fingerprints_and_their_graphs_do_not_depend_on_the_folder(database, tmp_path):
    first = list(iter_graphs(database, PLAN))
    found = cached_fingerprint(Path(f"{database}:one"), folder=tmp_path / "cache", read=ReadOptions())
    assert found.sequences.keys() == {"A"}
    moved = shutil.copytree(tmp_path, tmp_path / "other", ignore=shutil.ignore_patterns("cache", "other"))
    assert [r.sha256 for r in iter_graphs(moved / "db", PLAN)] == [r.sha256 for r in first]


def test_prepared_store_is_reused(database, entries, tmp_path):
    names = [f"{database}:{NAMES[i]}" for i in (4, 2, 0, 1, 3)]
    records = list(file_records(database, ReadOptions()))
    assert [record.label for record in records] == names
    lengths = [len(read_residues(name)) for name in names]
    assert all(0.7 < r.residues / n < 1.4 for r, n in zip(records, lengths, strict=True))
    first = prepare_store(database, tmp_path / "store", PLAN, jobs=0, shard_residues=200)
    again = prepare_store(database, tmp_path / "store", PLAN, jobs=0, shard_residues=200, update=True)
    assert first.store.sources == again.store.sources == names
    assert first.reused == 0 and again.reused == len(again.shards) > 1


@pytest.mark.slow
def test_a_changed_database_makes_the_shards_of_its_changed_entries_only(entries, tmp_path):
    """Also if entries are at other places of the file, and if one is damaged."""
    named = [(f"e{i:02d}", entries[i % 5]) for i in range(20)]
    named[3] = ("e03", entries[1][:100])
    path, options = write_database(tmp_path / "db", named), {"jobs": 0, "shard_residues": 400, "update": True}
    first = prepare_store(path, tmp_path / "s", PLAN, **options)
    assert prepare_store(path, tmp_path / "s", PLAN, **options).reused == len(first.shards) >= 8
    last = entries[2][-1] ^ 1  # of the temperature factors
    named[12] = ("e12", entries[2][:-1] + bytes([last]))
    write_database(path, named, order=[*range(10, 20), *range(10)])
    listed = [f"{path}:{name}" for name, _ in named]
    changed = prepare_store(listed, tmp_path / "s", PLAN, **options)
    keys = {shard.key for shard in first.shards}
    assert changed.reused == len(first.shards) - 1 == sum(shard.key in keys for shard in changed.shards)
    assert [f.source for f in changed.store.failures] == [f"{path}:e03"]
    fresh = prepare_store(listed, tmp_path / "fresh", PLAN, **options)
    assert fresh.shards == changed.shards and fresh.reused == 0


def test_folder_dataset_names_entries(database, tmp_path):
    folder = open_folder(tmp_path)
    proteins = [protein for group in folder.groups().values() for protein in group]
    assert [protein.stem for protein in proteins] == ["five", "three", "one", "two:a", "AF-P69905-F1-model_v4"]
    assert folder.other_files() == [] and folder.chains(proteins[0]) == ["A"]
    assert {"three", "three.cif.gz", "db:three.cif.gz"} <= proteins[1].file_names()
    assert len(open_folder(database).groups()) == 5
    assert len(open_folder(f"{database}:one").groups()) == 1


def test_chain_of_an_entry_is_selected(database):
    assert len(read_residues(f"{database}:one", ReadOptions(chains=("A",)))) > 100
    with pytest.raises(SelectionError):
        read_residues(f"{database}:one", ReadOptions(chains=("B",)))

"""Cached residues equal those of the file; a changed file or option is read again."""

from __future__ import annotations

import os
import shutil
from dataclasses import fields

import numpy as np
import pytest

from protgraph.data.datasets.fingerprint import fingerprint_file
from protgraph.featurize import file_cache
from protgraph.featurize.file_cache import FileCache
from protgraph.structure import ReadOptions, clean, load_structure
from protgraph.structure.io import read_residues
from protgraph.structure.io.fasta import read_fasta

LIGANDS = ReadOptions(ligands=True, nucleic=True)


@pytest.fixture
def parsed(monkeypatch):
    """Return the names of the files that were parsed."""
    names = []
    monkeypatch.setattr(
        file_cache, "read_residues", lambda file, read: names.append(file.path) or read_residues(file, read)
    )
    return names


def test_cached_residues_equal_those_of_the_file(structures_dir, tmp_path):
    path = structures_dir / "1ubq.bcif"
    expected = clean(load_structure(path))
    for _ in range(2):
        parse, sha256 = FileCache(tmp_path).open(path, ReadOptions())
        residues = parse()
        for f in fields(expected):
            if isinstance(getattr(expected, f.name), np.ndarray):
                np.testing.assert_array_equal(getattr(residues, f.name), getattr(expected, f.name))
                assert getattr(residues, f.name).dtype == getattr(expected, f.name).dtype
        assert (residues.name, residues.report) == (expected.name, expected.report)
        assert sha256 == fingerprint_file(path).digest


def test_ligands_are_cached_if_they_are_read(structures_dir, tmp_path):
    path, cache = structures_dir / "1lcd.bcif", FileCache(tmp_path)
    expected = clean(load_structure(path), ligands=True, nucleic=True)
    assert cache.open(path, ReadOptions())[0]().ligands is None
    for _ in range(2):
        residues = cache.open(path, LIGANDS)[0]()
        for f in fields(expected.ligands):
            np.testing.assert_array_equal(getattr(residues.ligands, f.name), getattr(expected.ligands, f.name))
        assert residues.report == expected.report and len(residues.ligands) == len(expected.ligands) > 20
    assert cache.open(path, ReadOptions())[0]().ligands is None


def test_a_file_is_parsed_again_only_if_its_bytes_or_options_change(structures_dir, tmp_path, parsed):
    path, cache = tmp_path / "1crn.bcif", FileCache(tmp_path / "cache")
    shutil.copy(structures_dir / "1crn.bcif", path)
    for _ in range(2):
        assert len(cache.open(path, ReadOptions())[0]()) == 46
    assert len(parsed) == 1
    os.utime(path)
    assert len(cache.open(path, ReadOptions())[0]()) == 46
    assert len(parsed) == 1
    cache.open(path, ReadOptions(altloc="first"))[0]()
    assert len(parsed) == 2
    shutil.copy(structures_dir / "2erl.bcif", path)
    assert len(cache.open(path, ReadOptions())[0]()) == 40
    assert len(parsed) == 3


def test_a_damaged_entry_is_written_again(structures_dir, tmp_path):
    path, cache = structures_dir / "1crn.bcif", FileCache(tmp_path)
    cache.open(path, ReadOptions())[0]()
    (entry,) = tmp_path.rglob("*.npz")
    entry.write_bytes(entry.read_bytes()[:100])
    assert len(cache.open(path, ReadOptions())[0]()) == 46
    assert len(np.load(entry)["res_id"]) == 46


def test_a_fingerprint_is_computed_once_and_its_residues_are_kept(structures_dir, tmp_path, parsed):
    path, cache = tmp_path / "1crn.bcif", FileCache(tmp_path / "cache")
    shutil.copy(structures_dir / "1crn.bcif", path)
    first = cache.fingerprint(path)
    assert cache.fingerprint(path) == first == fingerprint_file(path)
    assert len(cache.open(path, ReadOptions())[0]()) == 46 and len(parsed) == 1
    shutil.copy(structures_dir / "1vii.bcif", path)
    assert cache.fingerprint(path).digest == fingerprint_file(path).digest != first.digest
    for damaged in (tmp_path / "cache" / "contents").rglob("*.json"):
        damaged.write_text("{")
    assert cache.fingerprint(path) == fingerprint_file(path)


def test_records_of_fasta_are_cached(tmp_path, opened_files):
    path, cache = tmp_path / "a.fasta", FileCache(tmp_path / "cache")
    path.write_text(">a\nMKT\n\nMK\n>b\nGG\n")
    expected = read_fasta(path)
    opened_files.clear()
    assert cache.fingerprint(path).records == ("a", "b")
    assert [cache.open(path, ReadOptions())[0]() for _ in range(2)] == [expected, expected]
    assert opened_files.count(str(path)) == 1
    (tmp_path / "other").mkdir()
    copy = tmp_path / "other" / "b.fa"
    shutil.copy(path, copy)
    assert cache.open(copy, ReadOptions())[0]() == read_fasta(copy) != expected  # errors name the file
    path.write_text(">a\nMKT\n>c\nGGG\n")
    assert cache.open(path, ReadOptions())[0]() == read_fasta(path)

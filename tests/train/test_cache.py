"""What is kept is what was read, and nothing stale is taken for fresh."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest

from protgraph.structure import clean, load_structure
from protgraph.train import cache


def test_kept_residues_are_the_ones_that_were_read(structures_dir, tmp_path):
    path = structures_dir / "1ubq.bcif"
    expected = clean(load_structure(path))
    first, second = cache.cached_residues(path, tmp_path), cache.cached_residues(path, tmp_path)
    for made in (first, second):
        for f in fields(expected):
            if isinstance(getattr(expected, f.name), np.ndarray):
                np.testing.assert_array_equal(getattr(made, f.name), getattr(expected, f.name))
                assert getattr(made, f.name).dtype == getattr(expected, f.name).dtype
        assert (made.name, made.report) == (expected.name, expected.report)


def test_ligands_are_kept_where_they_are_asked_for(structures_dir, tmp_path):
    path = structures_dir / "1lcd.bcif"
    expected = clean(load_structure(path), ligands=True, nucleic=True)
    assert cache.cached_residues(path, tmp_path).ligands is None
    for _ in range(2):
        made = cache.cached_residues(path, tmp_path, ligands=True)
        for f in fields(expected.ligands):
            np.testing.assert_array_equal(getattr(made.ligands, f.name), getattr(expected.ligands, f.name))
        assert made.report == expected.report and len(made.ligands) == len(expected.ligands) > 20
    assert cache.cached_residues(path, tmp_path).ligands is None


def test_a_file_is_read_again_only_when_its_bytes_change(structures_dir, tmp_path, monkeypatch):
    path = tmp_path / "1crn.bcif"
    path.write_bytes((structures_dir / "1crn.bcif").read_bytes())
    read = []
    monkeypatch.setattr(cache, "load_structure", lambda p: read.append(p) or load_structure(p))
    for _ in range(2):
        assert len(cache.cached_residues(path, tmp_path / "kept")) == 46
    assert len(read) == 1
    path.write_bytes((structures_dir / "2erl.bcif").read_bytes())
    assert len(cache.cached_residues(path, tmp_path / "kept")) == 40
    assert len(read) == 2


def test_a_damaged_entry_is_made_again(structures_dir, tmp_path):
    path = structures_dir / "1crn.bcif"
    cache.cached_residues(path, tmp_path)
    (kept,) = tmp_path.rglob("*.npz")
    kept.write_bytes(kept.read_bytes()[:100])
    assert len(cache.cached_residues(path, tmp_path)) == 46
    assert len(np.load(kept)["res_id"]) == 46


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PROTGRAPH_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/protgraph"),
        ({"HOME": "/c"}, "/c/.cache/protgraph"),
    ],
)
def test_the_cache_lies_where_the_environment_says(environment, expected, monkeypatch):
    for name in ("PROTGRAPH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert str(cache.cache_dir()) == expected
    assert str(cache.cache_dir("/given")) == "/given"


def test_digests_tell_parts_apart():
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest({"a": 1, "b": 2}) == cache.digest(json.loads('{"b": 2, "a": 1}'))


def test_an_edited_package_has_another_digest(tmp_path, monkeypatch):
    package = tmp_path / "mine_for_digest"
    package.mkdir()
    (package / "__init__.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = cache.code_digest("mine_for_digest")
    cache.code_digest.cache_clear()
    assert cache.code_digest("mine_for_digest") == before
    (package / "__init__.py").write_text("X = 2\n")
    cache.code_digest.cache_clear()
    assert cache.code_digest("mine_for_digest") != before


def test_a_class_typed_at_a_prompt_has_no_digest():
    space: dict = {"__name__": "__main__"}
    exec("class Typed: pass", space)
    assert cache.component_digest(space["Typed"]()) is None

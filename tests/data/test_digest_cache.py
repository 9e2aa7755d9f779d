"""Kept digests are those of the files as they are now."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from protgraph.data.digest_cache import cached_digests


@pytest.fixture
def digests(tmp_path, monkeypatch):
    """Return a function that gives the digests of files, and the texts that it read."""
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))

    def call(*paths: Path, version: str = "1") -> tuple[list[str], list[str]]:
        read: list[str] = []

        def compute(text: str) -> str:
            read.append(text)
            return hashlib.sha256(text.encode()).hexdigest()

        return cached_digests(paths, compute, version=version), read

    return call


def write(path: Path, text: str, *, age: float = 10.0) -> Path:
    path.write_text(text)
    when = time.time() - age
    os.utime(path, (when, when))
    return path


def test_files_are_read_again_only_after_a_change(digests, tmp_path):
    one, two = write(tmp_path / "one.py", "a"), write(tmp_path / "two.py", "b")
    first, read = digests(one, two)
    assert read == ["a", "b"] and digests(one, two) == (first, []) == digests(one, two)
    assert digests(two)[0] == first[1:] and digests(one)[1] == []  # a call without a file keeps its digest
    write(one, "c", age=5.0)
    second, read = digests(one, two)
    assert read == ["c"] and second[0] != first[0] and second[1] == first[1]
    assert digests(one, two, version="2")[1] == ["c", "b"]


def test_a_file_that_may_be_in_an_edit_is_not_kept(digests, tmp_path):
    path = write(tmp_path / "one.py", "a", age=0.0)
    stamp = path.stat()
    first, _ = digests(path)
    path.write_text("b")  # within the resolution of the times of files
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert digests(path)[0] != first


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": "1"}'])
def test_a_damaged_cache_is_written_again(digests, tmp_path, content):
    path = write(tmp_path / "one.py", "a")
    first, _ = digests(path)
    (tmp_path / "cache" / "source_digests.json").write_text(content)
    assert digests(path) == (first, ["a"]) and digests(path) == (first, [])


def test_a_cache_that_cannot_be_written_costs_time_only(digests, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    path = write(tmp_path / "one.py", "a")
    assert digests(path)[1] == digests(path)[1] == ["a"]

"""Atomic writes and checksums."""

from __future__ import annotations

import hashlib
import os
import stat

import pytest

from protgraph.file_io import atomic_write, file_sha256


def test_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "a" / "b.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert not path.exists() and temporary.parent == path.parent
    assert path.read_text() == "new" and os.listdir(path.parent) == ["b.txt"]


def test_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "b.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as temporary:
        temporary.write_text("half")
        1 / 0  # noqa: B018
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["b.txt"]


def test_deleting_the_temporary_file_writes_nothing(tmp_path):
    with atomic_write(tmp_path / "b.txt") as temporary:
        temporary.unlink()
    assert not os.listdir(tmp_path)


def test_permissions_follow_the_umask(tmp_path):
    (tmp_path / "plain").touch()
    with atomic_write(tmp_path / "b.txt") as temporary:
        temporary.chmod(0o600)
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "b.txt")}
    assert len(modes) == 1


def test_folder_appears_complete_and_replaces_no_other(tmp_path):
    with atomic_write(tmp_path / "store", folder=True) as temporary:
        (temporary / "x").write_text("1")
    assert (tmp_path / "store" / "x").read_text() == "1"
    with pytest.raises(OSError), atomic_write(tmp_path / "store", folder=True) as temporary:
        (temporary / "x").write_text("2")
    assert (tmp_path / "store" / "x").read_text() == "1" and os.listdir(tmp_path) == ["store"]


def test_checksum_equals_hashlib(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 100_000)
    assert file_sha256(tmp_path / "x") == hashlib.sha256(b"abc" * 100_000).hexdigest()
    with pytest.raises(FileNotFoundError):
        file_sha256(tmp_path / "missing")

"""Atomic writes and checksums."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import resource
import stat
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from matplotlib.figure import Figure
from safetensors.numpy import save_file

from protgraph.errors import OutputFileError
from protgraph.file_io import atomic_write, file_sha256, unpack_tar, write_text_file


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


def test_folder_is_replaced_without_a_moment_in_which_both_are_missing(tmp_path, monkeypatch):
    store, rename, states = tmp_path / "store", os.replace, []
    (store / "old").mkdir(parents=True)

    def recorded(source, target):
        rename(source, target)
        states.append(sorted(str(path.relative_to(path.parents[1])) for path in tmp_path.glob("*/*")))

    monkeypatch.setattr(os, "replace", recorded)
    with atomic_write(store, folder=True, overwrite=True) as temporary:
        (temporary / "new").touch()
    assert [len(names) for names in states] == [2, 2] and "store/new" in states[1]
    assert [path.name for path in tmp_path.glob("*/*")] == ["new"]


def test_folder_is_kept_if_its_replacement_fails(tmp_path, monkeypatch):
    store, rename = tmp_path / "store", os.replace
    (store / "old").mkdir(parents=True)

    def fails_once(source, target):
        if str(source).endswith(".part"):
            raise OSError(errno.EIO, "I/O error")
        rename(source, target)

    monkeypatch.setattr(os, "replace", fails_once)
    with pytest.raises(OutputFileError), atomic_write(store, folder=True, overwrite=True) as temporary:
        (temporary / "new").touch()
    assert [path.name for path in tmp_path.glob("*/*")] == ["old"]


def test_folders_of_a_failed_write_are_removed_if_empty(tmp_path):
    (tmp_path / "mine").mkdir()
    for folder in ("mine", "new", "mine/new/inner"):
        with pytest.raises(ValueError, match="x"), atomic_write(tmp_path / folder / "file"):
            raise ValueError("x")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]
    with pytest.raises(ValueError, match="x"), atomic_write(tmp_path / "new" / "file") as temporary:
        (temporary.parent / "other").touch()
        raise ValueError("x")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "new", "other"]


def test_checksum_equals_hashlib(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 100_000)
    assert file_sha256(tmp_path / "x") == hashlib.sha256(b"abc" * 100_000).hexdigest()
    with pytest.raises(FileNotFoundError):
        file_sha256(tmp_path / "missing")


def _write_numpy(path):
    np.save(path, np.zeros(10_000))


def _write_numpy_file(path):
    with path.open("wb") as file:
        np.savez(file, x=np.zeros(10_000))


def _write_text(path):
    path.write_text("x" * 80_000)


def _write_safetensors(path):
    save_file({"x": np.zeros(10_000)}, path)


def _write_torch(path):
    with path.open("wb") as file:
        torch.save({"x": torch.zeros(20_000)}, file)


def _write_parquet(path):
    pq.write_table(pa.table({"x": np.random.default_rng(0).random(10_000)}), path)


def _write_png(path):
    figure = Figure(dpi=200)
    figure.subplots().imshow(np.random.default_rng(0).random((300, 300)))
    figure.savefig(path, format="png")


@pytest.fixture
def file_size_limit():
    """Limit the size of files to 20 kB, as ``ulimit -f``; a full disk fails at the same calls."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    "write", [_write_text, _write_numpy_file, _write_safetensors, _write_torch, _write_parquet, _write_png]
)
def test_failed_write_is_a_typed_error_with_the_final_name(write, tmp_path, file_size_limit):
    path = tmp_path / "x.out"
    path.write_text("old")
    with pytest.raises(OutputFileError, match=str(path)) as caught, atomic_write(path) as temporary:
        write(temporary)
    assert caught.value.filename == str(path) and caught.value.errno == errno.EFBIG
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["x.out"]


def test_failed_write_in_a_folder_names_the_folder(tmp_path, file_size_limit):
    with pytest.raises(OutputFileError) as caught, atomic_write(tmp_path / "store", folder=True) as temporary:
        _write_numpy(temporary / "x.npy")  # numpy's error has no number
    assert caught.value.filename == str(tmp_path / "store") and not os.listdir(tmp_path)


def test_errors_of_other_files_keep_their_type(tmp_path):
    for error in (FileNotFoundError(errno.ENOENT, "no", "in.pdb"), OSError(errno.ENOSPC, "full", "/other/file")):
        with pytest.raises(OSError) as caught, atomic_write(tmp_path / "x"):
            raise error
        assert caught.value is error


def test_place_that_cannot_be_written_is_a_typed_error(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "x", tmp_path, Path(os.devnull), tmp_path / ("x" * 300)):
        with pytest.raises(OutputFileError) as caught, atomic_write(path):
            pass
        assert caught.value.filename == str(path)


def test_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "data").mkdir()
    target, link = tmp_path / "data" / "x", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text_file(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def _tar(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def test_unpacked_files_equal_those_of_tar(tmp_path):
    source, theirs, ours = tmp_path / "source", tmp_path / "theirs", tmp_path / "ours"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "deep" / "one.txt").write_bytes(b"1\r\n\x00")
    (source / "two.txt").write_bytes(b"2" * 100_000)
    (source / "link.txt").symlink_to("two.txt")
    (source / "hard.txt").hardlink_to(source / "two.txt")
    archive = tmp_path / "a.tar.gz"
    subprocess.run(["tar", "--gzip", "-cf", archive, "-C", source, "."], check=True)
    theirs.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", theirs], check=True)
    ours.mkdir()
    unpack_tar(archive, ours)
    assert {p.relative_to(ours) for p in ours.rglob("*")} == {p.relative_to(theirs) for p in theirs.rglob("*")}
    for path in theirs.rglob("*"):
        if path.is_file():
            assert (ours / path.relative_to(theirs)).read_bytes() == path.read_bytes()
    assert not any(path.is_symlink() for path in ours.rglob("*"))


@pytest.mark.parametrize(
    "member",
    [
        _member("../outside.txt"),
        _member("inside/../../outside.txt"),
        _member("..\\outside.txt"),
        _member("/outside.txt"),
        _member("C:\\outside.txt"),
        _member("link", tarfile.SYMTYPE, "../outside.txt"),
        _member("link", tarfile.SYMTYPE, "/etc/hostname"),
        _member("link", tarfile.SYMTYPE, "link"),
        _member("hard", tarfile.LNKTYPE, "../outside.txt"),
        _member("pipe", tarfile.FIFOTYPE),
        _member("device", tarfile.CHRTYPE),
    ],
    ids=lambda member: f"{member.name} {member.type.decode()} {member.linkname}".strip(),
)
def test_members_that_lead_out_of_the_folder_are_refused(tmp_path, member):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "outside.txt").write_text("secret")
    archive = _tar(tmp_path / "a.tar.gz", [(_member("good.txt"), b"good"), (member, b"")])
    with pytest.raises(tarfile.TarError, match=re.escape(repr(member.name))):
        unpack_tar(archive, folder)
    assert [p.name for p in folder.rglob("*")] == ["good.txt"]
    assert (tmp_path / "outside.txt").read_text() == "secret"

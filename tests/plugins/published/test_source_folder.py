"""Folders of a source: a folder or its archive, and errors that name what is missing and where it may be."""

from __future__ import annotations

import tarfile

import pytest
from protgraph_plugins.published.source_folder import SourceFolder

from protgraph.errors import DatasetError


@pytest.fixture
def source(tmp_path) -> SourceFolder:
    (tmp_path / "download").mkdir()
    (tmp_path / "scratch").mkdir()
    return SourceFolder(tmp_path / "download", tmp_path / "scratch")


def test_an_archive_replaces_its_folder(source, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with tarfile.open(source.folder / "files.tar.xz", "w:xz") as tar:
        tar.add(tmp_path / "a.txt", "a.txt")
    assert (source.folder_or_archive("files", "files.tar.xz") / "a.txt").read_text() == "a"


def test_a_folder_is_used_as_it_is(source):
    (source.folder / "files").mkdir()
    assert source.folder_or_archive("files", "files.tar.xz") == source.folder / "files"


def test_a_source_with_neither_is_refused(source):
    with pytest.raises(DatasetError, match=r"'files' or 'files\.tar\.xz'.*complete"):
        source.folder_or_archive("files", "files.tar.xz")
    with pytest.raises(DatasetError, match="'labels.tsv'.*complete"):
        source.path("labels.tsv")


def test_the_error_names_a_folder_inside_that_has_the_files(source):
    (source.folder / "inner").mkdir()
    (source.folder / "inner" / "files.tar.xz").write_text("")
    with pytest.raises(DatasetError) as error:
        source.folder_or_archive("files", "files.tar.xz")
    assert str(error.value).endswith(f"Give {source.folder / 'inner'}.")

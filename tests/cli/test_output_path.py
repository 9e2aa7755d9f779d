"""Output paths are checked before the work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protgraph.cli.output_path import (
    STORE_FILE,
    check_different_outputs,
    check_output,
    check_output_folder,
    check_output_store,
)
from protgraph.data.store.store_description import META
from protgraph.errors import OptionError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.pdb"
    path.write_text("ATOM")
    return path


def links_to(source: Path) -> dict[str, Path]:
    folder = source.parent
    (folder / "soft").symlink_to(source)
    (folder / "hard").hardlink_to(source)
    dotted = folder / "sub" / ".." / source.name
    (folder / "sub").mkdir()
    return {"itself": source, "soft": folder / "soft", "hard": folder / "hard", "dotted": dotted}


@pytest.mark.parametrize("kind", ["itself", "soft", "hard", "dotted"])
def test_input_is_refused_also_with_overwrite(source, kind):
    out = links_to(source)[kind]
    for given in (source, str(source), f"{source}#record", f"@{source}"):
        with pytest.raises(OptionError, match=str(out)):
            check_output(out, inputs=[None, given], overwrite=True)
    assert source.read_text() == "ATOM"


@pytest.mark.parametrize("suffix", [".failures.csv", ".warnings.csv"])
def test_input_with_the_name_of_a_table_beside_the_output_is_refused(tmp_path, suffix):
    labels = tmp_path / f"p.csv{suffix}"
    labels.write_text("file,site\n")
    with pytest.raises(OptionError, match=suffix):
        check_output(tmp_path / "p.csv", inputs=[labels], overwrite=True)


def test_store_that_is_or_contains_an_input_is_refused(tmp_path):
    store = tmp_path / "graphs"
    store.mkdir()
    (store / META).write_text("{}")
    (store / "in.pdb").write_text("ATOM")
    for given in (store, store / "in.pdb"):
        with pytest.raises(OptionError, match="input"):
            check_output_store(store, inputs=[given], overwrite=True)
    with pytest.raises(OptionError, match="--overwrite"):
        check_output_store(store)
    assert STORE_FILE == META and check_output_store(store, overwrite=True) == store
    with pytest.raises(OptionError):
        check_output_store(tmp_path, overwrite=True)  # another folder
    with pytest.raises(OptionError, match="input"):
        check_output_folder(tmp_path, inputs=[store / "in.pdb"], overwrite=True, apart=True)


def test_missing_input_of_the_same_name_is_refused(tmp_path):
    with pytest.raises(OptionError):
        check_output(tmp_path / "x.cif", inputs=[tmp_path / "." / "x.cif"])


def test_standard_output_is_no_file_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for check in (check_output, check_output_folder, check_output_store):
        with pytest.raises(OptionError, match="'-'"):
            check(Path("-"))


def test_two_options_do_not_name_one_file(tmp_path):
    check_different_outputs({"--out": tmp_path / "a.csv", "--sites": None, "--explain": tmp_path / "b.csv"})
    with pytest.raises(OptionError, match="--sites.*--out"):
        check_different_outputs({"--out": tmp_path / "a.csv", "--sites": tmp_path / "." / "a.csv"})


def test_existing_file_needs_overwrite(source):
    with pytest.raises(OptionError, match="--overwrite"):
        check_output(source)
    assert check_output(source, overwrite=True) == source


def test_suffix_is_checked(tmp_path):
    assert check_output(tmp_path / "v.mvsj", suffixes=[".html", ".mvsj"]).name == "v.mvsj"
    for name in ("v.xlsx", "v", ".html", "v.HTML"):
        with pytest.raises(OptionError, match=r"--save .*\.html, \.mvsj"):
            check_output(tmp_path / name, option="--save", suffixes=[".html", ".mvsj"])


def test_folder_device_and_graph_store_are_refused(tmp_path):
    (tmp_path / "store" / "sub").mkdir(parents=True)
    (tmp_path / "store" / "store.json").write_text("{}")
    for path in (
        tmp_path,
        Path(os.devnull),
        tmp_path / "store" / "x.csv",
        tmp_path / "store" / "sub" / "x.csv",
        tmp_path / ("x" * 241),
    ):
        with pytest.raises(OptionError):
            check_output(path, overwrite=True)
    with pytest.raises(OptionError):
        check_output_folder(tmp_path / "store" / "x")


def test_output_folder_with_files_needs_overwrite(source, tmp_path):
    with pytest.raises(OptionError, match="--overwrite"):
        check_output_folder(tmp_path)
    assert check_output_folder(tmp_path, overwrite=True) == tmp_path
    assert not check_output_folder(tmp_path / "new", inputs=[source]).exists()
    with pytest.raises(OptionError):
        check_output_folder(source, overwrite=True)


def test_unwritable_parent_is_refused(source):
    for path in (source / "x.csv", source / "y" / "x.csv"):
        with pytest.raises(OptionError, match="folder"):
            check_output(path)
    check_output(source.parent / "new" / "x.csv")
    assert not (source.parent / "new").exists()

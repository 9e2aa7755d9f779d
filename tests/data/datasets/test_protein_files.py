"""Names of the proteins of a folder: structure files and FASTA records."""

from __future__ import annotations

import shutil

import pytest

from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.protein_files import ProteinFile, open_folder, source_ids
from protgraph.errors import DatasetError, LabelError


def test_other_files_and_folders_are_ignored(folder, sequences):
    (folder / "notes.txt").write_text("text")
    (folder / "below.pdb").mkdir()
    shutil.copy(sequences / "two.fasta", folder / "two.fasta")
    assert list(open_folder(folder).groups()) == ["1orc.bcif", "1ubq.bcif", "2d7t.bcif", "5cq2.bcif", "two.fasta"]
    names = [protein.name for group in open_folder(folder).groups().values() for protein in group]
    assert names == ["1orc.bcif", "1ubq.bcif", "2d7t.bcif", "5cq2.bcif", "two.fasta#a", "two.fasta#b_long"]
    with pytest.raises(DatasetError, match="below.pdb"):
        open_folder(folder / "below.pdb").groups()


def test_ids_are_the_shortest_unique_names(tmp_path):
    sources = [ProteinFile(tmp_path / "x.cif"), ProteinFile(tmp_path / "y.pdb.gz"), ProteinFile(tmp_path / "a.fa", "x")]
    assert source_ids(sources) == ["x.cif", "y", "a.fa#x"]


def test_two_files_of_one_stem_require_whole_names(folder, table):
    shutil.copy(folder / "1ubq.bcif", folder / "1ubq.cif")  # formats are recognized by content
    with pytest.raises(LabelError, match="'1ubq'.*1ubq.bcif, 1ubq.cif"):
        FolderDataset(folder, table("file,x", ["1ubq,1"]))
    data = FolderDataset(folder, table("file,x", ["1ubq.cif,1", "1ubq.bcif,2"]))
    assert {e.id for e in data.examples("x")} == {"1ubq.bcif", "1ubq.cif"}


@pytest.mark.parametrize("names", [("a", "b_long", "one"), ("two.fasta#a", "two.fasta#b_long", "one.fa")])
def test_fasta_records_are_found_by_name_file_and_record_or_stem(sequences, table, names):
    rows = [f"{name},{value}" for name, value in zip(names, (1.5, 2.5, 3.5), strict=True)]
    data = FolderDataset(sequences, table("id,size", rows), task="size")
    found = {e.id: (e.path.name, e.record, data.read(e).sequence) for e in data.examples("size")}
    assert found == {
        "a": ("two.fasta", "a", "MKT"),
        "b_long": ("two.fasta", "b_long", "GGGG"),
        "c|Chain": ("one.fa", "c|Chain", "AYAY"),
    }
    assert data.unnamed_files == []


def test_the_name_of_a_fasta_file_of_several_records_is_ambiguous(sequences, table):
    with pytest.raises(LabelError, match="'two.fasta'.*two.fasta#a, two.fasta#b_long"):
        FolderDataset(sequences, table("file,size", ["two.fasta,1.5", "one.fa,2"]))
    with pytest.raises(LabelError, match="1 file .*sequences.*'d'"):
        FolderDataset(sequences, table("file,size", ["d,1.5", "one.fa,2"]))

"""Folders with label tables: alignment, splits, errors."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.labels import align
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, LabelError, SelectionError, StructureFileError, UnknownNameError
from protgraph.structure import clean, load_structure

NAMES = ("1ubq", "2d7t", "1orc", "5cq2")


def residue_rows(folder: Path, names=NAMES) -> list[tuple[str, str, int, str, str]]:
    """Return file, chain, number, insertion code and one-letter code of every residue."""
    rows = []
    for name in names:
        r = clean(load_structure(folder / f"{name}.bcif"))
        rows += zip([name] * len(r), r.chain, r.res_id, r.ins_code, r.sequence, strict=True)
    return rows


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("name", ["{}", "{}.bcif"])
def test_labels_per_residue_are_aligned_to_their_residues(folder, tmp_path, separator, name):
    """The label of each residue is its amino acid; rows are shuffled. The expected labels are the sequence."""
    rows = residue_rows(folder)
    with open(tmp_path / "labels.txt", "w", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(["file", "chain", "res_id", "ins_code", "amino_acid"])
        order = np.random.default_rng(0).permutation(len(rows))
        writer.writerows([name.format(rows[i][0]), *rows[i][1:]] for i in order)
    data = FolderDataset(folder, tmp_path / "labels.txt")
    classes = sorted({row[4] for row in rows})
    assert data.target("amino_acid") == Target("amino_acid", "node", "classification", len(classes), tuple(classes))
    assert {e.id for e in data.examples("amino_acid")} == set(NAMES)
    for example in data.examples("amino_acid"):
        residues = data.read(example)
        y = align(data.labels("amino_acid", example), residues)
        assert "".join(classes[k] for k in y) == residues.sequence


def test_res_id_may_contain_the_insertion_code(folder, table):
    rows = [f"2d7t,{c},{n}{i},{k}" for k, (_, c, n, i, _) in enumerate(residue_rows(folder, ["2d7t"]))]
    data = FolderDataset(folder, table("id,chain,res_id,depth", rows), fractions={"train": 1.0})
    (example,) = data.examples("depth")
    y = align(data.labels("depth", example), data.read(example))
    assert y[:, 0].tolist() == list(range(len(rows))) and any(c.isalpha() for r in rows for c in r.split(",")[2])


def test_residues_without_a_label_are_unknown(folder, table):
    path = table("file,chain,res_id,site,split", ["1ubq,A,8,1,train", "1ubq,A,44,0,train", "1ubq,A,70,,train"])
    data = FolderDataset(folder, path)
    assert data.target("site") == Target("site", "node", "multilabel", 1, ("site",))
    y = align(data.labels("site", data.examples("site")[0]), data.read(data.examples("site")[0]))
    assert y.shape == (76, 1) and np.flatnonzero(~np.isnan(y[:, 0])).tolist() == [7, 43]
    assert data.check("site") == {"train": SplitCount(1, 76, 2, (1,))}
    assert data.unnamed_files == ["1orc.bcif", "2d7t.bcif", "5cq2.bcif"]


def test_labels_of_absent_residues_raise_one_error_for_all_files(folder, table):
    rows = [f"1ubq,A,{n},1" for n in (1, 76, 77, 900)] + [f"1orc,B,{n},0" for n in (3, 4, 5, 6)] + ["5cq2,A,8,1"]
    data = FolderDataset(folder, table("file,chain,res_id,site", rows))
    with pytest.raises(LabelError) as error:
        data.check("site")
    shown = "1ubq.bcif A:77, 1ubq.bcif A:900, 1orc.bcif B:3, 1orc.bcif B:4, 1orc.bcif B:5, …"
    assert str(error.value).startswith("6 labels ") and shown in str(error.value)


def test_labels_per_protein_have_one_row(folder, table):
    rows = ["1ubq,2.5,-1", "1orc,,3", "5cq2.bcif,0.5,4"]
    path = table("file,stability,charge", rows)
    data = FolderDataset(folder, path, task="both", columns=["stability", "charge"])
    assert data.target("both") == Target("both", "graph", "regression", 2, ("stability", "charge"))
    known = {e.id: align(data.labels("both", e), data.read(e)) for e in data.examples("both")}
    np.testing.assert_array_equal(known["1ubq"], np.float32([[2.5, -1]]))
    np.testing.assert_array_equal(known["1orc"], np.float32([[np.nan, 3]]))


def test_chain_column_makes_one_example_per_chain(folder, table):
    rows = ["2d7t,H,heavy", "2d7t,L,light", "1ubq,,none"]
    data = FolderDataset(folder, table("file,chain,class", rows), kind="classification")
    assert [(e.id, e.chains) for e in data.examples("class")] == [
        ("2d7t_H", ("H",)),
        ("2d7t_L", ("L",)),
        ("1ubq", None),
    ]
    assert data.target("class").names == ("heavy", "light", "none")
    light = data.examples("class")[1]
    assert data.read(light).chain_names == ("L",)
    assert align(data.labels("class", light), data.read(light)).tolist() == [1]


def test_absent_chain_raises(folder, table):
    data = FolderDataset(folder, table("file,chain,class", ["1ubq,Q,1", "1orc,A,2"]))
    with pytest.raises(SelectionError, match="'Q'"):
        data.check("class")


@pytest.mark.parametrize(
    ("values", "kind", "expected", "names"),
    [
        (["helix", "coil", "", "helix"], None, "classification", ("coil", "helix")),
        (["0", "1", "1", ""], None, "multilabel", ("x",)),
        (["0", "1", "2", ""], None, "regression", ("x",)),
        (["10", "9", "", "9"], "classification", "classification", ("9", "10")),
        (["0", "1", "1", "0"], "regression", "regression", ("x",)),
        (["-1.5", "nan", "1e3", "2"], None, "regression", ("x",)),
        (["-1.5", "NA", "1e3", ""], None, "regression", ("x",)),
        (["helix", "nan", "NaN", "coil"], "classification", "classification", ("coil", "helix")),
        (["1", "1A", "2", "2"], "classification", "classification", ("1", "2", "1A")),
    ],
)
def test_kind_is_inferred_from_the_values(folder, table, values, kind, expected, names):
    path = table("file,x", [f"{n},{v}" for n, v in zip(NAMES, values, strict=True)])
    target = FolderDataset(folder, path, kind=kind).target("x")
    assert (target.kind, target.names) == (expected, names)


def test_semicolon_tables_have_decimal_commas(folder, table):
    """Spreadsheets in most of Europe write such tables."""
    path = table("file;tm;ph", ["1ubq;40,5;7", "1orc;-1,25e1;6,5"])
    data = FolderDataset(folder, path, columns=["tm", "ph"])
    assert data.target("tm+ph").names == ("tm", "ph")
    known = {e.id: align(data.labels("tm+ph", e), data.read(e))[0].tolist() for e in data.examples("tm+ph")}
    assert known == {"1ubq": [40.5, 7.0], "1orc": [-12.5, 6.5]}
    texts = FolderDataset(folder, table("file;x", ["1ubq;a, b", "1orc;c", "5cq2;c"])).target("x")
    assert texts.names == ("a, b", "c")


def test_columns_selects_labels(folder, table):
    path = table("file,name,ph,kd", ["1ubq,ubiquitin,7,1e-3", "1orc,cro,6,2e-3"])
    for chosen in ({"columns": ["kd"]}, {"columns": "kd"}, {"task": "kd"}):
        data = FolderDataset(folder, path, **chosen)
        assert data.tasks() == ["kd"] and data.target("kd").names == ("kd",)
    with pytest.raises(LabelError, match="name, ph, kd.*--column"):
        FolderDataset(folder, path)


@pytest.mark.parametrize(
    ("chosen", "error", "parts"),
    [
        ({"task": "siet"}, UnknownNameError, ["'siet'", "'site'", "site, ph"]),
        ({"columns": ["siet"]}, UnknownNameError, ["'siet'", "'site'"]),
        ({"columns": "p"}, UnknownNameError, ["'p'", "'ph'"]),
        ({"task": "ph", "columns": ["site"]}, LabelError, ["'ph'", "site"]),
        ({"columns": ["ph", "ph"]}, LabelError, ["ph, ph"]),
    ],
)
def test_labels_are_never_used_under_the_name_of_another_column(folder, table, chosen, error, parts):
    path = table("file,site,ph", ["1ubq,0,7", "1orc,1,6"])
    with pytest.raises(error) as raised:
        FolderDataset(folder, path, **chosen)
    assert all(part in str(raised.value) for part in parts), str(raised.value)


def test_split_column_assigns_splits(folder, table):
    rows = ["1ubq,1,train", "2d7t,2,val", "1orc,3,test", "5cq2,4,far"]
    data = FolderDataset(folder, table("file,x,split", rows))
    assert data.splits("x") == ["train", "val", "test", "far"]
    assert [e.id for e in data.examples("x", "far")] == ["5cq2"]


def test_random_split_keeps_files_and_clusters_together(folder, table):
    rows = ["2d7t,H,1,a", "2d7t,L,2,b", "1ubq,A,3,b", "1orc,A,4,", "5cq2,A,5,"]
    path = table("file,chain,x,cluster", rows)
    for seed in range(10):
        data = FolderDataset(folder, path, seed=seed, fractions={"train": 0.5, "val": 0.25, "test": 0.25})
        split = {e.id: e.split for e in data.examples("x")}
        assert split["2d7t_H"] == split["2d7t_L"] == split["1ubq_A"]
        assert set(split.values()) == {"train", "val", "test"}


@pytest.mark.parametrize(
    ("header", "rows", "parts"),
    [
        ("file,x", ["1abc,1", "1ubq,2", "9xyz,3"], ["2 files", "'1abc' (row 2), '9xyz' (row 4)"]),
        ("name,x", ["1ubq,1"], ["'file'", "'id'", "name, x"]),
        ("file,id,x", ["1ubq,1ubq,1"], ["'file'", "'id'"]),
        ("file,x,x", ["1ubq,1,1"], ["'x'"]),
        ("file,x", ["1ubq,1,2"], ["row 2 has 3 columns", "2"]),
        ("file,x", [], ["labels.csv"]),
        ("file,x", ["1ubq,", "1orc,"], ["Blank", "'x'"]),
        ("file,res_id,x", ["2d7t,1,2", "2d7t,2,3"], ["row 2", "2d7t.bcif", "H, L", "'chain'"]),
        ("file,chain,res_id,x", ["1ubq,A,one,2"], ["row 2 has res_id 'one'"]),
        ("file,chain,res_id,ins_code,x", ["1ubq,A,1A,B,2"], ["res_id '1A', ins_code 'B'"]),
        ("file,chain,res_id,x", ["1ubq,A,1,2", "1ubq.bcif,A,1,2"], ["rows 2 and 3", "1ubq.bcif A:1", "same"]),
        ("file,chain,res_id,x", ["1ubq,A,1,2", "1ubq,A,1,3"], ["rows 2 and 3", "1ubq.bcif A:1", "different"]),
        ("file,x", ["1ubq,a", "1ubq,b"], ["rows 2 and 3", "1ubq.bcif", "different"]),
        ("file,x", ["1ubq,1.5", "1orc,<5"], ["row 3 is '<5'", "--kind classification"]),
        ("file,x", ["1ubq,0", "1orc,1", "5cq2,inf"], ["row 4 is 'inf'"]),
        ("file,x", ["1ubq,zinc", "1orc,NA"], ["'x' is 'zinc' in all 1 labeled rows"]),
        ("file,x", ["1ubq,loop", "1orc,loop", "5cq2,"], ["'x' is 'loop'"]),
        ("file,x", ["1ubq,0", "1orc,0"], ["'x' is '0'"]),
        ("file,x", ['1ubq,"a"b'], ["labels.csv"]),
    ],
)
def test_invalid_table_raises_with_the_place(folder, table, header, rows, parts):
    with pytest.raises(LabelError) as error:
        FolderDataset(folder, table(header, rows))
    assert all(part in str(error.value) for part in parts), str(error.value)
    assert str(error.value).count("\n") <= 2


@pytest.mark.parametrize(
    ("header", "rows", "data"),
    [
        ("file,x,split", ["1ubq,1,train", "1orc,2,"], r"row 3 .*\[''\]"),
        ("file,chain,res_id,x,split", ["1ubq,A,1,1,train", "1ubq,A,2,2,test"], r"\['test', 'train'\]"),
        ("file,x,split", ["1ubq,2,trian", "1orc,3,trian"], "'train'.*'trian'"),
    ],
)
def test_invalid_split_column_raises(folder, table, header, rows, data):
    with pytest.raises(DatasetError, match=data):
        FolderDataset(folder, table(header, rows))


def test_missing_folder_or_table_raises_with_the_path(folder, table, tmp_path):
    with pytest.raises(UnknownNameError, match="nothing"):
        FolderDataset(tmp_path / "nothing", table("file,x", ["1ubq,1"]))
    with pytest.raises(LabelError, match="nothing.csv"):
        FolderDataset(folder, tmp_path / "nothing.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(LabelError, match="binary.csv"):
        FolderDataset(folder, tmp_path / "binary.csv")


def test_residues_of_a_fasta_record_are_numbered_from_one(sequences, table):
    labels = table("file,chain,res_id,kind", ["c|Chain,D,1,x", "c|Chain,D,3,y", "a,A,2,x", "b_long,A,1,x"])
    data = FolderDataset(sequences, labels, task="kind")
    [example] = [e for e in data.examples("kind") if e.record == "c|Chain"]
    assert align(data.labels("kind", example), data.read(example)).tolist() == [0, -1, 1, -1]


RESIDUE_TYPE = Target("type", "node", "classification", 20)


def test_without_a_table_all_files_and_records_are_examples(folder, sequences):
    for path in sequences.iterdir():
        shutil.copy(path, folder)
    data = FolderDataset(folder, task="type", target=RESIDUE_TYPE)
    assert [e.id for e in data.examples("type")] == ["1orc", "1ubq", "2d7t", "5cq2", "c|Chain", "a", "b_long"]
    assert data.target("type") == RESIDUE_TYPE and not data.has_labels
    assert {data.labels("type", e) for e in data.examples("type")} == {None}
    assert data.splits("type") == ["train", "val", "test"] and data.unnamed_files == []
    assert {split: count.proteins for split, count in data.check("type").items()} == {"train": 5, "val": 1, "test": 1}


def test_table_without_labels_selects_files_chains_and_splits(folder, table):
    path = table("file,chain,split", ["2d7t,H,train", "2d7t,L,val", "1ubq,,test"])
    data = FolderDataset(folder, path, task="type", target=RESIDUE_TYPE)
    assert [(e.id, e.split) for e in data.examples("type")] == [
        ("2d7t_H", "train"),
        ("2d7t_L", "val"),
        ("1ubq", "test"),
    ]
    assert data.unnamed_files == ["1orc.bcif", "5cq2.bcif"]
    assert "not in the table: 1orc.bcif, 5cq2.bcif (2 files)" in str(data.describe())
    with pytest.raises(LabelError, match="file, chain, split"):
        FolderDataset(folder, path, task="x")


def test_label_columns_are_ignored_by_tasks_without_table_labels(folder, table):
    path = table("file,x,cluster", ["1ubq,always the same,a", "1orc,always the same,a", "5cq2,,b"])
    data = FolderDataset(folder, path, task="type", target=RESIDUE_TYPE, fractions={"train": 0.5, "test": 0.5})
    assert data.unused_columns == ["x"]
    split = {e.id: e.split for e in data.examples("type")}
    assert split["1ubq"] == split["1orc"] != split["5cq2"]


def test_files_with_equal_sequences_are_in_one_split(folder, table):
    for copy in range(6):
        shutil.copy(folder / "1ubq.bcif", folder / f"ubq{copy}.cif")
    sequence = clean(load_structure(folder / "1ubq.bcif")).sequence
    (folder / "ubq.fasta").write_text(f">ubq\n{sequence}\n>other\nMKT\n")
    path = table("file,x", [f"{p.name},{i}" for i, p in enumerate(sorted(folder.glob("*cif")))])
    for seed in range(5):
        data = FolderDataset(folder, task="type", target=RESIDUE_TYPE, seed=seed)
        assert len({e.split for e in data.examples("type") if "ubq" in e.id}) == 1
        assert len(data.notes) == 1 and data.notes[0].startswith("8 of 12 proteins")
        labeled = FolderDataset(folder, path, seed=seed)
        assert len({e.split for e in labeled.examples("x") if "ubq" in e.id}) == 1


def test_split_column_that_divides_a_sequence_is_noted(folder, table):
    shutil.copy(folder / "1ubq.bcif", folder / "twin.bcif")
    path = table("file,x,split", ["1ubq,1,train", "twin,2,test", "1orc,3,val"])
    (note,) = FolderDataset(folder, path).notes
    assert note.startswith("1 sequence") and "(test, train)" in note and str(path) in note


def test_unreadable_files_are_training_examples_until_read(folder):
    (folder / "text.cif").write_text("no structure")
    (folder / "twice.fa").write_text(">a\nMK\n>a\nMK\n")
    data = FolderDataset(folder, task="type", target=RESIDUE_TYPE)
    examples = {e.id: e for e in data.examples("type")}
    assert examples["text"].split == examples["twice"].split == "train"
    with pytest.raises(StructureFileError, match="twice.fa"):
        data.read(examples["twice"])


def test_version_depends_on_files_table_and_splits_only(folder, table, tmp_path):
    path = table("file,x", ["1ubq,1", "1orc,2", "5cq2,3"])

    def version(at=folder, labels=path, seed=0):
        return FolderDataset(at, labels, seed=seed, target=None if labels else RESIDUE_TYPE).version

    first, bare = version(), version(labels=None)
    assert len({first, bare}) == 2
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    (moved / "1ubq.bcif").touch()
    assert version(moved) == first and version(moved, None) == bare
    (moved / "2d7t.bcif").unlink()  # not in the table
    assert version(moved) == first and version(moved, None) != bare
    shutil.copy(moved / "1orc.bcif", moved / "5cq2.bcif")
    assert version(moved) != first
    path.write_text(path.read_text().replace(",3", ",4"))
    assert version() != first
    assert len({version(seed=seed) for seed in range(8)}) > 1


def test_a_folder_without_labels_and_target_has_no_task(folder, tmp_path):
    data = FolderDataset(folder)
    assert data.tasks() == [] and sum(count.proteins for count in data.card.splits.values()) == 4
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="empty"):
        FolderDataset(tmp_path / "empty", target=RESIDUE_TYPE)

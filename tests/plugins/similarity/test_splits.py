"""Splits without relatives, and planted leaks of each kind."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from protgraph_plugins.similarity import StructureRule, check_splits
from protgraph_plugins.similarity.chains import entry_of

import protgraph as pg
from protgraph.cli.app import main
from protgraph.file_io import unpack_tar

AMINO_ACIDS = list("ACDEFGHIKLMNPQRSTVWY")


def fasta(folder, **sequences: str):
    folder.mkdir(exist_ok=True)
    for name, sequence in sequences.items():
        (folder / f"{name}.fasta").write_text(f">{name}\n{sequence}\n")
    return folder


def table(path, splits: dict[str, str]):
    path.write_text("file,split\n" + "".join(f"{name},{split}\n" for name, split in splits.items()))
    return path


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def sequence(rng, length: int = 90) -> str:
    return "".join(rng.choice(AMINO_ACIDS, length))


def mutate(rng, parent: str, fraction: float) -> str:
    letters = list(parent)
    for i in rng.choice(len(letters), round(fraction * len(letters)), replace=False):
        letters[i] = rng.choice([a for a in AMINO_ACIDS if a != letters[i]])
    return "".join(letters)


def test_planted_leaks_of_each_kind_are_found(tmp_path, rng):
    a, b, c, d = (sequence(rng) for _ in range(4))
    folder = fasta(
        tmp_path / "my", parent=a, equal=a, distant=mutate(rng, a, 0.6), insertion=a[:40] + "GSGSGSGSGS" + a[40:],
        **{"1abc_A": b, "1abc_B": c}, alone=d,
    )  # fmt: skip
    splits = dict.fromkeys(["parent", "1abc_A"], "train")
    splits |= {"equal": "val", "distant": "test", "insertion": "test", "1abc_B": "test", "alone": "test"}
    found = check_splits(folder, labels=table(tmp_path / "s.csv", splits), cache=tmp_path / "cache")
    kinds = {(leak.protein, leak.other_protein): leak.kind for leak in found.leaks}
    assert kinds == {
        ("equal", "parent"): "sequence",
        ("distant", "parent"): "homolog",
        ("insertion", "parent"): "homolog",
        ("distant", "equal"): "homolog",
        ("insertion", "equal"): "homolog",
        ("1abc_B", "1abc_A"): "entry",
    }
    assert found.has_leaks
    assert found.related("test", "train") == ["1abc_B", "distant", "insertion"]
    assert found.related("val", "train", identity=0.95) == ["equal"]
    assert {leak.protein for leak in found.nearest} == {"equal", "distant", "insertion"}
    assert "alone" not in str(found)


def test_chains_of_a_file_and_permuted_chains_are_found(tmp_path, structures_dir):
    splits = "file,chain,split\n1a19,A,train\n1a19,B,test\n"
    (tmp_path / "s.csv").write_text(splits)
    folder = tmp_path / "my"
    folder.mkdir()
    (folder / "1a19.bcif").write_bytes((structures_dir / "1a19.bcif").read_bytes())
    found = check_splits(folder, labels=tmp_path / "s.csv", cache=tmp_path / "cache")
    assert {leak.kind for leak in found.leaks} == {"file", "sequence"}


def test_clean_splits_pass(tmp_path, rng):
    folder = fasta(tmp_path / "my", a=sequence(rng), b=sequence(rng), c=sequence(rng))
    splits = table(tmp_path / "s.csv", {"a": "train", "b": "val", "c": "test"})
    found = check_splits(folder, labels=splits, cache=tmp_path / "cache")
    assert not found.has_leaks
    assert found.sizes == {"train": 1, "val": 1, "test": 1}


def test_split_keeps_relatives_together_and_labels_balanced(tmp_path, rng, capsys):
    parents = [sequence(rng) for _ in range(10)]
    members = {f"p{i}_{k}": mutate(rng, parents[i], 0.4) for i in range(10) for k in range(3)}
    folder = fasta(tmp_path / "my", **members)
    labels = tmp_path / "labels.csv"
    labels.write_text("file;active\n" + "".join(f"{name};{'yes' if name[1] in '24' else 'no'}\n" for name in members))
    out = tmp_path / "split.csv"
    command = ["data", "split", str(folder), "--labels", str(labels), "-o", str(out), "--fractions", "0.6,0.2,0.2"]
    main_without_exit(command)
    printed = capsys.readouterr().out
    rows = list(csv.DictReader(out.open()))
    assert list(rows[0]) == ["file", "active", "cluster", "split"]
    assert [row["file"] for row in rows] == list(members)
    for family in range(10):
        own = {(row["cluster"], row["split"]) for row in rows if row["file"].startswith(f"p{family}_")}
        assert len(own) == 1
    sizes = [sum(row["split"] == split for row in rows) for split in ("train", "val", "test")]
    assert sizes == [18, 6, 6]
    assert "30 proteins in 10 clusters" in printed
    assert (tmp_path / "split.csv.leaks.csv").exists()
    data = pg.load_dataset(folder, labels=out, cache=tmp_path / "cache")
    assert {name: count.proteins for name, count in data.card.splits.items()} == dict(
        zip(("train", "val", "test"), sizes, strict=True)
    )
    assert not check_splits(folder, labels=out, cache=tmp_path / "cache").has_leaks


@pytest.mark.parametrize("aligner", ["biotite", "parasail"])
def test_many_slow_alignments_name_the_faster_program(tmp_path, rng, capsys, monkeypatch, aligner):
    monkeypatch.setattr("protgraph_plugins.similarity.local_alignment.default_aligner", lambda: aligner)
    monkeypatch.setattr("protgraph_plugins.similarity.mmseqs_search.find_mmseqs", lambda: None)
    monkeypatch.setattr("protgraph_plugins.similarity.split_commands._MANY_PAIRS", 3)
    folder = fasta(tmp_path / "my", **{name: sequence(rng) for name in "abc"})
    main_without_exit(["data", "split", str(folder), "-o", str(tmp_path / "s.csv")])
    note = "note: 3 pairs are aligned with biotite. parasail is about 17 times as fast"
    assert (note in capsys.readouterr().err) == (aligner == "biotite")


def test_check_command_exits_with_1_and_writes_the_leaks(tmp_path, rng, capsys):
    a = sequence(rng)
    folder = fasta(tmp_path / "my", a=a, b=mutate(rng, a, 0.3), c=sequence(rng))
    splits = table(tmp_path / "s.csv", {"a": "train", "b": "test", "c": "val"})
    with pytest.raises(SystemExit) as ended:
        main(["data", "check", str(folder), "--labels", str(splits), "-o", str(tmp_path / "leaks.csv")])
    assert ended.value.code == 1
    rows = list(csv.DictReader((tmp_path / "leaks.csv").open()))
    assert [(row["kind"], row["protein"], row["other_protein"]) for row in rows] == [
        ("homolog", "b", "a"),
        ("nearest", "b", "a"),
    ]
    assert float(rows[0]["identity"]) == pytest.approx(0.7, abs=0.02)
    assert "1 of 1 proteins of test" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "named"), [("0.8,0.2", "--fractions"), ("0.8,0.1,0.3", "fractions")])
def test_invalid_fractions_are_refused(tmp_path, rng, capsys, text, named):
    folder = fasta(tmp_path / "my", a=sequence(rng), b=sequence(rng))
    with pytest.raises(SystemExit) as ended:
        main(["data", "split", str(folder), "-o", str(tmp_path / "s.csv"), "--fractions", text])
    assert ended.value.code == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "s.csv").exists()


@pytest.mark.parametrize(
    ("name", "entry"),
    [("1abc_A", "1abc"), ("pdb1abc", "1abc"), ("AF-P69905-F1-model_v4", "AF-P69905"), ("mine", None), ("1abcd", None)],
)
def test_entry_is_read_from_the_name(name, entry):
    assert entry_of(pg.Example(name, f"{name}.pdb", None, "train")) == entry


@pytest.mark.slow
def test_published_leaks_of_sugar_site_are_found(shared_data, tmp_path):

    source = shared_data / "sites" / "sugar_site"
    unpack_tar(source / "structures.tar.xz", tmp_path / "my")
    rows = list(csv.DictReader((source / "splits.tsv").open(), delimiter="\t"))
    splits = table(tmp_path / "s.csv", {row["file"]: row["split"] for row in rows})
    found = check_splits(tmp_path / "my", labels=splits, cache=tmp_path / "cache")
    published = list(csv.DictReader((source / "leaks.tsv").open(), delimiter="\t"))
    for split, count, near in (("test", 74, 13), ("val", 51, 8)):
        theirs = {row["query"].removesuffix(".bcif") for row in published if row["pair"] == f"{split}~train"}
        ours = set(found.related(split, "train", identity=0.3))
        assert len(theirs) == count
        assert theirs <= ours  # MMseqs2 does not align all pairs
        assert len(ours) <= count + 3
        assert len(found.related(split, "train", identity=0.95)) == near


def main_without_exit(arguments: list[str]) -> None:
    try:
        main(arguments)
    except SystemExit as e:
        assert not e.code


@pytest.fixture
def similar_folds(tmp_path, structures_dir):
    """Return a folder with two globins, two dihydrofolate reductases, all of low identity, and ubiquitin."""
    folder = tmp_path / "folds"
    folder.mkdir()
    for name, entry in {"g1": "1or4", "g2": "4hhb", "r1": "1rx2", "r2": "1drf", "u": "1ubq"}.items():
        (folder / f"{name}.bcif").write_bytes((structures_dir / f"{entry}.bcif").read_bytes())
    return folder


@pytest.mark.slow
def test_similar_structures_are_leaks_where_sequences_are_not(tmp_path, similar_folds, capsys):
    splits = table(tmp_path / "s.csv", {"g1": "train", "g2": "test", "r1": "train", "r2": "val", "u": "test"})
    command = ["data", "check", str(similar_folds), "--labels", str(splits), "--identity", "0.6"]
    main_without_exit(command)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*command, "--by", "structure", "-o", str(tmp_path / "leaks.csv")])
    assert ended.value.code == 1
    rows = [row for row in csv.DictReader((tmp_path / "leaks.csv").open()) if row["kind"] == "structure"]
    assert [(row["protein"], row["other_protein"]) for row in rows] == [("g2", "g1"), ("r2", "r1")]
    assert float(rows[1]["tm"]) == pytest.approx(0.775, abs=0.01)  # TM-align: 0.77482
    assert "TM-score ≥ 0.5, normalized by the longer chain" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "split"])
def test_least_tm_score_needs_a_comparison_of_structures(tmp_path, capsys, command):
    with pytest.raises(SystemExit) as ended:
        main(["data", command, str(tmp_path), "--tm", "0.5", "-o", str(tmp_path / "out.csv")])
    assert ended.value.code == 2
    assert "Add --by structure" in capsys.readouterr().err


@pytest.mark.slow
def test_split_by_structure_keeps_folds_together(tmp_path, similar_folds, capsys):
    out = tmp_path / "split.csv"
    command = ["data", "split", str(similar_folds), "-o", str(out), "--fractions", "0.4,0.2,0.4"]
    main_without_exit([*command, "--identity", "0.6", "--by", "structure"])
    rows = {row["file"].removesuffix(".bcif"): row for row in csv.DictReader(out.open())}
    assert len({row["cluster"] for row in rows.values()}) == 3
    for a, b in (("g1", "g2"), ("r1", "r2")):
        assert (rows[a]["cluster"], rows[a]["split"]) == (rows[b]["cluster"], rows[b]["split"])
    printed = capsys.readouterr().out
    assert "similar structures" in printed and "no leak found" in printed


def test_chains_without_coordinates_are_counted(tmp_path, rng):
    folder = fasta(tmp_path / "my", a=sequence(rng), b=sequence(rng))
    splits = table(tmp_path / "s.csv", {"a": "train", "b": "test"})
    found = check_splits(folder, labels=splits, structure=StructureRule(), cache=tmp_path / "cache")
    assert "left out: 2 chains" in str(found) and not found.has_leaks

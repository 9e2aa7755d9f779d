"""Datasets of binding sites: cards, both layouts of dna_site, preparation from the real sources."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import protgraph as pg
from protgraph.cli.app import main
from protgraph.data.datasets.preparation import prepare_dataset
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.structure import load_structure

NAMES = ("dna_site", "sugar_site", "paratope", "paratope_expanded", "paratope_joined", "cryptic_pocket", "ppi_site")


def create(name: str, folder: Path) -> pg.Dataset:
    return type(pg.datasets.create(name))(folder=str(folder))


def run(*arguments: str) -> int:
    """Return the exit code of a command."""
    try:
        main(["data", *arguments])
    except SystemExit as e:
        return int(e.code or 0)
    return 0


@pytest.mark.parametrize("name", NAMES)
def test_a_card_has_license_sources_floors_and_published_scores(name, tmp_path):
    card = create(name, tmp_path).card
    assert card.name == name and card.license and card.citation and card.provenance.redistribution
    assert card.provenance.sources and card.provenance.checksums
    assert card.splits.keys() == set().union(*(task.counts for task in card.tasks.values()))
    assert any(task.published for task in card.tasks.values())
    for task in card.tasks.values():
        assert task.floors
        assert {score.split for score in (*task.floors, *task.published)} <= set(card.splits)
        for split, count in task.counts.items():
            assert (count.proteins, count.residues) == (card.splits[split].proteins, card.splits[split].residues)
            assert 0 < count.per_class[0] < count.labeled <= count.residues
    assert bool(card.provenance.weights_note) == name.startswith("paratope")  # files under CC BY-NC
    assert bool(card.provenance.train_on) == ("train" not in card.splits)


def test_list_and_info_print_cards_of_datasets_that_are_not_prepared(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    assert run("list") == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()[1:]}
    assert set(NAMES) | {"pdb_core"} <= set(rows)
    assert "with the package" in rows["pdb_core"] and all("not prepared" in rows[name] for name in NAMES)
    assert run("info", "paratope") == 0
    assert "CC BY-NC 4.0" in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--download", "--from", "."]])
def test_prepare_requires_one_source(options, capsys):
    assert run("prepare", "dna_site", *options) == 2
    assert "--from" in capsys.readouterr().err


def test_a_dataset_without_files_to_download_and_one_with_its_files_are_refused(capsys):
    assert run("prepare", "scop_fold", "--download") == 2
    assert "--from FOLDER" in capsys.readouterr().err
    assert run("prepare", "pdb_core", "--download") == 2
    assert "pdb_core" in capsys.readouterr().err


@pytest.mark.slow
def test_both_layouts_of_dna_site_have_the_same_labels_and_splits(shared_data, tmp_path):
    tables = shared_data / "sites" / "dna_site"
    dataset = create("dna_site", tmp_path / "unused")
    first = {p.id: p for p in dataset.convert(SourceFolder(tables, tmp_path / "scratch"))}
    _write_repository(tables, tmp_path / "repository")
    second = {p.id: p for p in dataset.convert(SourceFolder(tmp_path / "repository", tmp_path / "other"))}
    assert list(first) == list(second) and len(first) == 698
    for name, ours in first.items():
        theirs = second[name]
        assert (ours.split, ours.chains, ours.cluster) == (theirs.split, theirs.chains, theirs.cluster)
        for a, b in zip(
            (*ours.residues, *ours.residue_labels.values()),
            (*theirs.residues, *theirs.residue_labels.values()),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)


def _write_repository(tables: Path, root: Path) -> None:
    """Write the FASTA files of the repository, with a protein that has no model; files of structures are empty."""
    (root / "Dataset" / "pdb").mkdir(parents=True)
    labels: dict[str, str] = {}
    with gzip.open(tables / "labels.tsv.gz", "rt") as file:
        for line in list(file)[1:]:
            name, *_, label, _ = line.rstrip("\n").split("\t")
            labels[name] = labels.get(name, "") + label
    texts = {"train": ">9xyz_A\nAA\n01\n", "test": ""}
    for line in (tables / "splits.tsv").read_text().splitlines()[1:]:
        name, split = line.split("\t")[:2]
        texts[split] += f">{name[:-5]}\n{'A' * len(labels[name])}\n{labels[name]}\n"
        (root / "Dataset" / "pdb" / f"{name[:-5]}.pdb").touch()
    (root / "Dataset" / "DNA_Train_573.fa").write_text(texts["train"])
    (root / "Dataset" / "DNA_Test_129.fa").write_text(texts["test"])


@pytest.mark.slow
def test_residues_without_ca_lose_their_label_and_are_listed(shared_data, tmp_path, capsys):
    source = shared_data / "sites" / "ppi_site"
    assert run("prepare", "ppi_site", "--from", str(source), "-o", str(tmp_path / "a")) == 0
    assert "1h32B.bcif B:135" in capsys.readouterr().out
    result = prepare_dataset(create("ppi_site", tmp_path / "a"), source)
    assert result.without_ca == ("1h32B.bcif B:135",) and result.proteins == 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cryptic_pocket", "sugar_site", "paratope"])
def test_the_real_source_gives_the_counts_of_the_card_and_nothing_but_the_protein(name, shared_data, tmp_path):
    dataset = create(name, tmp_path / "a")
    source = shared_data / "sites" / name
    result = prepare_dataset(dataset, source)  # raises where counts differ from the card
    examples = dataset.examples(name)
    assert len(examples) == result.proteins == sum(count.proteins for count in dataset.card.splits.values())
    if name == "cryptic_pocket":
        return
    structures = SourceFolder(source, tmp_path / "scratch").unpacked("structures.tar.xz")
    removed = 0
    for example in examples[:40]:
        whole = load_structure(structures / example.path.name.replace("_no_homolog", "")).atoms
        kept = load_structure(example.path).atoms
        labels = dataset.labels(name, example)
        allowed = set(labels.ids)
        assert {f"{a.chain_id}:{a.res_id}{a.ins_code}" for a in kept} <= allowed
        removed += len(whole) - len(kept)
        if name == "paratope":
            assert set(kept.chain_id.tolist()) <= {"H", "L"}
    assert removed > 1000

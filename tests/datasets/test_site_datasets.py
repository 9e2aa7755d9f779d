"""Datasets of binding sites: cards, preparation from folders laid out like their repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from protgraph_plugins.published import SourceFolder, prepare_dataset, read_tsv

import protgraph as pg
from protgraph.cli.app import main
from protgraph.file_io import unpack_tar
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
    assert any(source.files for source in card.provenance.sources)
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


def test_a_dataset_with_its_files_is_refused(capsys):
    assert run("prepare", "pdb_core", "--download") == 2
    assert "pdb_core" in capsys.readouterr().err


def lay_out(name: str, shared: Path, folder: Path) -> SourceFolder:
    """Link the shared structures under the paths of the repository."""
    scratch = folder / "bcif"
    scratch.mkdir(parents=True)
    unpack_tar(shared / "structures.tar.xz", scratch)
    for row in read_tsv(create(name, folder / "unused").card_path.parent / "repository_labels.tsv.gz"):
        path = folder / row["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(scratch / f"{row['id']}.bcif")
    return SourceFolder(folder, folder / "scratch")


def lay_out_graphsite(shared: Path, folder: Path) -> None:
    """Write the FASTA files of GraphSite, with a protein that has no model, and link the models."""
    (folder / "Dataset" / "pdb").mkdir(parents=True)
    (folder / "bcif").mkdir()
    unpack_tar(shared / "structures.tar.xz", folder / "bcif")
    labels: dict[str, str] = {}
    for row in read_tsv(shared / "labels.tsv.gz"):
        labels[row["file"]] = labels.get(row["file"], "") + row["label"]
    texts = {"train": ">9xyz_A\nAA\n01\n", "test": ""}
    for row in read_tsv(shared / "splits.tsv"):
        name = row["file"].removesuffix(".bcif")
        texts[row["split"]] += f">{name}\n{'A' * len(labels[row['file']])}\n{labels[row['file']]}\n"
        (folder / "Dataset" / "pdb" / f"{name}.pdb").symlink_to(folder / "bcif" / row["file"])
    (folder / "Dataset" / "DNA_Train_573.fa").write_text(texts["train"])
    (folder / "Dataset" / "DNA_Test_129.fa").write_text(texts["test"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dna_site", "sugar_site", "paratope", "cryptic_pocket", "ppi_site"])
def test_the_folder_with_archives_gives_the_counts_of_the_card(name, shared_data, tmp_path):
    dataset = create(name, tmp_path / "a")
    result = prepare_dataset(dataset, shared_data / "sites" / name)  # raises where counts differ from the card
    assert result.proteins == sum(count.proteins for count in dataset.card.splits.values())


@pytest.mark.slow
def test_dna_site_has_the_counts_of_the_card(shared_data, tmp_path):
    lay_out_graphsite(shared_data / "sites" / "dna_site", tmp_path / "GraphSite")
    assert prepare_dataset(create("dna_site", tmp_path / "a"), tmp_path / "GraphSite").proteins == 698


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shared"),
    [(name, name.partition("_expanded")[0].partition("_joined")[0]) for name in NAMES if name != "dna_site"],
)
def test_the_real_source_gives_the_counts_of_the_card_and_nothing_but_the_protein(name, shared, shared_data, tmp_path):
    dataset = create(name, tmp_path / "a")
    source = lay_out(name, shared_data / "sites" / shared, tmp_path / "repository")
    result = prepare_dataset(dataset, source.folder)  # raises where counts differ from the card
    (task, *_) = dataset.tasks()
    examples = dataset.examples(task)
    assert len(examples) == result.proteins == sum(count.proteins for count in dataset.card.splits.values())
    if name in ("cryptic_pocket", "ppi_site"):
        return
    removed = 0
    for example in examples[:40]:
        whole = load_structure(tmp_path / "repository" / "bcif" / example.path.name.replace("_no_homolog", "")).atoms
        kept = load_structure(example.path).atoms
        allowed = set(dataset.labels(task, example).ids)
        assert {f"{a.chain_id}:{a.res_id}{a.ins_code}" for a in kept} <= allowed
        removed += len(whole) - len(kept)
        if shared == "paratope":
            assert set(kept.chain_id.tolist()) <= {"H", "L"}
    assert removed > 1000

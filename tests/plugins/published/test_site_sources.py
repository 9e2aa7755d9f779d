"""Sources of sites: tables of a package for files of a repository or of archives, and tables beside the archives."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest
from protgraph_datasets.cryptic_pocket.dataset import _load_structure
from protgraph_plugins.published import (
    SourceFolder,
    is_site_archive,
    read_repository_labels,
    read_site_archive,
    read_tsv,
    write_tsv,
)

import protgraph as pg
from protgraph.data.datasets.card import parse_card
from protgraph.errors import DatasetError
from protgraph.structure import clean, load_structure

STRUCTURES = Path(__file__).resolve().parents[3] / "datasets" / "pdb_core" / "structures"
SITES = {"sugar_site": "label", "cryptic_pocket": "label", "ppi_site": "label", "paratope": "label"}


def atoms(numbers: list[int], residues: list[str]) -> str:
    """Return a PDB file of residues with atoms N, CA and C, without chain ids."""
    rows = []
    for i, (number, residue) in enumerate(zip(numbers, residues, strict=True)):
        for j, name in enumerate(("N", "CA", "C")):
            x = 3.8 * i + 1.2 * j
            rows.append(
                f"ATOM  {3 * i + j + 1:5d}  {name:3s} {residue}  {number:4d}    {x:8.3f}{0.7 * (j == 1):8.3f}   0.000\n"
            )
    return "".join(rows)


def write(folder: Path, labels: str, mask: str) -> Path:
    (folder / "x").mkdir()
    (folder / "x" / "1abcQ.pdb").write_text(atoms([3, 4, 7], ["ALA", "GLY", "SER"]))
    table = f"id\tpath\tsplit\tcluster\tchains\tlabel\tmask\n1abcQ\tx/1abcQ.pdb\ttest\tc\tQ\t{labels}\t{mask}\n"
    table += "2abcQ\tx/2abcQ.pdb\t\tc\tQ\t1\t1\n"  # in no split
    with gzip.open(folder / "table.tsv.gz", "wt") as file:
        file.write(table)
    return folder / "table.tsv.gz"


def test_labels_are_those_of_the_table_under_the_chain_of_the_table(tmp_path):
    table = write(tmp_path, "01-", "110")
    source = SourceFolder(tmp_path, tmp_path / "scratch")
    (protein,) = read_repository_labels(source, table, {"a": "label", "b": ("label", "mask")})
    assert (protein.id, protein.split, protein.chains, protein.cluster) == ("1abcQ", "test", ("Q",), "c")
    assert [column.tolist() for column in protein.residues] == [["Q"] * 3, [3, 4, 7], [""] * 3]
    np.testing.assert_array_equal(protein.residue_labels["a"], [0, 1, np.nan])
    np.testing.assert_array_equal(protein.residue_labels["b"], [0, 1, np.nan])
    assert clean(protein.structure()).chain_names == ("Q",)


def test_another_number_of_residues_and_a_missing_file_are_errors(tmp_path):
    source = SourceFolder(tmp_path, tmp_path / "scratch")
    table = write(tmp_path, "01", "11")
    with pytest.raises(DatasetError, match=r"1abcQ\.pdb"):
        list(read_repository_labels(source, table, {"a": "label"}))
    (tmp_path / "x" / "1abcQ.pdb").unlink()
    with pytest.raises(DatasetError, match=r"1abcQ\.pdb"):
        list(read_repository_labels(source, table, {"a": "label"}))


@pytest.fixture
def archived(tmp_path) -> SourceFolder:
    """Return a folder with 1crn and 1ppe in two archives, and the tables of their splits and labels."""
    splits, labels = ["file\tsplit\tchains\tcluster30"], ["file\tchain\tres_id\tins_code\tlabel"]
    for number, (entry, chain, split) in enumerate((("1crn", "A", "train"), ("1ppe", "E", "test")), 1):
        with tarfile.open(tmp_path / f"structures_{number}.tar.xz", "w:xz") as archive:
            archive.add(STRUCTURES / f"{entry}.bcif", f"{entry}.bcif")
        splits.append(f"{entry}.bcif\t{split}\t{chain}\tc{number}")
        residues = clean(load_structure(STRUCTURES / f"{entry}.bcif"), chains=[chain])
        known = ["1", "0", ""] + ["0"] * (len(residues) - 3)
        for res_id, code, label in zip(residues.res_id, residues.ins_code, known, strict=True):
            labels.append(f"{entry}.bcif\t{chain}\t{res_id}\t{code}\t{label}")
    (tmp_path / "splits.tsv").write_text("\n".join(splits) + "\n")
    (tmp_path / "labels.tsv.gz").write_bytes(gzip.compress(("\n".join(labels) + "\n").encode()))
    (tmp_path / "scratch").mkdir()
    return SourceFolder(tmp_path, tmp_path / "scratch")


def test_tables_beside_archives_give_proteins_with_their_labels(archived):
    assert is_site_archive(archived)
    proteins = list(read_site_archive(archived, {"site": "label"}))
    rows = [(p.id, p.split, p.chains, p.cluster) for p in proteins]
    assert rows == [("1crn", "train", ("A",), "c1"), ("1ppe", "test", ("E",), "c2")]
    for protein in proteins:
        chain, res_id, _ = protein.residues
        residues = clean(protein.structure(), chains=list(protein.chains))
        assert chain.tolist() == residues.chain.tolist() and res_id.tolist() == residues.res_id.tolist()
        np.testing.assert_array_equal(protein.residue_labels["site"][:4], [1, 0, np.nan, 0])
    (only,) = read_site_archive(archived, {}, rows=read_tsv(archived.path("splits.tsv"))[1:])
    assert only.id == "1ppe"


def test_the_table_of_a_package_gives_the_same_for_archives_as_for_the_files_of_the_repository(archived):
    size = len(clean(load_structure(STRUCTURES / "1crn.bcif"), chains=["A"]))
    rows = [("id", "path", "split", "cluster", "chains", "label"), ("1crn", "x/y.bcif", "val", "c", "A", "01-" * size)]
    rows[1] = (*rows[1][:-1], rows[1][-1][:size])
    write_tsv(archived.folder / "table.tsv", rows)
    clone = archived.folder / "clone"
    (clone / "x").mkdir(parents=True)
    (clone / "x" / "y.bcif").symlink_to(STRUCTURES / "1crn.bcif")
    proteins = []
    for source in (archived, SourceFolder(clone, archived.scratch)):
        proteins += read_repository_labels(source, archived.folder / "table.tsv", {"a": "label"})
    first, second = proteins
    assert (first.id, first.split, first.source_bytes()) == (second.id, second.split, second.source_bytes())
    np.testing.assert_array_equal(first.residue_labels["a"], second.residue_labels["a"])


def test_a_structure_that_no_archive_has_is_an_error(archived):
    (archived.folder / "structures_2.tar.xz").unlink()
    with pytest.raises(DatasetError, match=r"1ppe\.bcif"):
        list(read_site_archive(archived, {"site": "label"}))
    (archived.folder / "structures_1.tar.xz").unlink()
    with pytest.raises(DatasetError, match=r"structures\.tar\.xz"):
        list(read_site_archive(archived, {"site": "label"}))


def test_repeated_numbers_of_cryptic_pocket_get_an_insertion_code(tmp_path):
    (tmp_path / "1btp.pdb").write_text(atoms([183, 184, 184, 185], ["ALA", "GLY", "TYR", "SER"]))
    residues = clean(_load_structure(tmp_path / "1btp.pdb"))
    assert residues.res_id.tolist() == [183, 184, 184, 185] and residues.ins_code.tolist() == ["", "A", "", ""]


@pytest.mark.parametrize("name", SITES)
def test_tables_of_the_packages_have_the_labels_of_the_cards_and_a_file_for_each_protein(name):
    dataset = pg.datasets.create(name)
    package = dataset.card_path.parent
    rows = read_tsv(package / "repository_labels.tsv.gz")
    assert {row["path"] for row in rows} == {row["path"] for row in read_tsv(package / "repository_files.tsv")}
    for split, count in dataset.card.tasks[name].counts.items():
        if split.endswith("_no_homolog"):
            own = [r for r in rows if r["split"] == split[: -len("_no_homolog")] and r["has_homolog"] == "0"]
        else:
            own = [row for row in rows if row["split"] == split]
        labels = "".join(row[SITES[name]] for row in own)
        assert (len(own), len(labels)) == (count.proteins, count.residues)
        assert (labels.count("0") + labels.count("1"), labels.count("1")) == (count.labeled, count.per_class[0])


def test_known_leaks_name_splits_of_the_card():
    counts = {"proteins": 1, "residues": 2}
    leak = {"split": "test", "other": "train", "related": 1, "close": 0, "source": "none"}
    table = {"name": "x", "version": "1", "license": "", "citation": "", "description": ""}
    task = {"level": "node", "kind": "multilabel", "names": ["t"], "labels": "", "examples": ""}
    splits = {"rule": "", "train": counts, "test": counts, "known_leaks": [leak]}
    card = parse_card({**table, "splits": splits, "tasks": {"t": {**task, "splits": {"train": counts}}}})
    assert card.provenance.known_leaks[0].related == 1 and list(card.splits) == ["train", "test"]
    splits["known_leaks"] = [{**leak, "other": "dev"}]
    with pytest.raises(DatasetError, match="dev"):
        parse_card({**table, "splits": splits, "tasks": {"t": {**task, "splits": {"train": counts}}}})

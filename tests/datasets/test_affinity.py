"""Dataset ``affinity``: a tiny folder of the same layout, with ligands in the prepared files and cold folds."""

from __future__ import annotations

import csv
import gzip
import tarfile
from pathlib import Path

import pytest
from protgraph_datasets.affinity.dataset import Affinity
from protgraph_plugins.published import PreparedDataset, prepare_dataset, read_tsv, write_tsv
from typer.testing import CliRunner

from protgraph.cli.app import app
from protgraph.errors import DatasetError, OptionError
from protgraph.structure import clean, load_structure

STRUCTURES = Path(__file__).resolve().parents[2] / "datasets" / "pdb_core" / "structures"
ENTRIES = {"1crn": ("train", 0), "1ppe": ("val", 1), "1lcd": ("test", 2)}
CARD = """
name = "affinity"
version = "1"
license = "none"
citation = "none"
description = "none"
[splits]
rule = "given"
{splits}
[tasks.pK]
level = "graph"
kind = "regression"
names = ["pK"]
labels = "given"
examples = "all"
{counts}
"""


def write_source(
    folder: Path, *, without: str = "", entries: dict[str, tuple[str, int]] = ENTRIES, more_atoms: int = 0
) -> dict[str, int]:
    """Write a folder laid out as the source; return the residues of each entry.

    ``more_atoms``: of each ligand than of the one before.
    """
    residues_of = {}
    complexes = [
        ("file", "pdb", "pK", "kind", "split", "split_cold", "family30", "year", "uniprot", "ligand", "smiles")
    ]
    ligands = ["pdb\tatom\telement\tx\ty\tz\n"]
    with tarfile.open(folder / "pockets.tar.xz", "w:xz") as archive:
        for number, (entry, (split, fold)) in enumerate(entries.items()):
            file = f"{entry}.bcif"
            archive.add(STRUCTURES / file, file)
            residues = clean(load_structure(STRUCTURES / file))
            residues_of[entry] = len(residues)
            complexes.append(
                (file, entry, str(4.5 + number), "Kd", split, str(fold), str(number), "2000", "P", "X", "C")
            )
            x, y, z = residues.atom_pos[0].tolist()
            if entry != without:
                ligands += [
                    f"{entry}\tC{i}\tC\t{x + 2 + i:.2f}\t{y:.2f}\t{z:.2f}\n" for i in range(7 + more_atoms * number)
                ]
    write_tsv(folder / "complexes.tsv", complexes)
    (folder / "ligands.tsv.gz").write_bytes(gzip.compress("".join(ligands).encode()))
    return residues_of


def dataset_of(
    folder: Path, residues_of: dict[str, int], monkeypatch, *, entries: dict[str, tuple[str, int]] = ENTRIES
) -> Affinity:
    splits, counts = [], []
    for split in dict.fromkeys(split for split, _ in entries.values()):
        sizes = [residues_of[entry] for entry, (of_entry, _) in entries.items() if of_entry == split]
        count = f"proteins = {len(sizes)}, residues = {sum(sizes)}"
        splits.append(f"{split} = {{ {count} }}")
        counts.append(f"splits.{split} = {{ {count}, labeled = {len(sizes)} }}")
    (folder / "card.toml").write_text(CARD.format(splits="\n".join(splits), counts="\n".join(counts)))
    monkeypatch.setattr(Affinity, "card_path", folder / "card.toml")
    return Affinity(folder=str(folder / "prepared"))


def test_prepared_files_have_their_ligands_and_labels(tmp_path, monkeypatch):
    dataset = dataset_of(tmp_path, write_source(tmp_path), monkeypatch)
    assert prepare_dataset(dataset, tmp_path).proteins == 3
    for example in dataset.examples("pK"):
        residues = clean(load_structure(example.path), ligands=True)
        ligand = residues.ligands.select(residues.ligands.res_name == "UNL")
        assert len(ligand) == 1 and len(ligand.atom_pos) == 7
    rows = dataset.label_rows("pK")
    assert [rows.values[rows.rows[entry]].item() for entry in ENTRIES] == [4.5, 5.5, 6.5]


def test_cold_folds_divide_no_family(tmp_path, monkeypatch):
    dataset = dataset_of(tmp_path, write_source(tmp_path), monkeypatch)
    prepare_dataset(dataset, tmp_path)
    text = (dataset.folder / "cold_1.csv").read_text().splitlines()
    assert text == ["file,pK,split", "1crn.bcif,4.5,train", "1ppe.bcif,5.5,test", "1lcd.bcif,6.5,train"]
    assert read_tsv(dataset.folder / "origins.tsv")[0]["kind"] == "Kd"


def test_bench_scores_tables_of_predict_beside_floors(tmp_path, monkeypatch):
    entries = {"1crn": ("train", 0), "1ppe": ("train", 1), "1vii": ("train", 2), "1ubq": ("test", 3)}
    entries |= {"1bta": ("test", 4), "1y0m": ("test", 0)}
    residues_of = write_source(tmp_path, entries=entries, more_atoms=2)
    dataset = dataset_of(tmp_path, residues_of, monkeypatch, entries=entries)
    prepare_dataset(dataset, tmp_path)
    monkeypatch.setattr(Affinity, "__init__", lambda self: PreparedDataset.__init__(self, folder=str(dataset.folder)))
    table = tmp_path / "good.csv"
    lines = [f"elsewhere/{entry}.bcif,{4.5 + number + 0.1 * number**2}\n" for number, entry in enumerate(entries)]
    table.write_text("# model gign\nfile,pK\n" + "".join(lines))

    few = CliRunner().invoke(app, ["bench", "affinity", "--cold", str(table), "-o", str(tmp_path / "few.csv")])
    assert isinstance(few.exception, OptionError) and not (tmp_path / "few.csv").exists()
    arguments = ["bench", "affinity", "--core", str(table), *5 * ["--cold", str(table)]]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "scores.csv")])
    assert result.exit_code == 0, result.output
    with (tmp_path / "scores.csv").open() as file:
        rows = {(row["method"], row["test_set"]): row for row in csv.DictReader(file)}
    own = rows["good", "core"]
    errors = [0.1 * number**2 for number in (3, 4, 5)]
    assert float(own["rmse"]) == pytest.approx((sum(e * e for e in errors) / 3) ** 0.5, abs=1e-4)
    assert rows["buried area", "core"]["complexes"] == "3" and float(rows["buried area", "core"]["rmse"]) < 10
    assert float(rows["ligand heavy atoms", "core"]["rmse"]) == pytest.approx(0, abs=1e-4)  # pK grows with the atoms
    assert rows["models of the folds", "cold, all"]["complexes"] == "6"


def test_complex_without_ligand_atoms_is_refused(tmp_path, monkeypatch):
    dataset = dataset_of(tmp_path, write_source(tmp_path, without="1ppe"), monkeypatch)
    with pytest.raises(DatasetError, match="1ppe"):
        prepare_dataset(dataset, tmp_path)

"""Dataset model_quality: lDDT against its definition, checks of the table."""

from __future__ import annotations

import csv
import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from protgraph_datasets.model_quality.dataset import MODELS, ModelQuality, number_as_in_models, residue_lddt
from protgraph_plugins.published import SourceFolder, prepare_dataset

from protgraph.errors import DatasetError
from protgraph.structure import Residues, clean, load_structure
from tests.datasets.public_layouts import lay_out_eigenfold

ENTRY = Path(__file__).resolve().parents[2] / "datasets" / "pdb_core" / "structures" / "1crn.bcif"
THRESHOLDS = (0.5, 1.0, 2.0, 4.0)


@pytest.fixture(scope="module")
def native() -> Residues:
    return clean(load_structure(ENTRY))


def moved(residues: Residues, sigma: float) -> Residues:
    noise = np.random.default_rng(0).normal(scale=sigma, size=residues.pos.shape)
    return replace(residues, pos=(residues.pos + noise).astype(np.float32))


def plain_lddt(model: np.ndarray, native: np.ndarray) -> tuple[np.ndarray, float]:
    """Return lDDT per residue and of all distances by its definition."""
    true, found = (np.linalg.norm(x[:, None] - x[None], axis=-1) for x in (native.astype(float), model.astype(float)))
    near = (true < 15) & ~np.eye(len(true), dtype=bool)
    kept = np.mean([np.abs(true - found) <= t for t in THRESHOLDS], axis=0)
    return (kept * near).sum(1) / near.sum(1), float((kept * near).sum() / near.sum())


@pytest.mark.parametrize("sigma", [0.0, 0.7, 3.0])
def test_lddt_is_that_of_the_definition(native, sigma):
    model = moved(native, sigma)
    values, score = residue_lddt(model, native)
    expected, whole = plain_lddt(model.pos, native.pos)
    np.testing.assert_allclose(values, expected, atol=1e-3)
    assert score == pytest.approx(whole, abs=1e-3)
    assert (score == 1) == (sigma == 0)


def test_residues_that_the_native_structure_lacks_are_unknown_and_change_nothing(native):
    part = native.select(np.arange(len(native)) % 5 != 2)
    values, score = residue_lddt(moved(native, 1.0), part)
    assert np.isnan(values).tolist() == (np.arange(len(native)) % 5 == 2).tolist()
    expected, whole = plain_lddt(moved(native, 1.0).pos[~np.isnan(values)], part.pos)
    np.testing.assert_allclose(values[~np.isnan(values)], expected, atol=1e-3)
    assert score == pytest.approx(whole, abs=1e-3)


def lay_out_crambin(folder: Path, lddt: str) -> SourceFolder:
    """Lay out one target with five equal models like the repository EigenFold."""
    native, models = folder / "structures" / "1c" / "1crn.A.pdb", folder / MODELS.format("apo")
    native.parent.mkdir(parents=True)
    models.mkdir(parents=True)
    shutil.copy(ENTRY, native)
    rows = ["path,copy,elbo_Y,rmsd,gdt_ts,gdt_ha,tm,lddt"]
    for sample in range(5):
        shutil.copy(ENTRY, models / f"1crn.A.pdb.{sample}.pdb")
        rows.append(f"./structures/1c/1crn.A.pdb,{sample},0,0,1,1,1,{lddt}")
    (folder / f"{MODELS.format('apo')}.csv").write_text("\n".join(rows) + "\n")
    return SourceFolder(folder, folder / "scratch")


@pytest.fixture
def one_target(monkeypatch):
    rows = {
        "targets.tsv": [{"set": "apo", "target": "1crn.A", "group": "1crn.A", "split": "train"}],
        "numbering.tsv": [],
    }
    monkeypatch.setattr("protgraph_datasets.model_quality.dataset.read_tsv", lambda path: rows[path.name])


def test_a_folder_like_the_repository_is_read(tmp_path, one_target):
    proteins = list(ModelQuality(folder=str(tmp_path / "a")).convert(lay_out_crambin(tmp_path / "EigenFold", "1.0")))
    assert [protein.id for protein in proteins] == [f"apo_1crn.A.{sample}" for sample in range(5)]
    assert proteins[0].protein_labels == {"global_lddt": 1.0, "tm_score": 1.0, "gdt_ts": 1.0, "rmsd": 0.0}
    assert (proteins[0].residue_labels["model_quality"] == 1).all() and proteins[0].split == "train"


def test_a_table_with_another_score_is_refused(tmp_path, one_target):
    with pytest.raises(DatasetError, match=r"0\.8"):
        list(ModelQuality(folder=str(tmp_path / "a")).convert(lay_out_crambin(tmp_path / "EigenFold", "0.8")))


def test_native_residues_get_their_places_in_the_seqres(native, monkeypatch):
    """Runs of numbers are moved, also those with an insertion code."""
    codes = np.where(np.arange(len(native)) == 2, "A", "")
    source = replace(native, res_id=np.where(native.res_id <= 2, native.res_id, native.res_id - 1), ins_code=codes)
    header = ("target", "first_res_id", "last_res_id", "source_first_res_id", "source_ins_code")
    runs = [
        ("x", "11", "12", "1", ""),
        ("x", "13", "13", "2", "A"),
        ("x", "14", "56", "3", ""),
        ("y", "1", "9", "1", ""),
    ]
    table = [dict(zip(header, run, strict=True)) for run in runs]
    monkeypatch.setattr("protgraph_datasets.model_quality.dataset.read_tsv", lambda path: table)
    found = number_as_in_models(source, "x")
    assert found.res_id.tolist() == list(range(11, 57)) and not any(found.ins_code)


@pytest.mark.slow
def test_the_real_archives_give_the_counts_of_the_card(shared_data, tmp_path, monkeypatch):
    """The shared natives have the numbers of the models already."""
    monkeypatch.setattr("protgraph_datasets.model_quality.dataset.number_as_in_models", lambda native, target: native)
    source = lay_out_eigenfold(shared_data / "quality", tmp_path / "EigenFold")
    dataset = ModelQuality(folder=str(tmp_path / "a"))
    assert prepare_dataset(dataset, source).proteins == 1750  # raises where counts differ
    with gzip.open(shared_data / "quality" / "models.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    columns = {"tm_score": "tm", "gdt_ts": "gdt_ts", "rmsd": "rmsd", "global_lddt": "lddt_recomputed"}
    for task, column in columns.items():
        expected = {f"{row['set']}_{row['target']}.{row['sample']}": float(row[column]) for row in rows}
        labels = {example.id: float(dataset.labels(task, example).value) for example in dataset.examples(task)}
        assert labels == pytest.approx(expected, rel=1e-6, abs=1e-3 if task == "global_lddt" else 0)
        assert len(set(labels.values())) > 1000

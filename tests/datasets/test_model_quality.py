"""Dataset model_quality: lDDT against its definition, checks of the table."""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from protgraph_datasets.model_quality.dataset import ModelQuality, residue_lddt

from protgraph.data.datasets.preparation import prepare_dataset
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.errors import DatasetError
from protgraph.structure import Residues, clean, load_structure

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


def test_a_table_with_another_score_is_refused(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    content = ENTRY.read_bytes()
    for name, member in (("models", "models/apo/1crn.A.0.bcif"), ("natives", "natives/1crn.A.bcif")):
        with tarfile.open(source / f"{name}.tar.xz", "w:xz") as tar:
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    columns = ["set", "target", "native", "file", "sample", "lddt_recomputed", "tm", "gdt_ts", "rmsd", "group", "split"]
    for score, is_right in (("1.0", True), ("0.9", False)):
        row = ["apo", "1crn.A", "1crn.A.bcif", "apo/1crn.A.0.bcif", "0", score, "1", "1", "0", "1crn.A", "train"]
        with gzip.open(source / "models.tsv.gz", "wt") as file:
            file.write("\t".join(columns) + "\n" + "\t".join(row) + "\n")
        proteins = ModelQuality(folder=str(tmp_path / "a")).convert(SourceFolder(source, tmp_path / "scratch"))
        if is_right:
            (protein,) = proteins
            assert protein.id == "apo_1crn.A.0" and protein.protein_labels["global_lddt"] == 1.0
            assert (protein.residue_labels["model_quality"] == 1).all()
        else:
            with pytest.raises(DatasetError, match=r"0\.9"):
                list(proteins)


@pytest.mark.slow
def test_the_real_archives_give_the_counts_of_the_card(shared_data, tmp_path):
    dataset = ModelQuality(folder=str(tmp_path / "a"))
    assert prepare_dataset(dataset, shared_data / "quality").proteins == 1750  # raises where counts or lDDT differ
    with gzip.open(shared_data / "quality" / "models.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for task, column in (("tm_score", "tm"), ("gdt_ts", "gdt_ts"), ("rmsd", "rmsd")):
        expected = {f"{row['set']}_{row['target']}.{row['sample']}": float(row[column]) for row in rows}
        labels = {example.id: float(dataset.labels(task, example).value) for example in dataset.examples(task)}
        assert labels == pytest.approx(expected, rel=1e-6) and len(set(labels.values())) > 1000

"""The recipe for AlphaFold models: what it states about pLDDT, and its models on an AlphaFold 2 model."""

from __future__ import annotations

import csv
import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest

import protgraph as pg
from tests.docs.predicted_files import write_predicted_file

MODELS = ("dna_site", "sugar_site", "ppi_site", "ligand_site")
TITLE = "ALPHAFOLD MONOMER V2.0 PREDICTION FOR POLYUBIQUITIN-C (P0CG48)"


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_models_do_not_read_plddt(name, structures_dir, tmp_path):
    values = []
    for file, tail in (("a.pdb", ()), ("b.pdb", (20.0, 30.0, 40.0))):
        write_predicted_file(tmp_path / file, structures_dir / "1ubq.bcif", tail=tail, title=TITLE)
        predictions = pg.predict(name, tmp_path / file)
        values.append(predictions.column(predictions.columns[-2]))
    assert np.array_equal(*values) and np.ptp(values[0]) > 0


def test_only_files_of_alphafold_db_declare_plddt(structures_dir, tmp_path):
    for title, declared in ((TITLE, True), ("MODEL OF ANOTHER PROGRAM", False)):
        write_predicted_file(tmp_path / "a.pdb", structures_dir / "1ubq.bcif", tail=(50.0,), title=title)
        residues = pg.clean(pg.load_structure(tmp_path / "a.pdb"))
        assert residues.predicted is declared
        assert residues.b_factor[0] == 95 and residues.b_factor[-1] == 50


@pytest.fixture
def alphafold_model(shared_data, tmp_path) -> tuple[Path, np.ndarray]:
    """Return an AlphaFold 2 model of the test split of ``dna_site`` (GraphSite), and the labels of its residues."""
    source, name = shared_data / "sites" / "dna_site", "5ejk_A.bcif"
    with tarfile.open(source / "structures.tar.xz") as archive:
        member = next(m for m in archive if Path(m.name).name == name)
        (tmp_path / name).write_bytes(archive.extractfile(member).read())
    with gzip.open(source / "labels.tsv.gz", "rt", encoding="utf-8") as file:
        labels = [int(row["label"]) for row in csv.DictReader(file, delimiter="\t") if row["file"] == name]
    return tmp_path / name, np.array(labels)


@pytest.mark.slow
def test_sites_of_an_alphafold_model_are_ranked_first(alphafold_model):
    path, labels = alphafold_model
    predictions = pg.predict("dna_site", path)
    p = predictions.column("p_dna_site")
    positive, negative = p[labels == 1], p[labels == 0]
    assert len(positive) == 47 and not predictions.warnings
    assert (positive[:, None] > negative).mean() > 0.85  # AUROC


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS[1:])
def test_models_of_experimental_structures_read_an_alphafold_model(name, alphafold_model):
    path, labels = alphafold_model
    predictions = pg.predict(name, path)
    assert len(predictions) == len(labels) and not predictions.failures
    assert np.isfinite(predictions.column(predictions.columns[-2])).all()

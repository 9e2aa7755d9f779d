"""ScanNet: published weights against the output of its own program, symmetry, and missing or damaged weights.

``expected.tsv``: probabilities of the program (commit 7685549, without alignment, one chain at a time, TensorFlow
2.15) for chains of the folder ``formats`` of the shared data.
"""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_plugins.scannet.weights import FOLDER_VARIABLE

import protgraph as pg
from protgraph.errors import CheckpointError, MissingExtraError, OptionError
from protgraph.model import pretrained

EXPECTED = list(
    csv.DictReader((Path(__file__).parent / "expected.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t")
)


@pytest.fixture
def published(monkeypatch):
    """Skip without the weights, which are in the folder ``models`` of a copy of the repository."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    if not (folder and Path(folder, "ScanNet_PPI_noMSA.h5").is_file()):
        pytest.skip(f"{FOLDER_VARIABLE} does not name the folder 'models' of github.com/jertubiana/ScanNet")
    pytest.importorskip("h5py", reason="weights of ScanNet are HDF5 files: pip install h5py")


def predict(model, residues):
    return model(pg.collate([model.plan.precompute(residues)]))["logits"].detach().sigmoid().numpy()[:, 0]


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: f"{row['variant']}-{row['entry']}")
def test_probabilities_equal_those_of_the_program(row, published, shared_data):
    residues = pg.clean(pg.load_structure(shared_data / "formats" / f"{row['entry']}.pdb")).chains(row["chain"])
    found = predict(pretrained(f"scannet.{row['variant']}"), residues)
    expected = np.array(row["probabilities"].split(), float)
    assert expected.std() > 0.01
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_probabilities_do_not_depend_on_the_orientation(published, shared_data):
    residues = pg.clean(pg.load_structure(shared_data / "formats" / "1aki.pdb"))
    rotation = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))[0].numpy()
    rotation *= np.linalg.det(rotation)
    moved = {name: getattr(residues, name) @ rotation.T + 5 for name in ("pos", "backbone", "atom_pos")}
    model = pretrained("scannet.ppi")
    np.testing.assert_allclose(predict(model, replace(residues, **moved)), predict(model, residues), atol=1e-4)


def test_a_model_with_published_weights_is_a_checkpoint(published):
    checkpoint = pg.load_checkpoint("scannet.ppi")
    assert (checkpoint.task, checkpoint.reads) == ("protein_interface", "one chain")


@pytest.mark.parametrize("variant", ["ppi", "epitope"])
def test_outputs_of_the_networks_are_no_embeddings(variant, published, structures_dir):
    with pytest.raises(OptionError, match=f"predict scannet.{variant}"):
        pg.embed(f"scannet.{variant}", structures_dir / "1ubq.bcif", device="cpu")


def test_missing_weights_name_the_repository_and_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(MissingExtraError, match=FOLDER_VARIABLE):
        pretrained("scannet.epitope")
    with pytest.raises(MissingExtraError, match="git clone"):
        pg.load_checkpoint("scannet.ppi")


def test_a_changed_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "ScanNet_PPI_noMSA.h5").write_bytes(b"other")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(CheckpointError, match="differ"):
        pretrained("scannet.ppi")


def test_a_file_that_is_no_network_is_refused(tmp_path):
    pytest.importorskip("h5py", reason="weights of ScanNet are HDF5 files: pip install h5py")
    (tmp_path / "other.h5").write_bytes(b"other")
    with pytest.raises(CheckpointError):
        pretrained("scannet.ppi", file=tmp_path / "other.h5")

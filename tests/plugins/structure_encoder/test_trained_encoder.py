"""Vectors of the trained structure_encoder: invariance, batches, missing side chains, and inputs that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from biotite.structure import AtomArray
from biotite.structure.io import pdbx
from scipy.spatial.transform import Rotation

import protgraph as pg
from protgraph.structure import load_structure

WIDTH = 192
BACKBONE = ["N", "CA", "C", "O"]


@pytest.fixture(scope="module")
def encoder():
    return pg.trained_models.get("structure_encoder").checkpoint()


@pytest.fixture(scope="module")
def crambin(structures_dir) -> AtomArray:
    return load_structure(structures_dir / "1crn.bcif").atoms


@pytest.fixture(scope="module")
def vectors(encoder, structures_dir) -> np.ndarray:
    """Return the vectors ``(46, 192)`` of crambin."""
    return pg.embed(encoder, structures_dir / "1crn.bcif", device="cpu").node


@pytest.fixture
def vectors_of(encoder, tmp_path) -> Callable[[AtomArray], np.ndarray]:
    """Return a function from atoms to the vectors of their residues."""
    return lambda atoms: pg.embed(encoder, write(atoms, tmp_path / "1crn.bcif"), device="cpu").node


def write(atoms: AtomArray, path: Path) -> Path:
    file = pdbx.BinaryCIFFile()
    pdbx.set_structure(file, atoms, data_block="crambin")
    file.write(path)
    return path


def backbone_of(atoms: AtomArray) -> AtomArray:
    return atoms[np.isin(atoms.atom_name, BACKBONE)]


def largest_change(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest difference relative to the largest value."""
    return float(np.abs(first - second).max() / np.abs(first).max())


def test_crambin_has_a_vector_per_residue_and_their_mean(encoder, vectors, structures_dir):
    embeddings = pg.embed(encoder, structures_dir / "1crn.bcif", device="cpu")
    assert vectors.shape == (46, WIDTH) and np.isfinite(vectors).all() and vectors.std(0).min() > 0
    np.testing.assert_allclose(embeddings.protein[0], vectors.mean(0), atol=1e-5)


def test_vectors_do_not_depend_on_the_pose(vectors_of, crambin, vectors):
    moved = crambin.copy()
    rotated = Rotation.random(random_state=1).apply(crambin.coord)
    moved.coord = (rotated + np.array([5.0, -8.0, 3.0])).astype(np.float32)
    assert largest_change(vectors, vectors_of(moved)) <= 1e-5


def test_a_mirror_image_has_other_vectors(vectors_of, crambin, vectors):
    mirrored = crambin.copy()
    mirrored.coord = crambin.coord * np.float32([1, 1, -1])
    assert largest_change(vectors, vectors_of(mirrored)) > 0.01


def test_vectors_do_not_depend_on_the_batch(encoder, vectors, structures_dir):
    files = [structures_dir / f"{name}.bcif" for name in ("1ubq", "1crn", "1ahs")]
    embeddings = pg.embed(encoder, files, device="cpu")
    first, end = embeddings.ptr[1:3]
    assert end - first == 46
    assert largest_change(vectors, embeddings.node[first:end]) <= 1e-5


def test_side_chains_are_not_read(vectors_of, crambin, vectors):
    assert np.array_equal(vectors, vectors_of(backbone_of(crambin)))


def test_residue_types_are_read(vectors_of, crambin, vectors):
    changed = backbone_of(crambin).copy()
    changed.res_name[changed.res_id == 20] = "TRP"
    assert np.abs(vectors_of(changed) - vectors).max(1)[19] > 0.01


def test_a_sequence_is_refused(encoder, tmp_path):
    path = tmp_path / "crambin.fasta"
    path.write_text(">crambin\nTTCCPSIVARSNFNVCRLPGTPEALCATYTGCIIIPGATCPGDYAN\n")
    (failure,) = pg.embed(encoder, path, device="cpu").failures
    assert failure.error_type == "MissingCoordinatesError"


def test_files_without_ca_and_nucleic_acids_are_refused(encoder, crambin, tmp_path):
    without_ca = write(crambin[crambin.atom_name != "CA"], tmp_path / "without_ca.bcif")
    rna = backbone_of(crambin).copy()
    rna.res_name[:] = "G"
    embeddings = pg.embed(encoder, [without_ca, write(rna, tmp_path / "rna.bcif")], device="cpu")
    assert len(embeddings.names) == 0
    assert [failure.error_type for failure in embeddings.failures] == ["EmptyStructureError"] * 2

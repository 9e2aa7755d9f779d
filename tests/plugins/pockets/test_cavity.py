"""Cavity descriptors: against plain loops, under motions, and where residues touch no cavity."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from biotite.structure.io import pdb, pdbx
from protgraph_plugins.pockets.cavity import COLUMNS, cavity_descriptors, touched_volume, volume_around
from protgraph_plugins.pockets.spheres import alpha_spheres
from scipy.spatial.transform import Rotation

import protgraph as pg


@pytest.fixture(scope="module")
def protein(proteins) -> pg.Residues:
    return next(r for r in proteins if 60 <= len(r) <= 200)


@pytest.fixture(scope="module")
def spheres(protein):
    return alpha_spheres(protein.atom_pos)


def _fade(x: float, low: float, high: float) -> float:
    t = min(max((x - low) / (high - low), 0.0), 1.0)
    return 1 - (3 * t**2 - 2 * t**3)


def test_touched_volume_is_that_of_spheres_at_the_nearest_atom(protein, spheres):
    touched = touched_volume(protein, spheres).toarray()
    assert (touched > 0).any(1).mean() > 0.5
    for residue in range(0, len(protein), 7):
        atoms = protein.atom_pos[protein.atom_residue == residue].astype(np.float64)
        for sphere in range(len(spheres.radius)):
            gap = np.linalg.norm(atoms - spheres.center[sphere], axis=1).min() - spheres.radius[sphere]
            expected = spheres.volume[sphere] * _fade(gap, 0.3, 1.8)
            assert touched[residue, sphere] == pytest.approx(expected, abs=1e-9)


def test_volume_around_is_a_weighted_sum_over_near_spheres(spheres):
    around = volume_around(spheres, (5.0, 8.0))
    for sphere in range(0, len(spheres.radius), 11):
        distance = np.linalg.norm(spheres.center - spheres.center[sphere], axis=1)
        for reach, volumes in zip((5.0, 8.0), around, strict=True):
            weight = np.maximum(1 - (distance / reach) ** 2, 0) ** 3
            assert volumes[sphere] == pytest.approx((spheres.volume * weight).sum())


def test_columns_are_means_and_maxima_of_touched_spheres(protein, spheres):
    column = dict(zip(COLUMNS, cavity_descriptors(protein, spheres).T, strict=True))
    touched = touched_volume(protein, spheres).toarray()
    around = np.log1p(volume_around(spheres, [8.0])[0])
    for residue in range(len(protein)):
        volume = touched[residue]
        assert column["volume"][residue] == pytest.approx(np.log1p(volume.sum()))
        assert column["depth"][residue] == pytest.approx((volume * spheres.depth).sum() / (volume.sum() + 1))
        largest = (around * np.minimum(volume / 2, 1)).max()
        assert column["around_8_max"][residue] == pytest.approx(largest)
    bands = [np.expm1(column[name]) for name in COLUMNS[:3]]
    assert np.sum(bands, axis=0) == pytest.approx(np.expm1(column["volume"]), rel=1e-6)
    assert column["around_8_relative"].max() == pytest.approx(1, abs=0.02)


def test_values_do_not_depend_on_orientation_or_order_of_atoms(protein, spheres):
    reference = cavity_descriptors(protein, spheres)
    order = np.random.default_rng(0).permutation(len(protein.atom_pos))
    order = order[np.argsort(protein.atom_residue[order], kind="stable")]
    rotation = Rotation.random(random_state=3).as_matrix()
    moved = replace(protein, atom_pos=protein.atom_pos[order].astype(np.float64) @ rotation.T + 50)
    assert np.abs(cavity_descriptors(moved, alpha_spheres(moved.atom_pos)) - reference).max() < 1e-6


def test_without_cavities_all_rows_are_zero(protein):
    flat = replace(protein, atom_pos=protein.atom_pos * np.float32([1, 1, 0]))
    descriptors = cavity_descriptors(flat, alpha_spheres(flat.atom_pos))
    assert descriptors.shape == (len(protein), len(COLUMNS))
    assert not descriptors.any()


def test_water_ligands_and_hydrogens_change_nothing(structures_dir, tmp_path):
    stored = pdbx.BinaryCIFFile.read(structures_dir / "1ubq.bcif")
    protein = pdbx.get_structure(stored, model=1, use_author_fields=True)
    other = protein[:12].copy()
    other.hetero[:] = True
    other.res_name[:9], other.res_id[:9] = "LIG", 900
    other.res_name[9:], other.atom_name[9:], other.element[9:], other.res_id[9:] = "HOH", "O", "O", [901, 902, 903]
    other.coord += np.float32(3.0)
    hydrogens = protein[::3].copy()
    hydrogens.element[:] = "H"
    hydrogens.atom_name[:] = "HX"
    hydrogens.coord += np.float32(0.6)
    cavities = []
    for name, content in {"bare": protein, "full": protein + hydrogens + other}.items():
        file = pdb.PDBFile()
        order = np.argsort(content.res_id, kind="stable")
        file.set_structure(content[order])
        file.write(tmp_path / f"{name}.pdb")
        cavities.append(pg.build_graph(pg.load_structure(tmp_path / f"{name}.pdb"), ["cavity"]).cavity)
    assert cavities[0].abs().max() > 1
    assert torch.equal(*cavities)


def test_three_hundred_residues_take_less_than_a_third_of_a_second(proteins):
    protein = max(proteins, key=len)

    def seconds() -> float:
        start = time.process_time()
        cavity_descriptors(protein, alpha_spheres(protein.atom_pos))
        return time.process_time() - start

    assert min(seconds() for _ in range(3)) < max(0.3, 0.3 * len(protein) / 300)

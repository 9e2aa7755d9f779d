"""Compacted fragments keep their shape and a minimum distance, and the box stays small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.descriptors.ca_trace import p_sea
from protgraph.structure.descriptors.sasa import residue_sasa
from protgraph.structure.neighbors.compact_fragments import compact_fragments


@pytest.fixture(scope="module")
def crambin(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1crn.bcif"))


def moved_residue(residues: Residues, row: int, shift: list[float]) -> Residues:
    """Return the protein with one residue at another place."""
    own = np.arange(len(residues)) == row
    moved = {"pos": residues.pos + own[:, None] * shift, "backbone": residues.backbone + own[:, None, None] * shift}
    return replace(residues, **moved, atom_pos=residues.atom_pos + own[residues.atom_residue][:, None] * shift)


def test_shapes_and_gaps_are_kept():
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0], [4000, -9000, 70], [-80_000, 5, 90_000]])
    pos = (centers[:, None] + rng.uniform(0, 6, (3, 40, 3))).reshape(-1, 3)
    compact = compact_fragments(pos, gap=8.0).reshape(3, 40, 3)
    for before, after in zip(pos.reshape(3, 40, 3), compact, strict=True):
        assert np.allclose(after - after[0], before - before[0], atol=1e-9)
    apart = np.linalg.norm(compact[:, None, :, None] - compact[None, :, None], axis=-1)
    assert all(apart[a, b].min() >= 8 for a in range(3) for b in range(3) if a != b)
    assert compact.max() < 3 * 14


def test_a_distant_atom_does_not_exhaust_memory(crambin):
    end = len(crambin) - 1
    odd = moved_residue(crambin, end, [9e4, -9e4, 9e4])
    rest = crambin.select(np.arange(len(crambin)) < end)
    error = residue_sasa(odd)[:end] - residue_sasa(rest)
    assert np.abs(error).max() < 4 and np.sqrt((error**2).mean()) < 1  # another orientation of equal accuracy
    assert (p_sea(odd)[:end] == p_sea(rest)).all()


def test_one_point_moves_to_the_origin_and_no_points_stay_none():
    assert compact_fragments(np.array([[7.0, 8, 9]]), 5.0).tolist() == [[0, 0, 0]]
    assert compact_fragments(np.zeros((0, 3)), 5.0).shape == (0, 3)

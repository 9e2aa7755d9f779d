"""Test the scores and the perturbations of ``tools/model_quality_scores.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import protgraph as pg
from protgraph.structure.compare import compute_lddt

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("model_quality_scores", ROOT / "tools" / "model_quality_scores.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def test_scores_of_a_shifted_line_are_exact():
    true = np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])
    row = tool.score_row(true + 0.05, true, ["a"] * 3 + ["b"] * 3)
    assert row == pytest.approx([1, 1, 1, 1, 0.05])
    reversed_within = np.array([0.3, 0.2, 0.1, 0.9, 0.8, 0.7])
    assert tool.score_row(reversed_within, true, list("aaabbb"))[2:4] == pytest.approx([-1, -1])


def test_smooth_displacements_have_their_size_and_agree_between_neighbors():
    field = tool.smooth_field(200, 4.0, np.random.default_rng(0))
    assert np.sqrt((field**2).sum(1).mean()) == pytest.approx(4)
    assert np.linalg.norm(np.diff(field, axis=0), axis=1).max() < 2


def test_perturbations_change_what_their_name_states(structures_dir):
    native = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    before = native.pos.copy()
    made = dict(tool.perturbed(native, np.random.default_rng(0)))
    assert np.array_equal(native.pos, before) and len(made) == 10
    assert made["native"] is native
    shuffled = made["residue types shuffled"]
    assert np.array_equal(shuffled.pos, before) and not np.array_equal(shuffled.aatype, native.aatype)
    assert sorted(shuffled.aatype) == sorted(native.aatype)
    assert sorted(map(tuple, made["positions shuffled"].pos.round(2))) == sorted(map(tuple, before.round(2)))
    lddt = [compute_lddt(made[f"noise of {noise} Å on each CA"].pos, before).score for noise in (0.5, 1, 2, 4)]
    assert lddt == sorted(lddt, reverse=True) and lddt[0] < 0.95

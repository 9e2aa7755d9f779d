"""Attention statistics against closed forms, scipy, and an attention map that equals the contact map."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.view.attention import (
    apc,
    contact_map,
    report_heads,
    residue_attention,
    symmetrized,
    write_heads,
)
from scipy.spatial.distance import cdist
from scipy.stats import pearsonr, spearmanr

import protgraph as pg
from protgraph.errors import OptionError
from protgraph.model import AttentionMap


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def drawn(ubiquitin):
    weights = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(len(ubiquitin)), (3, len(ubiquitin))))
    return AttentionMap(weights)


def upper_pairs(residues, separation):
    i, j = np.triu_indices(len(residues), 1)
    far = (residues.seq_pos[j] - residues.seq_pos[i] >= separation) | (residues.chain[i] != residues.chain[j])
    return i[far], j[far]


def test_the_correction_in_closed_form():
    # S = [[0, a], [a, 0]]: rows and columns sum to a, all to 2a, so every entry loses a/2.
    assert apc(np.array([[0.0, 4.0], [4.0, 0.0]])).tolist() == [[-2.0, 2.0], [2.0, -2.0]]
    assert symmetrized(np.array([[1.0, 2.0], [5.0, 3.0]])).tolist() == [[2.0, 7.0], [7.0, 6.0]]


def test_the_correction_removes_row_and_column_sums():
    rng = np.random.default_rng(1)
    a, b = rng.random(9), rng.random(9)
    assert np.abs(apc(np.outer(a, b))).max() < 1e-15
    s = symmetrized(rng.random((4, 9, 9)))
    f = apc(s)
    assert np.abs(f.sum(-1)).max() < 1e-13 and np.abs(f - np.swapaxes(f, 1, 2)).max() < 1e-15
    for k in range(4):
        for i, j in ((0, 3), (5, 5)):
            assert f[k, i, j] == pytest.approx(s[k, i, j] - s[k, i].sum() * s[k, :, j].sum() / s[k].sum(), abs=1e-14)
    assert (apc(np.zeros((2, 2))) == 0).all()


def test_contacts_are_cb_distances_below_8_angstrom(ubiquitin):
    place = {int(r): ubiquitin.atom_pos[(ubiquitin.atom_residue == r) & (ubiquitin.atom_name == "CB")][0]
             for r in ubiquitin.atom_residue[ubiquitin.atom_name == "CB"]}  # fmt: skip
    own = np.array(sorted(place))
    near = cdist(*[np.stack([place[r] for r in own])] * 2) < 8.0
    np.fill_diagonal(near, False)
    found = contact_map(ubiquitin)
    assert (found[np.ix_(own, own)] == near).all() and (found == found.T).all()
    glycine = set(range(len(ubiquitin))) - set(own.tolist())
    assert {str(ubiquitin.res_name[g]) for g in glycine} == {"GLY"} and found[sorted(glycine)].any()


def test_correlations_equal_scipy(ubiquitin, drawn):
    for report, a in zip(report_heads({"x": drawn}, ubiquitin), drawn.weights.numpy(), strict=True):
        pairs, near = upper_pairs(ubiquitin, 6), upper_pairs(ubiquitin, 1)
        s = a + a.T
        assert report.r_contact == pytest.approx(pearsonr(apc(s)[pairs], contact_map(ubiquitin)[pairs])[0], abs=1e-12)
        apart = ubiquitin.seq_pos[near[1]] - ubiquitin.seq_pos[near[0]]
        assert report.r_separation == pytest.approx(spearmanr(s[near], apart)[0], abs=1e-12)
        assert report.pairs == len(pairs[0]) == 70 * 71 // 2
        distance = np.abs(ubiquitin.seq_pos[:, None] - ubiquitin.seq_pos)
        assert report.mean_separation == pytest.approx((a * distance).sum() / len(a), rel=1e-12)
        best = np.argsort(-apc(s)[pairs])[: len(ubiquitin)]
        assert report.p_at_l == contact_map(ubiquitin)[pairs][best].mean()
        assert report.prevalence == contact_map(ubiquitin)[pairs].mean()


def test_attention_equal_to_the_contact_map_has_correlation_1(ubiquitin):
    # The diagonal holds the remaining weight of residues with few contacts: the correction subtracts a constant.
    touching = contact_map(ubiquitin).astype(float)
    planted = (touching + np.diag(touching.sum(1).max() - touching.sum(1))) / touching.sum(1).max()
    (report,) = report_heads({"planted": AttentionMap(torch.from_numpy(planted)[None])}, ubiquitin)
    assert planted.sum(1) == pytest.approx(1.0) and report.r_contact == pytest.approx(1.0, abs=1e-12)
    assert report.p_at_l == report.p_at_l5 == 1.0


def test_near_attention_has_a_negative_correlation_with_separation(ubiquitin):
    apart = np.abs(ubiquitin.seq_pos[:, None] - ubiquitin.seq_pos)
    (report,) = report_heads({"near": AttentionMap(torch.from_numpy(0.5**apart)[None])}, ubiquitin)
    assert report.r_separation == pytest.approx(-1.0, abs=1e-12) and report.mean_separation < 2


def test_undefined_values_are_nan(ubiquitin, drawn):
    uniform = AttentionMap(torch.full((1, 76, 76), 1 / 76))
    (report,) = report_heads({"x": uniform}, ubiquitin)
    assert np.isnan([report.r_contact, report.r_separation]).all()
    nowhere = {name: np.full_like(getattr(ubiquitin, name), np.nan) for name in ("pos", "backbone")}
    alone = replace(ubiquitin, **nowhere, atom_name=np.full(len(ubiquitin.atom_name), "CA"))
    report = report_heads({"x": drawn}, alone)[0]
    assert np.isnan([report.r_contact, report.p_at_l, report.prevalence]).all() and np.isfinite(report.r_separation)
    with pytest.raises(OptionError, match="separation=0"):
        report_heads({"x": drawn}, ubiquitin, separation=0)


def test_invisible_pairs_are_not_counted(ubiquitin, drawn):
    visible = torch.zeros(76, 76, dtype=torch.bool)
    visible[:20, 30:50] = True
    report = report_heads({"x": replace(drawn, visible=visible)}, ubiquitin)[0]
    assert report.pairs == 20 * 20
    corrected = apc(symmetrized(drawn.weights[0].numpy()))[:20, 30:50].ravel()
    want = pearsonr(corrected, contact_map(ubiquitin)[:20, 30:50].ravel())[0]
    assert report.r_contact == pytest.approx(want, abs=1e-12)


def test_attention_of_atoms_is_summed_over_keys_and_averaged_over_queries():
    # Two residues of two and one atoms, and a ligand.
    weights = torch.tensor([[[0.1, 0.2, 0.6, 0.1], [0.3, 0.1, 0.4, 0.2], [0.5, 0.2, 0.2, 0.1], [1.0, 0.0, 0.0, 0.0]]])
    visible = torch.tensor([[1, 1, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]], dtype=torch.bool)
    found = residue_attention(AttentionMap(weights, visible), torch.tensor([0, 0, 1, 2]), 2)
    assert torch.allclose(found.weights[0], torch.tensor([[0.35, 0.5], [0.7, 0.2]]))
    assert found.visible.tolist() == [[True, False], [True, True]]


def test_the_table_has_a_row_per_head(ubiquitin, drawn, tmp_path):
    path = write_heads(report_heads({"a": drawn, "b": drawn}, ubiquitin), tmp_path / "new" / "heads.csv")
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    assert [(r["layer"], r["head"]) for r in rows] == [(layer, str(h)) for layer in "ab" for h in range(3)]
    assert float(rows[0]["p_at_l"]) >= 0

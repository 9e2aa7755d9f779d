"""Contacts from coordinates and the precision of predicted ones, against plain double loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.task import ResiduePairs, SplitPredictions
from protgraph.task.contact_prediction import CONTACT, PRECISIONS, beta_carbons, contact_labels, precision, top_rows
from protgraph.task.predictions import OTHER_CHAIN
from protgraph.testing.protein_fixtures import make_protein

PROTEINS = (make_protein((40, 12), seed=3), make_protein((30,), seed=4))


def graph_of(residues) -> ProteinGraph:
    return ProteinGraph(
        y=torch.from_numpy(beta_carbons(residues)),
        chain=torch.from_numpy(residues.chain_number),
        seq_pos=torch.from_numpy(residues.seq_pos),
        num_nodes=len(residues),
        y_level="node",
    )


def test_cb_is_the_atom_or_where_ideal_geometry_puts_it():
    residues = PROTEINS[0]
    place, ideal = beta_carbons(residues)[:, 0], virtual_cb(residues.backbone)
    own = {int(r): x for r, x, name in zip(residues.atom_residue, residues.atom_pos, residues.atom_name, strict=True)
           if name == "CB"}  # fmt: skip
    assert 0 < len(own) < len(residues)
    for i in range(len(residues)):
        np.testing.assert_allclose(place[i], own.get(i, ideal[i]), atol=1e-5)
    backbone = residues.backbone.copy()
    backbone[:, 0] = np.nan
    bare = replace(residues, backbone=backbone)
    assert np.isnan(beta_carbons(bare)[:, 0, 0]).tolist() == [i not in own for i in range(len(residues))]


def test_labels_are_those_of_a_double_loop():
    lost = PROTEINS[0].backbone.copy()
    lost[5, 0] = np.nan
    first = replace(PROTEINS[0], backbone=lost).hide({"sidechain"})
    proteins = (first, PROTEINS[1])
    _, y = contact_labels(collate([graph_of(r) for r in proteins]))
    expected = []
    for r in proteins:
        cb = beta_carbons(r)[:, 0]
        for i in range(len(r)):
            for j in range(len(r)):
                near = r.chain[i] == r.chain[j] and abs(r.seq_pos[i] - r.seq_pos[j]) < 6
                unknown = near or np.isnan(cb[[i, j]]).any()
                expected.append(math.nan if unknown else float(math.dist(cb[i], cb[j]) < 8.0))
    np.testing.assert_array_equal(y[:, 0].numpy(), expected)
    assert {0.0, 1.0} <= set(y[:, 0].tolist())


def test_labels_do_not_depend_on_where_the_protein_is():
    graph = graph_of(PROTEINS[0])
    far = graph.clone()
    far.y = far.y + 1000
    torch.testing.assert_close(contact_labels(graph)[1], contact_labels(far)[1], equal_nan=True)


def made_outcome(*, ties: bool = False) -> SplitPredictions:
    """Three proteins of random predictions, the second without any label, the third too short for P@L/5."""
    rng = np.random.default_rng(8)
    rows = []
    for protein, size in enumerate((37, 20, 9)):
        for i in range(size):
            for j in range(i + 1, size):
                apart = OTHER_CHAIN if protein == 0 and i < 5 <= j else j - i
                y = math.nan if apart < 6 or protein == 1 or rng.random() < 0.1 else float(rng.random() < 0.2)
                rows.append((rng.integers(4) if ties else rng.normal(), y, protein, apart))
    logits, y, protein, apart = map(np.array, zip(*rows, strict=True))
    pairs = ResiduePairs(torch.from_numpy(protein), torch.from_numpy(apart.astype(np.int64)), torch.tensor([37, 20, 9]))
    return SplitPredictions(
        torch.from_numpy(logits.astype(np.float32))[:, None], torch.from_numpy(y)[:, None].float(), pairs=pairs
    )


def slow_precision(o: SplitPredictions, part: int, separation: int) -> float:
    """By sorting lists."""
    values = []
    for p, size in enumerate(o.pairs.sizes.tolist()):
        rows = []
        for k in range(len(o.y)):
            known = not math.isnan(float(o.y[k]))
            if int(o.pairs.protein[k]) == p and int(o.pairs.separation[k]) >= separation and known:
                rows.append((-float(o.logits[k]), float(o.y[k])))
        top = sorted(rows, key=lambda row: row[0])[: max(size // part, 1)]
        if top:
            values.append(sum(y for _, y in top) / len(top))
    return sum(values) / len(values) if values else math.nan


@pytest.mark.parametrize("separation", [6, 12, 24, 10**6])
@pytest.mark.parametrize("part", [1, 2, 5])
def test_precision_is_that_of_a_sorted_list(part, separation):
    o = made_outcome()
    assert precision(o, divisor=part, separation=separation) == pytest.approx(slow_precision(o, part, separation))


def test_ties_count_with_their_expected_precision():
    o = made_outcome(ties=True)
    generator, shuffled = torch.Generator().manual_seed(0), []
    for _ in range(200):
        noise = 1e-3 * torch.rand(o.logits.shape, generator=generator)
        shuffled.append(precision(replace(o, logits=o.logits + noise), divisor=2, separation=6))
    assert precision(o, divisor=2, separation=6) == pytest.approx(
        np.mean(shuffled), abs=5 * np.std(shuffled) / 200**0.5
    )
    flat = replace(o, logits=torch.zeros_like(o.logits))
    per_protein = [o.y[(o.pairs.protein == p) & (o.y[:, 0] >= 0)].mean().item() for p in (0, 2)]
    assert precision(flat, divisor=5, separation=6) == pytest.approx(np.mean(per_protein), rel=1e-6)


def test_precision_without_pairs_is_nan():
    assert math.isnan(precision(made_outcome(), divisor=1, separation=OTHER_CHAIN + 1))


@pytest.mark.parametrize("ties", [False, True])
def test_top_rows_keep_every_metric(ties):
    whole = made_outcome(ties=ties)
    kept = []
    for p in range(3):
        rows = (whole.pairs.protein == p).nonzero().flatten()
        pairs = ResiduePairs(torch.zeros_like(rows), whole.pairs.separation[rows], whole.pairs.sizes[p : p + 1])
        kept.append(rows[top_rows(SplitPredictions(whole.logits[rows], whole.y[rows], pairs=pairs))])
    kept = torch.cat(kept)
    assert len(kept) < len(whole.y)
    pairs = ResiduePairs(whole.pairs.protein[kept], whole.pairs.separation[kept], whole.pairs.sizes)
    thin = SplitPredictions(whole.logits[kept], whole.y[kept], pairs=pairs)
    for metric in PRECISIONS:
        assert metric(thin) == pytest.approx(metric(whole), rel=1e-9)


def test_the_metrics_are_listed_under_their_names():
    names = [f"precision_l{part}_{separation}" for separation in (6, 12, 24) for part in ("", 2, 5)]
    assert [metric.name for metric in PRECISIONS] == names
    assert all(registry.metrics.get(name).mode == "max" and registry.metrics.get(name).doc for name in names)
    assert CONTACT.monitor == "precision_l5_6"


def test_coordinates_are_hidden():
    seen = CONTACT.inputs.visible(PROTEINS[0], "made")
    assert not seen.has_coordinates
    assert len(seen.atom_pos) == 0
    assert np.isnan(seen.backbone).all()
    assert not seen.b_factor.any()
    assert seen.sequence == PROTEINS[0].sequence

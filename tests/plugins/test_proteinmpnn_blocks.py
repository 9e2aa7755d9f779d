"""Blocks of edges with reused buffers against all edges at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import Decoding, teacher_forced_log_probs
from protgraph_plugins.proteinmpnn import blocks, featurizers
from protgraph_plugins.proteinmpnn.blocks import map_blocks, split_edges

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.model import build_model
from protgraph.structure import ALPHABET

TARGET = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))


@pytest.fixture(scope="module")
def model():
    return build_model("proteinmpnn", TARGET, seed=0).double().eval()


def batch(model, residues, kind):
    """Return graphs: all residues with K neighbors; one residue without neighbors; two proteins, one tiny."""
    backbone = residues.backbone.copy()
    backbone[[3, 40], 2] = np.nan
    proteins = {
        "regular": [residues],
        "missing atoms": [replace(residues, backbone=backbone)],
        "tiny": [residues.select(np.arange(76) < 5), residues],
        "no edges": [replace(residues, backbone=np.full_like(backbone, np.nan))],
    }[kind]
    return collate([model.plan.precompute(r) for r in proteins])


def outputs_of(model, graphs):
    found = Decoding.of(model, graphs)
    return teacher_forced_log_probs(found, torch.arange(len(found.aatype)).flip(0)), found.fields["edge_attr"]


@pytest.mark.parametrize("size", [1, 100, 1000])
@pytest.mark.parametrize("kind", ["regular", "missing atoms", "tiny", "no edges"])
def test_blocks_equal_all_edges_at_once(model, residues, monkeypatch, kind, size):
    graphs = batch(model, residues, kind)
    whole = outputs_of(model, graphs)  # with gradients: one block, no reused buffers
    assert all(x.requires_grad or not x.numel() for x in whole)
    monkeypatch.setattr(blocks, "EDGES_PER_THREAD", size)
    monkeypatch.setattr(featurizers, "EDGES", size)
    with torch.no_grad():
        pieces = outputs_of(model, graphs)
    for a, b in zip(pieces, whole, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=0, atol=1e-12)


def test_input_fields_are_not_modified(model, residues, monkeypatch):
    monkeypatch.setattr(blocks, "EDGES_PER_THREAD", 100)
    with torch.no_grad():
        f = model.fields_of(batch(model, residues, "regular"))
        for w, layer in zip(model.wires, model.layers, strict=True):
            given = {here: f[field] for here, field in w.reads.items()}
            before = {k: v.clone() for k, v in given.items() if isinstance(v, torch.Tensor)}
            out = layer(given)
            assert all(torch.equal(given[k], v) for k, v in before.items())
            f |= {field: out[here] for here, field in w.writes.items()}


@pytest.mark.parametrize("degree", [3, None])
def test_blocks_cover_nodes_and_edges_once_in_order(degree, monkeypatch):
    count = torch.full((50,), 3) if degree else torch.arange(50) % 5
    target = torch.arange(50).repeat_interleave(count)
    index = torch.stack([torch.arange(len(target)) % 50, target])
    edges = pg.Edges(index, 50, degree=degree)
    monkeypatch.setattr(blocks, "EDGES_PER_THREAD", 10)
    assert len(split_edges(edges, torch.zeros(1), 4)) == 1  # gradients are enabled
    with torch.no_grad():
        parts = split_edges(edges, torch.zeros(1), 4)
    assert len(parts) > 3
    again = [torch.stack([p.edges.index[0], index[1, p.rows]]) for p in parts]
    assert torch.equal(torch.cat(again, 1), index)
    rows = torch.arange(len(target), dtype=torch.float64)[:, None]
    sums = map_blocks(parts, lambda p: p.edges.sum(rows[p.rows]), 50)
    assert torch.equal(sums, edges.sum(rows))
    assert max(len(p.edges.index[0]) for p in parts) <= 10 * torch.get_num_threads() + 5

"""All model families, for every target, on real chains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.testing.symmetry import relative_error

FAMILIES = ("majority", "sequence_mlp", "gcn", "gat", "mpnn", "transformer", "tfn", "hybrid", "site_mpnn", "surface")
VARIANTS = [
    *("majority", "sequence_mlp", "sequence_mlp.window1", "gcn", "gcn.mean", "gcn.deep", "gat", "gat.v1", "gat.wide"),
    *("mpnn", "mpnn.gilmer2017", "mpnn.wide", "mpnn.structure", "transformer", "transformer.base"),
    *("tfn", "tfn.full", "tfn.order2", "hybrid", "hybrid.base", "site_mpnn", "site_mpnn.backbone", "site_mpnn.wide"),
    *("surface", "surface.backbone"),
]
TARGETS = {
    f"{level}_{kind}": pg.Target("label", level, kind, size)
    for level in ("node", "graph")
    for kind, size in (("classification", 3), ("multilabel", 2), ("regression", 1))
} | {"pair_labels": pg.Target("label", "pair", "multilabel", 1)}
SEES_STRUCTURE = [name for name in FAMILIES if name not in ("majority", "sequence_mlp")]


@pytest.fixture(scope="module")
def chains(structures_dir) -> list[pg.Residues]:
    """Return three real entries of 30 to 150 residues."""
    found = []
    for path in sorted(structures_dir.glob("*.bcif")):
        residues = pg.clean(pg.load_structure(path))
        if 30 <= len(residues) <= 150:
            found.append(residues)
        if len(found) == 3:
            break
    return found


def logits(model: pg.ProteinModel, proteins: list[pg.Residues]) -> torch.Tensor:
    return model(collate([model.plan.precompute(r) for r in proteins]))["logits"]


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_runs_and_trains_on_real_chains(chains, name):
    model = pg.build_model(name, TARGETS["node_classification"], seed=0)
    out = logits(model, chains)
    assert out.shape == (sum(map(len, chains)), 3)
    assert out.isfinite().all()
    out.square().sum().backward()
    dead = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert dead == []


@pytest.mark.parametrize(("name", "reads_types"), [("mpnn", True), ("mpnn.structure", False)])
def test_the_structure_variant_does_not_read_residue_types(chains, name, reads_types):
    model = pg.build_model(name, TARGETS["node_classification"], seed=0).eval()
    mutated = [replace(r, aatype=np.roll(r.aatype, 1)) for r in chains]
    assert torch.equal(logits(model, chains), logits(model, mutated)) is not reads_types


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_predicts_every_target(chains, name, target):
    out = logits(pg.build_model(name, TARGETS[target], seed=0), chains[:2])
    assert out.size(-1) == TARGETS[target].size
    assert out.isfinite().all()
    if target.startswith("graph"):
        assert len(out) == 2


@pytest.mark.parametrize("name", FAMILIES)
def test_every_component_of_a_model_is_used_and_survives_json(name):
    graph = pg.build_model(name, TARGETS["node_classification"]).spec
    assert graph.dead_layers() == []
    assert pg.ModelSpec.from_dict(graph.to_dict()) == graph


@pytest.mark.parametrize("name", ["majority", "sequence_mlp"])
def test_baselines_do_not_use_coordinates(chains, name):
    model = pg.build_model(name, TARGETS["node_classification"], seed=0).eval()
    rng = np.random.default_rng(0)
    scrambled = [
        replace(r, pos=rng.normal(size=r.pos.shape), backbone=rng.normal(size=r.backbone.shape)) for r in chains
    ]
    assert torch.equal(logits(model, chains), logits(model, scrambled))


@pytest.mark.parametrize("name", SEES_STRUCTURE)
def test_graph_models_use_coordinates(chains, name):
    model = pg.build_model(name, TARGETS["node_classification"], seed=0).eval()
    stretched = [replace(r, pos=r.pos * 1.1, backbone=r.backbone * 1.1) for r in chains]
    assert relative_error(logits(model, stretched), logits(model, chains)) > 1e-3

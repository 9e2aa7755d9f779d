"""Pretraining tasks: geometry of walks against biotite, removed edges, two views, and the contrastive loss."""

from __future__ import annotations

from itertools import pairwise

import biotite.structure as struc
import numpy as np
import pytest
import torch
from protgraph_plugins.structure_encoder.removed_edges import RemovedEdges, walk_geometry
from protgraph_plugins.structure_encoder.views import TEMPERATURE, TwoViews, contrastive_loss, retrieval

import protgraph as pg
from protgraph.data import collate
from protgraph.errors import FieldError, OptionError
from protgraph.structure import load_structure
from protgraph.task import Masking, SplitPredictions


@pytest.fixture(scope="module")
def graphs(structures_dir):
    proteins = [load_structure(structures_dir / f"{name}.bcif") for name in ("1crn", "1ubq")]
    made = [pg.build_graph(protein, [pg.component("knn", k=6)]) for protein in proteins]
    for graph in made:
        graph.edge_attr = lengths(graph)[:, None]
    return made


def lengths(graph):
    return (graph.pos[graph.edge_index[0]] - graph.pos[graph.edge_index[1]]).norm(dim=1)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pairs(graph):
    return set(map(tuple, graph.edge_index.t().tolist()))


def test_labels_are_the_distances_angles_and_dihedrals_of_biotite(graphs):
    shown, y = RemovedEdges(1.0)(graphs[1], generator())
    walk = shown.walk.numpy()
    known = ~y[:, 0].isnan().numpy()
    assert known.mean() > 0.5
    i, j, k, t = (graphs[1].pos.double().numpy()[walk[known, step]] for step in range(4))
    dihedral = struc.dihedral(i, j, k, t)
    expected = np.stack([struc.distance(i, j), np.cos(struc.angle(i, j, k)), np.cos(dihedral), np.sin(dihedral)], 1)
    assert np.allclose(y[torch.from_numpy(known)].numpy(), expected, atol=1e-4)


def test_walks_go_along_edges_that_are_then_absent_in_both_directions(graphs):
    batch = collate(graphs)
    shown, y = RemovedEdges(0.5)(batch, generator())
    before, after = pairs(batch), pairs(shown)
    started = (~y[:, 0].isnan()).nonzero().flatten().tolist()
    assert 0.2 < len(started) / batch.num_nodes < 0.6
    removed = set()
    for walk in shown.walk[started].tolist():
        assert len(set(walk)) == 4
        for target, source in pairwise(walk):
            assert (source, target) in before
            removed |= {(source, target), (target, source)}
    assert after == before - removed
    others = torch.ones(batch.num_nodes, dtype=torch.bool)
    others[started] = False
    assert (shown.walk[others] == torch.arange(batch.num_nodes)[others, None]).all()
    assert torch.equal(shown.edge_attr.flatten(), lengths(shown))
    assert "degree" in batch and "degree" not in shown
    shown.validate()


@pytest.mark.parametrize("corrupt", [RemovedEdges(1.0), TwoViews(removed=0.0)])
def test_edges_are_removed_from_every_edge_set(structures_dir, corrupt):
    features = [
        pg.component("knn", k=6),
        pg.component("knn", k=6, edges="far"),
        pg.component("edge_distance", edges="far"),
    ]
    graph = pg.build_graph(load_structure(structures_dir / "1ubq.bcif"), features)
    assert torch.equal(graph.far_edge_index, graph.edge_index)
    shown, _ = corrupt(graph, generator())
    assert shown.edge_index.size(1) < graph.edge_index.size(1)
    assert torch.equal(shown.far_edge_index, shown.edge_index)


def test_undefined_angles_are_0():
    line = torch.tensor([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])
    assert walk_geometry(line, torch.tensor([[0, 1, 2, 3]])).tolist() == [[1.0, -1.0, 0.0, 0.0]]
    same = torch.zeros(4, 3)
    assert walk_geometry(same, torch.tensor([[0, 1, 2, 3]])).tolist() == [[0.0] * 4]


def test_views_are_two_parts_of_the_sequence_without_edges_between_them(graphs):
    batch = collate(graphs)
    shown, y = TwoViews(removed=0.0)(batch, generator())
    assert torch.equal(y[:, : y.size(1) // 2], y[:, y.size(1) // 2 :])
    for protein in range(2):
        view = shown.second_view[batch.batch == protein]
        size = len(view)
        assert (view[1:] >= view[:-1]).all()
        assert 0.29 < view.double().mean() < 0.71
        assert size == batch.sizes[protein]
    kept = {(a, b) for a, b in pairs(batch) if shown.second_view[a] == shown.second_view[b]}
    assert pairs(shown) == kept
    fewer, _ = TwoViews(removed=0.5)(batch, generator())
    assert 0.3 * len(kept) < fewer.edge_index.size(1) < 0.7 * len(kept)


def test_the_contrastive_loss_is_that_of_a_loop():
    logits = torch.randn(5, 8, dtype=torch.float64, generator=generator())
    views = [row for part in (logits[:, :4], logits[:, 4:]) for row in part]
    total = 0.0
    for a, first in enumerate(views):
        b = (a + 5) % 10
        scores = [torch.cosine_similarity(first, other, dim=0) / TEMPERATURE for other in views]
        others = torch.stack([score for c, score in enumerate(scores) if c != a])
        total += float(torch.logsumexp(others, 0) - scores[b])
    assert contrastive_loss(logits, torch.zeros(5, 1)) == pytest.approx(total / 10, rel=1e-12)
    assert contrastive_loss(logits[:1], torch.zeros(1, 1)) == 0
    unknown = torch.tensor([0.0, 0, 0, 0, torch.nan])[:, None]
    assert contrastive_loss(logits, unknown) == contrastive_loss(logits[:4], unknown[:4])


def test_retrieval_counts_proteins_whose_other_view_is_the_nearest():
    first = torch.eye(4)
    second = first[[0, 1, 3, 2]]
    assert retrieval.function(SplitPredictions(torch.cat([first, second], 1), torch.zeros(4, 1))) == 0.5
    same = torch.ones(4, 4)
    assert retrieval.function(SplitPredictions(torch.cat([same, same], 1), torch.zeros(4, 1))) == 0.25


def test_the_fraction_of_masked_types_is_drawn_between_its_limits():
    graph = pg.ProteinGraph(
        aatype=torch.zeros(4000, dtype=torch.long),
        masked=torch.zeros(4000, dtype=torch.bool),
        y=torch.zeros(4000, dtype=torch.long),
        pos=torch.zeros(4000, 3),
    )
    masking = Masking(fraction=(0.2, 0.9), masked=1.0, replaced=0.0)
    fractions = [float((masking(graph, generator(seed))[1] >= 0).double().mean()) for seed in range(40)]
    assert 0.18 < min(fractions) < 0.35
    assert 0.75 < max(fractions) < 0.92
    with pytest.raises(OptionError, match="Fractions"):
        Masking(fraction=(0.9, 0.2))


@pytest.mark.parametrize("corrupt", [RemovedEdges(), TwoViews()])
def test_a_graph_without_edges_is_refused(structures_dir, corrupt):
    graph = pg.build_graph(load_structure(structures_dir / "1crn.bcif"), ["dihedral"])
    with pytest.raises(FieldError, match="no edges"):
        corrupt(graph, generator())


@pytest.mark.parametrize("create", [lambda: RemovedEdges(0.0), lambda: TwoViews(1.0)])
def test_options_out_of_range_are_refused(create):
    with pytest.raises(OptionError, match="Use a"):
        create()

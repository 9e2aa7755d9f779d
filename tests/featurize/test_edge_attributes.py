"""Attributes of edges that an edge featurizer computes from the structure."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph import collate
from protgraph.data.store import GraphStore, write_store
from protgraph.errors import ComponentError, WiringError
from protgraph.structure.neighbors import sort_edges
from protgraph.testing.component import find_components
from protgraph.testing.protein_fixtures import proteins

pg.register_field(pg.FieldSpec("edge_atom_contacts", "edge", "1x0e", doc="pairs of heavy atoms within the cutoff"))


def contacts(residues, cutoff: float) -> np.ndarray:
    """Count pairs of heavy atoms within a cutoff for each pair of residues, ``(N, N)``."""
    pairs = np.linalg.norm(residues.atom_pos[:, None] - residues.atom_pos, axis=-1) < cutoff
    table = np.zeros((len(residues), len(residues)), int)
    np.add.at(table, (residues.atom_residue[:, None], residues.atom_residue[None]), pairs)
    return table


@pg.featurizers.register("contact_edges")
class ContactEdges(pg.EdgeFeaturizer):
    """Edges between residues with atom contacts, with their number."""

    writes = ("edge_index", "edge_atom_contacts")

    def __init__(self, *, cutoff: float = 7.0, wrong: str = ""):
        super().__init__()
        self.cutoff, self.wrong = cutoff, wrong

    def __call__(self, residues):
        table = contacts(residues, self.cutoff)
        target, source = np.nonzero(table * (1 - np.eye(len(table), dtype=int)))
        source, target = sort_edges(residues.pos, np.stack([source, target]))
        value = table[target, source][:, None].astype(np.float32)
        if self.wrong == "rows":
            value = value[1:]
        if self.wrong == "nan":
            value[0] = np.nan
        return pg.EdgeList(source, target, fields={} if self.wrong == "missing" else {"edge_atom_contacts": value})


def expected(residues, source: torch.Tensor, target: torch.Tensor, cutoff: float = 7.0) -> torch.Tensor:
    return torch.from_numpy(contacts(residues, cutoff)[target, source][:, None]).float()


@pytest.mark.parametrize("edges, prefix", [("", ""), ("near", "near_")])
def test_an_attribute_belongs_to_its_edge(edges, prefix):
    for residues in proteins():
        graph = pg.build_graph(residues, [pg.component("contact_edges", edges=edges)])
        source, target = graph[f"{prefix}edge_index"]
        value = graph[f"{prefix}edge_atom_contacts"]
        assert torch.equal(value, expected(residues, source, target))
        assert graph.validate()


def test_edges_of_other_kinds_have_zero():
    residues = proteins()[0]
    graph = pg.build_graph(residues, [pg.component("knn", k=6), "contact_edges"])
    source, target = graph.edge_index
    is_contact = graph.edge_kind[:, 1:] > 0
    assert 0 < int(is_contact.sum()) < len(is_contact)
    assert torch.equal(graph.edge_atom_contacts, expected(residues, source, target) * is_contact)


def test_layers_read_it_from_batches_and_stores(tmp_path):
    layers = [
        pg.component("embed", reads=["aatype"], dim=4),
        pg.component("mpnn", dim=4, reads={"edge_attr": "edge_atom_contacts"}),
    ]
    spec = pg.ModelSpec("m", features=["contact_edges"], layers=layers)
    model = pg.build_model(spec, pg.Target("site", "node", "multilabel", 1), seed=0).eval()
    graphs = [model.plan.precompute(residues) for residues in proteins()]
    write_store(tmp_path / "graphs", graphs)
    batch = collate(graphs)
    logits = model(batch)["logits"]
    assert torch.equal(model(GraphStore(tmp_path / "graphs").collate(range(len(graphs))))["logits"], logits)
    batch.edge_atom_contacts = torch.zeros_like(batch.edge_atom_contacts)
    assert not torch.allclose(model(batch)["logits"], logits)


@pytest.mark.parametrize("wrong, part", [("rows", "shape"), ("nan", "not finite"), ("missing", "edge_atom_contacts")])
def test_wrong_attributes_name_the_featurizer(wrong, part):
    with pytest.raises(ComponentError, match=f"contact_edges.*{part}|{part}.*contact_edges"):
        pg.build_graph(proteins()[0], [pg.component("contact_edges", wrong=wrong)])


def test_an_attribute_can_have_another_name():
    graph = pg.build_graph(proteins()[0], [pg.component("contact_edges", writes={"edge_atom_contacts": "edge_dist"})])
    assert graph.edge_dist.max() > 0
    with pytest.raises(WiringError, match="exists already"):
        pg.build_graph(proteins()[0], ["contact_edges", "contact_edges"])


@pg.testing.parametrize_with_checks([ContactEdges])
def test_conformity(component, check):
    check(component)


class HeightEdges(ContactEdges):
    """A twin whose attribute is the z coordinate of the source, declared as a scalar."""

    def __call__(self, residues):
        edges = super().__call__(residues)
        return pg.EdgeList(edges.source, edges.target, fields={"edge_atom_contacts": residues.pos[edges.source, 2:]})


def test_an_attribute_that_depends_on_the_orientation_fails():
    reports = {report.check: report for report in pg.testing.check_component(find_components(HeightEdges)[0])}
    assert reports["rotation"].status == "failed"

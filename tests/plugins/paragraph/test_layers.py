"""Paragraph: features and layer against explicit formulas, published weights against the published example."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.paragraph import binding_loops
from protgraph_plugins.paragraph.layers import ParagraphLayer

import protgraph as pg
from protgraph.errors import MissingExtraError, SelectionError
from protgraph.model import pretrained
from protgraph.ops import Edges
from protgraph.testing import make_protein


@pytest.fixture(scope="module")
def antibody() -> pg.Residues:
    """Return a protein with chains H and L, and a third chain."""
    residues = make_protein((9, 7, 4), seed=3)
    return replace(residues, chain=np.repeat(["H", "L", "X"], [9, 7, 4]))


def test_residues_are_one_hot_by_three_letter_name_and_chain(antibody):
    found = pg.featurizers.create("antibody_residue")(antibody)["antibody_residue"]
    names = "ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split()  # noqa: SIM905
    for row, name, chain in zip(found.tolist(), antibody.res_name, antibody.chain, strict=True):
        assert row == [float(name == other) for other in names] + [float(chain == other) for other in "HL"]


def test_edges_join_all_pairs_and_near_ones_are_marked(antibody):
    graph = pg.build_graph(antibody, ["every_pair"])
    pairs = set(map(tuple, graph.edge_index.t().tolist()))
    assert pairs == {(j, i) for i in range(20) for j in range(20)} and graph.edge_index.size(1) == 400
    read = {"pos": torch.from_numpy(antibody.pos).double(), "edges": Edges.from_graph(graph)}
    found = pg.featurizers.create("edge_near")(read)["edge_near"][:, 0]
    distance = np.linalg.norm(antibody.pos[:, None].astype(float) - antibody.pos.astype(float), axis=-1)
    for value, j, i in zip(found.tolist(), *graph.edge_index.tolist(), strict=True):
        assert value == float(i != j and distance[i, j] <= 10.0)
    assert 0 < found.sum() < 380


def test_the_layer_equals_its_equations_on_each_edge():
    g = torch.Generator().manual_seed(0)
    n, index = 5, torch.cartesian_prod(torch.arange(5), torch.arange(5)).t().flip(0)
    h, pos, e = (torch.randn(shape, generator=g).double() for shape in ((n, 4), (n, 3), (n * n, 1)))
    specs = {"h": pg.FieldSpec("h", "node", "4x0e"), "edge_attr": pg.FieldSpec("edge_attr", "edge", "1x0e")}
    layer = ParagraphLayer(specs | {"pos": pg.field("pos"), "edges": pg.field("edges")}, message=3).double()
    for p in layer.parameters():  # the initial weights are small
        torch.nn.init.normal_(p, std=0.5, generator=g)
    found = layer({"h": h, "pos": pos, "edges": Edges(index, n), "edge_attr": e})["h"]
    silu = torch.nn.functional.silu
    total = torch.zeros(n, 3).double()
    for row, (j, i) in enumerate(index.t().tolist()):
        near = torch.cat([(pos[i] - pos[j]).square().sum()[None], e[row]])
        hidden = layer.target.weight @ h[i] + layer.target.bias + layer.source.weight @ h[j] + layer.edge.weight @ near
        total[i] = total[i] + silu(layer.message.weight @ silu(hidden) + layer.message.bias)
    expected = (h + layer.node(torch.cat([h, total], 1))).clamp(-1, 1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert (expected.abs() < 1).any()


@pytest.fixture
def folder(shared_data, monkeypatch):
    found = shared_data / "weights" / "paragraph"
    monkeypatch.setenv("PROTGRAPH_PARAGRAPH", str(found))
    return found


@torch.no_grad()
def test_the_published_example_is_reproduced(folder):
    with open(folder / "example_predictions.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    loops = binding_loops(pg.clean(pg.load_structure(folder / "4edw.pdb")))
    assert loops.ids == [f"{row['chain_id']}:{row['IMGT']}" for row in rows]
    assert loops.res_name.tolist() == [row["AA"] for row in rows]
    model = pretrained("paragraph.paired")
    assert model.num_parameters == 51_459
    found = model(pg.collate([model.plan.precompute(loops)]))["logits"].sigmoid()[:, 0]
    want = np.array([float(row["pred"]) for row in rows])
    assert np.abs(found.double().numpy() - want).max() <= 1e-6


def test_single_chains_have_separate_weights(folder):
    whole = pg.clean(pg.load_structure(folder / "4edw.pdb"))
    both = binding_loops(whole)
    for name, heavy, light in (("heavy", "H", ""), ("light", "", "L")):
        loops = binding_loops(whole, heavy=heavy, light=light)
        assert loops.ids == [i for i in both.ids if i[0] == heavy + light]
        model = pretrained(f"paragraph.{name}")
        p = model(pg.collate([model.plan.precompute(loops)]))["logits"].sigmoid()
        assert 0.1 < p.max() <= 1


def test_a_protein_without_binding_loops_is_an_error(structures_dir):
    residues = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    with pytest.raises(SelectionError, match="'H'"):
        binding_loops(residues)
    with pytest.raises(SelectionError, match="IMGT"):
        binding_loops(replace(residues, res_id=residues.res_id + 500), heavy="A", light="")


def test_the_error_without_weights_has_the_folder_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_PARAGRAPH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="PROTGRAPH_PARAGRAPH"):
        pretrained("paragraph.paired")

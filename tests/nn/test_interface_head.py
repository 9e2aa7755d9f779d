"""Head on residues with an edge to another chain, against loops."""

from __future__ import annotations

import pytest
import torch

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.heads.perceptron import InterfaceHead
from protgraph.ops import Edges, Proteins

DIM = 5


@pytest.fixture
def fields() -> dict[str, FieldSpec]:
    return {"h": FieldSpec("h", "node", f"{DIM}x0e"), **{name: field(name) for name in ("chain", "edges", "proteins")}}


@pytest.fixture
def inputs() -> dict:
    """Two proteins: three chains with an interface between the first two, and one chain alone."""
    chain = torch.tensor([0, 0, 0, 1, 1, 2, 0, 0])
    edge_index = torch.tensor([[0, 1, 2, 3, 1, 4, 6, 7], [1, 0, 3, 2, 4, 3, 7, 6]])
    edge_index = edge_index[:, edge_index[1].argsort(stable=True)]
    proteins = Proteins(torch.tensor([0] * 6 + [1] * 2), (6, 2))
    h = torch.randn(8, DIM, generator=torch.Generator().manual_seed(0))
    return {"h": h, "chain": chain, "edges": Edges(edge_index, 8), "proteins": proteins}


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_residues_with_an_edge_from_another_chain_are_pooled(fields, inputs, kind):
    head = InterfaceHead(fields, Target("y", "graph", kind, 2))
    if kind == "regression":
        head.scale.fill_(3.0)
    found = head(inputs)["logits"]
    inside = [2, 3, 4]  # 2-3 and 1 -> 4 cross; 1 has no edge from another chain
    pooled = torch.stack([inputs["h"][inside].mean(0), torch.zeros(DIM)])
    count = torch.tensor([[len(inside)], [0.0]]).log1p()
    expected = head.mlp(torch.cat([pooled, count], 1)) * (3.0 if kind == "regression" else 1.0)
    torch.testing.assert_close(found, expected)


def test_residues_away_from_the_interface_change_nothing(fields, inputs):
    head = InterfaceHead(fields, Target("y", "graph", "regression", 1))
    other = inputs | {"h": inputs["h"].clone()}
    other["h"][[0, 1, 5, 6, 7]] += 10
    torch.testing.assert_close(head(inputs)["logits"], head(other)["logits"])
    other["h"][3] += 1
    assert not torch.allclose(head(inputs)["logits"], head(other)["logits"])

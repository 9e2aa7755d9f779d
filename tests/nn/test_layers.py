"""Layers and a head with other options than their defaults: batch = singles, and edges of unknown degree."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import pytest
import torch

from protgraph.data.datasets.target import Target
from protgraph.nn.heads.perceptron import GraphHead
from protgraph.nn.layers.convolutions import GCN, GIN, SAGE
from protgraph.nn.layers.embed import Constant
from protgraph.nn.module import GraphLayer, Head

# name: (class, what is wired, options)
LAYERS = {
    "constant": (Constant, ("proteins",), {"dim": 3, "learned": True}),
    "gcn": (GCN, ("h", "edges", "edge_weight"), {"dim": 8}),
    "gcn_mean": (GCN, ("h", "edges"), {"dim": 16, "norm": "mean"}),
    "gin": (GIN, ("h", "edges"), {"dim": 8, "norm": "layer", "learn_eps": True}),
    "sage_max": (SAGE, ("h", "edges"), {"dim": 8, "aggregate": "max"}),
    "sage_mean": (SAGE, ("h", "edges"), {"dim": 16}),
}
EDGE_LAYERS = [n for n, (_, reads, _) in LAYERS.items() if "edges" in reads]


def build(name, specs):
    torch.manual_seed(0)
    if name == "graph_head":
        target = Target("y", "graph", "classification", 2)
        return GraphHead({n: specs[n] for n in ("h", "proteins")}, target, pool="attention")
    kind, reads, options = LAYERS[name]
    return kind({n: specs[n] for n in reads}, **options)


def run(layer, s, **changes):
    out = layer(s.inputs(layer.fields, **changes))
    assert set(out) == set(layer.writes) == set(layer.out)
    (result,) = out.values()
    (spec,) = layer.out.values()
    assert result.size(1) == spec.dim
    return result


@pytest.mark.parametrize("name", [*LAYERS, "graph_head"])
@pytest.mark.parametrize("degree", [None, 3])
def test_batch_equals_singles(scene, specs, float64, name, degree):
    layer, s = build(name, specs), scene(degree=degree)
    singles = [run(layer, s.single(b)[0]) for b in range(len(s.sizes))]
    torch.testing.assert_close(run(layer, s), torch.cat(singles), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", EDGE_LAYERS)
def test_edges_of_unknown_degree_give_the_same_values(scene, specs, agree, float64, name):
    layer, s = build(name, specs), scene(degree=4)
    h = s.f["h"].requires_grad_()
    wrt = [h, *layer.parameters()]
    regular = s.edges()
    assert regular.degree == 4
    agree(
        lambda: run(layer, s, edges=regular),
        lambda: run(layer, s, edges=s.edges(degree=False)),
        wrt,
        tol=1e-12,
    )


@pytest.mark.slow
def test_importing_layers_and_heads_loads_neither_e3nn_nor_structures():
    code = "import sys, protgraph.nn.layers, protgraph.nn.heads; print({'e3nn', 'biotite'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_help_of_the_base_classes_shows_what_an_author_needs_and_not_that_of_torch():
    for base, names in ((GraphLayer, ("forward", "declare", "scalar_width")), (Head, ("forward", "training_loss"))):
        text = pydoc.render_doc(base, renderer=pydoc.plaintext)
        assert len(text.splitlines()) < 150
        assert [name for name in names if f" |  {name}(self" not in text] == []
        assert "register_forward_hook" not in text and "__setattr__" not in text
    assert {"parameters", "forward", "register_buffer"} <= set(dir(GCN))

"""Model graphs are data whose wiring is proved before anything is built."""

from __future__ import annotations

import json
import pickle
import re

import networkx as nx
import pytest
import torch
from torch import nn

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import FieldError, OptionError, UnknownNameError, WiringError
from protgraph.featurize.base import TensorFeaturizer
from protgraph.model import ModelSpec, build_model, draw_model, summarize_model
from protgraph.nn.module import GraphLayer, Head
from protgraph.registry.component import component
from protgraph.testing.protein_fixtures import make_protein


class Height(TensorFeaturizer):
    """The z coordinate, written as a scalar on purpose."""

    reads, writes = ("pos",), ("b_factor",)

    def __call__(self, f):
        return {"b_factor": f["pos"][:, 2:]}


class Lift(GraphLayer):
    """Linear map of any fields."""

    variadic, writes = True, ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        self.linear = nn.Linear(sum(self.scalar_width(n) for n in fields), dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        parts = [nn.functional.one_hot(v, 21).to(torch.get_default_dtype()) if v.dim() == 1 else v for v in f.values()]
        return {"h": self.linear(torch.cat(parts, 1))}


class Faulty(Lift):
    """What a test makes of it."""

    variadic, reads = False, ("h",)

    def forward(self, f):
        return self.gives(f, self.linear(f["h"]))


class Mix(GraphLayer):
    """Linear map, with an optional second input."""

    reads, optional, writes = ("h",), ("extra",), ("h",)

    def __init__(self, fields, *, dim: int = 8, scale: float = 1.0):
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim)
        self.scale = scale
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        return {"h": self.scale * self.linear(f["h"]) + f.get("extra", 0)}


class Undeclared(GraphLayer):
    """Forgets to declare its output."""

    reads, writes = ("h",), ("h",)

    def __init__(self, fields):
        super().__init__(fields)

    def forward(self, f):
        return {"h": f["h"]}


class LinearHead(Head):
    """One linear map."""

    reads = ("h",)

    def __init__(self, fields, target, *, bias: bool = True):
        super().__init__(fields, target)
        self.linear = nn.Linear(self.scalar_width("h"), target.size, bias=bias)

    def forward(self, f):
        return {"logits": self.linear(f["h"])}


COMPONENTS = (
    (registry.featurizers, "model_test_height", Height),
    (registry.layers, "model_test_lift", Lift),
    (registry.layers, "model_test_mix", Mix),
    (registry.layers, "model_test_faulty", Faulty),
    (registry.layers, "model_test_undeclared", Undeclared),
    (registry.heads, "model_test_head", LinearHead),
)


@pytest.fixture(autouse=True)
def _registered():
    """These components have names in this module only."""
    for kind, name, registered in COMPONENTS:
        kind.register(name, registered)


TARGET = Target("t", "node", "classification", 3, head="model_test_head")
LIFT = component("model_test_lift", reads=["aatype"])
MIX = component("model_test_mix")


def graph(layers, **rest) -> ModelSpec:
    return ModelSpec("test", rest.pop("features", ()), layers, **rest)


@pytest.fixture
def batch():
    g = torch.Generator().manual_seed(0)
    proteins = []
    for n in (5, 3):
        p = ProteinGraph(
            aatype=torch.randint(0, 21, (n,), generator=g),
            pos=torch.randn(n, 3, generator=g),
        )
        p.name = "p"
        proteins.append(p)
    return collate(proteins)


def test_survives_json_and_pickle():
    one = graph([LIFT, component("model_test_mix", scale=0.5, writes={"h": "m"}), MIX], readout={"h": "m"})
    assert ModelSpec.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_name_alone_is_no_list_of_nodes():
    for parts in ({"features": "knn"}, {"layers": "gcn"}, {"layers": {"name": "gcn"}}):
        with pytest.raises(WiringError, match=rf"{next(iter(parts))}"):
            ModelSpec("test", **parts)


def test_unknown_keys_of_a_dict_are_refused():
    with pytest.raises(WiringError, match="layer"):
        ModelSpec.from_dict({"name": "x", "layer": []})


def test_logits_have_one_row_a_node_and_the_targets_width(batch):
    model = build_model(graph([LIFT, MIX]), TARGET, seed=0)
    assert model(batch)["logits"].shape == (8, 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda b: [b], "got list"),
        (lambda b: {"pos": b.pos}, "got dict"),
        (lambda b: without(b, "aatype", "pos"), "has no 'aatype', 'pos'"),
    ],
)
def test_what_is_no_graph_of_the_models_features_is_said(batch, given, words):
    with pytest.raises(FieldError, match=rf"takes graphs as model.plan.precompute.*{words}"):
        build_model(graph([component("model_test_lift", reads=["aatype"])]), TARGET, seed=0)(given(batch))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (lambda f, h: {"hh": h}, WiringError, r"layers\[1\] \(model_test_faulty\) of model 'test' gives \['hh'\]"),
        (lambda f, h: h, WiringError, "gives a Tensor; its writes are"),
        (lambda f, h: {"h": h[1:]}, WiringError, r"gives 'h' of shape \(7, 8\); it declares \(8, 8\)"),
        (lambda f, h: {"h": h.repeat(1, 2)}, WiringError, r"gives 'h' of shape \(8, 16\); it declares \(8, 8\)"),
        (lambda f, h: {"h": h + f["pos"]}, KeyError, r"in layers\[1\] .* of model 'test', which is given h"),
        (lambda f, h: {"h": h @ h[1:]}, RuntimeError, r"in layers\[1\]"),
    ],
)
def test_a_fault_of_a_layer_says_where_it_stands(batch, given, error, words, monkeypatch):
    monkeypatch.setattr(Faulty, "gives", staticmethod(given), raising=False)
    layers = [component("model_test_lift", reads=["aatype"]), "model_test_faulty"]
    with pytest.raises(error) as raised:
        build_model(graph(layers), TARGET, seed=0)(batch)
    assert re.search(words, "\n".join([str(raised.value), *getattr(raised.value, "__notes__", ())]))


def test_a_compiled_model_says_the_same():
    """A single graph too, whose edges are checked where nothing is traced."""
    residues = make_protein((12,), seed=0)
    layers = [component("embed", reads=["aatype"], dim=8), component("gcn", dim=8)]
    model = build_model(ModelSpec("test", [component("knn", k=3)], layers), TARGET, seed=0).eval()
    one = model.plan.precompute(residues)
    for given in (one, collate([one, one])):
        with torch.no_grad():
            said = model(given)["logits"]
            torch.testing.assert_close(torch.compile(model, backend="eager")(given)["logits"], said)


def without(batch, *names):
    left = batch.clone()
    for name in names:
        del left[name]
    return left


def test_equals_the_same_layers_called_by_hand(batch):
    skip = component("model_test_mix", reads={"extra": "first"})
    model = build_model(
        graph(
            [
                component("model_test_lift", reads=["aatype"], writes={"h": "first"}),
                component("model_test_mix", reads={"h": "first"}),
                skip,
            ]
        ),
        TARGET,
        seed=0,
    )
    lift, mix, last = model.layers
    first = lift({"aatype": batch.aatype})["h"]
    by_hand = last.linear(mix.linear(first)) + first
    assert torch.equal(model.embed(batch)["h"], by_hand)
    assert torch.equal(model(batch)["logits"], model.head.linear(by_hand))


def test_same_seed_gives_the_same_weights_and_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    a, b, c = (build_model(graph([LIFT, MIX]), TARGET, seed=s) for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
    assert not torch.equal(a.layers[1].linear.weight, c.layers[1].linear.weight)


def test_tensor_features_follow_the_models_dtype(batch):
    model = build_model(graph([component("model_test_lift", reads=["b_factor"])], features=["model_test_height"]), TARGET)
    assert model.double().embed(batch)["b_factor"].dtype == torch.float64


def test_the_dag_follows_field_names():
    skip = component("model_test_mix", reads={"extra": "first"})
    g = graph(
        [
            component("model_test_lift", reads=["aatype"], writes={"h": "first"}),
            component("model_test_mix", reads={"h": "first"}),
            skip,
        ]
    )
    dag = g.dag()
    assert nx.is_directed_acyclic_graph(dag)
    assert dag.edges["layers[0]", "layers[2]"]["fields"] == ("first",)
    assert dag.edges["layers[1]", "layers[2]"]["fields"] == ("h",)
    assert dag.edges["layers[2]", "head"]["fields"] == ("h",)
    assert g.dead_layers() == []


def test_a_layer_that_nothing_reads_is_dead():
    g = graph([LIFT, component("model_test_mix", writes={"h": "unused"}), MIX])
    assert g.dead_layers() == ["layers[1] (model_test_mix)"]


@pytest.mark.parametrize(
    ("layers", "rest", "error", "words"),
    [
        ([MIX], {}, WiringError, r"layers\[0\] \(model_test_mix\) reads 'h'"),
        ([LIFT, component("model_test_mix", reads={"h": "aatyp"})], {}, WiringError, "Did you mean 'aatype'"),
        ([LIFT, component("model_test_mix", reads={"x": "h"})], {}, WiringError, "no input 'x'; its inputs are h, extra"),
        ([LIFT, component("model_test_mix", writes={"x": "h"})], {}, WiringError, "no output 'x'; its outputs are h"),
        ([LIFT, component("model_test_mix", reads=["h"])], {}, WiringError, "not a list"),
        ([LIFT, component("model_test_mix", writes={"h": "edges"})], {}, WiringError, "reserved"),
        ([LIFT, MIX], {"readout": {"h": "hh"}}, WiringError, "the readout"),
        ([LIFT, component("model_test_mix", dims=3)], {}, OptionError, r"layers\[1\] \(model_test_mix\): got 'dims'"),
        ([LIFT, component("model_test_mx")], {}, UnknownNameError, "model_test_mix"),
        ([component("model_test_lift", reads=["pos"])], {}, WiringError, "breaks rotation equivariance"),
        ([LIFT, component("model_test_undeclared")], {}, WiringError, "must declare"),
        ([LIFT], {"features": ["model_test_height", "model_test_height"]}, WiringError, "there already"),
        (
            [LIFT],
            {"heads": {"model_test_head": {"biass": True}}},
            OptionError,
            r"head \(model_test_head\): got 'biass'",
        ),
        ([component("model_test_mix", reads={"h": "edge_vec"})], {}, WiringError, "known field: add the featurizer"),
    ],
)
def test_bad_wiring_says_where_and_what_to_do(layers, rest, error, words):
    with pytest.raises(error, match=words):
        build_model(graph(layers, **rest), TARGET)


def test_a_tensor_featurizer_may_read_what_a_renamed_one_wrote(batch):
    features = ["model_test_height", component("model_test_height", writes={"b_factor": "again"})]
    model = build_model(graph([component("model_test_lift", reads=["again", "b_factor"])], features=features), TARGET)
    assert torch.equal(model.embed(batch)["again"], batch.pos[:, 2:])


def test_describe_has_a_row_a_node_and_counts_every_parameter():
    model = build_model(graph([LIFT, component("model_test_mix", scale=0.5)], features=["model_test_height"]), TARGET)
    rows = summarize_model(model)
    assert [r.name for r in rows] == ["model_test_height", "model_test_lift", "model_test_mix", "model_test_head"]
    assert rows[2].options == ("scale=0.5",) and rows[2].writes == ("h (N, 8) 8x0e",)
    assert sum(r.parameters for r in rows) == model.num_parameters


def test_chirality_travels_through_the_layers():
    mirror = ModelSpec("m", [], [LIFT, MIX])
    assert not build_model(mirror, TARGET).fields["h"].chiral
    handed = ModelSpec("h", [], [component("model_test_lift", reads=["chain", "aatype"]), MIX])
    assert not build_model(handed, TARGET).fields["h"].chiral


def test_draw_writes_a_picture(tmp_path):
    path = draw_model(graph([LIFT, MIX], features=["model_test_height"]), tmp_path / "model.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

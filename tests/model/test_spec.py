"""Model specifications are plain data whose wiring is checked before a model is built."""

from __future__ import annotations

import json
import pickle

import networkx as nx
import pytest
import torch
from torch import nn

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import ComponentError, FieldError, OptionError, UnknownNameError, WiringError
from protgraph.featurize.base import TensorFeaturizer
from protgraph.model import ModelSpec, build_model, mermaid_text, summarize_model
from protgraph.nn.module import GraphLayer, Head
from protgraph.registry.component import component
from protgraph.testing.protein_fixtures import make_protein


class Height(TensorFeaturizer):
    """The z coordinate, declared as a scalar on purpose."""

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
    """Does not declare its output."""

    reads, writes = ("h",), ("h",)

    def __init__(self, fields):
        super().__init__(fields)

    def forward(self, f):
        return {"h": f["h"]}


class Shadow(GraphLayer):
    """Gives a module the name of an attribute of every layer."""

    reads, writes = ("h",), ("h",)

    def __init__(self, fields):
        super().__init__(fields)
        self.out = nn.Linear(self.scalar_width("h"), 8)
        self.declare(h="8x0e")

    def forward(self, f):
        return {"h": self.out(f["h"])}


class LinearHead(Head):
    """One linear map."""

    reads = ("h",)

    def __init__(self, fields, target, *, bias: bool = True):
        super().__init__(fields, target)
        self.declare(logits=f"{target.size}x0e")
        self.linear = nn.Linear(self.scalar_width("h"), target.size, bias=bias)

    def forward(self, f):
        return {"logits": self.linear(f["h"])}


class Buffered(GraphLayer):
    """Gives a buffer the name of a method of every layer."""

    reads, writes = ("h",), ("h",)

    def __init__(self, fields):
        super().__init__(fields)
        self.register_buffer("declare", torch.zeros(1))
        self.declare(h=fields["h"].irreps)

    def forward(self, f):
        return {"h": f["h"] + self.get_buffer("declare")}


class Seeding(Mix):
    """Seeds torch, so that every seed of a model gives the same weights."""

    def __init__(self, fields):
        torch.manual_seed(7)
        super().__init__(fields)


class Line(GraphLayer):
    """Declares a second set of edges, which is not a tensor."""

    reads, writes = ("edges",), ("line",)

    def __init__(self, fields):
        super().__init__(fields)
        self.declare(line=FieldSpec("line", "edge", "object"))

    def forward(self, f):
        return {"line": f["edges"]}


COMPONENTS = (
    (registry.layers, "model_test_buffered", Buffered),
    (registry.layers, "model_test_line", Line),
    (registry.layers, "model_test_seeding", Seeding),
    (registry.featurizers, "model_test_height", Height),
    (registry.layers, "model_test_lift", Lift),
    (registry.layers, "model_test_mix", Mix),
    (registry.layers, "model_test_undeclared", Undeclared),
    (registry.layers, "model_test_shadow", Shadow),
    (registry.heads, "model_test_head", LinearHead),
)


@pytest.fixture(autouse=True)
def _registered():
    """Register the components of this module."""
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


def test_a_spec_is_unchanged_by_json_and_pickle():
    one = graph([LIFT, component("model_test_mix", scale=0.5, writes={"h": "m"}), MIX], readout={"h": "m"})
    assert ModelSpec.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_single_name_is_not_a_list_of_components():
    for parts in ({"features": "knn"}, {"layers": "gcn"}, {"layers": {"name": "gcn"}}):
        with pytest.raises(WiringError, match=rf"{next(iter(parts))}"):
            ModelSpec("test", **parts)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"name": "x", "layer": []}, "'layer'.*'layers'"),
        ({"layers": []}, "'name'"),
        ({"name": 3}, "name"),
        ({"name": "x", "layers": "gcn"}, "layers"),
        ({"name": "x", "layers": ["gcn", 3]}, "layers.* 3"),
        ({"name": "x", "readout": {"h": 3}}, "readout.h"),
        ({"name": "x", "heads": {"edge_classifier": 3}}, "heads.edge_classifier"),
        ([], "model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_plain_data_is_an_error_with_the_path_of_the_key(data, path):
    with pytest.raises(WiringError, match=path):
        ModelSpec.from_dict(data)


def test_logits_have_one_row_per_node_and_the_width_of_the_target(batch):
    model = build_model(graph([LIFT, MIX]), TARGET, seed=0)
    assert model(batch)["logits"].shape == (8, 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda b: [b], "list"),
        (lambda b: {"pos": b.pos}, "dict"),
        (lambda b: without(b, "aatype", "pos"), "'aatype', 'pos'"),
    ],
)
def test_an_input_that_is_not_a_graph_of_the_models_features_is_an_error(batch, given, words):
    with pytest.raises(FieldError, match=words):
        build_model(graph([component("model_test_lift", reads=["aatype"])]), TARGET, seed=0)(given(batch))


@pytest.mark.slow
def test_a_compiled_model_gives_the_same():
    """Also for a single graph, whose edges are checked outside the traced code."""
    residues = make_protein((12,), seed=0)
    layers = [component("embed", reads=["aatype"], dim=8), component("gcn", dim=8)]
    model = build_model(ModelSpec("test", [component("knn", k=3)], layers), TARGET, seed=0).eval()
    one = model.plan.precompute(residues)
    for given in (one, collate([one, one])):
        with torch.no_grad():
            expected = model(given)["logits"]
            torch.testing.assert_close(torch.compile(model, backend="eager")(given)["logits"], expected)


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
    model = build_model(
        graph([component("model_test_lift", reads=["b_factor"])], features=["model_test_height"]), TARGET
    )
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


def test_a_layer_without_effect_on_the_head_is_dead():
    g = graph([LIFT, component("model_test_mix", writes={"h": "unused"}), MIX])
    assert g.dead_layers() == ["layers[1] (model_test_mix)"]


@pytest.mark.parametrize(
    ("layers", "rest", "error", "words"),
    [
        ([MIX], {}, WiringError, r"layers\[0\] \(model_test_mix\) reads 'h'"),
        ([LIFT, component("model_test_mix", reads={"h": "aatyp"})], {}, WiringError, "'aatyp'.*'aatype'"),
        ([LIFT, component("model_test_mix", reads={"x": "h"})], {}, WiringError, "'x'.*h, extra"),
        ([LIFT, component("model_test_mix", writes={"x": "h"})], {}, WiringError, "'x'.* h"),
        ([LIFT, component("model_test_mix", reads=["h"])], {}, WiringError, "model_test_mix"),
        ([LIFT, component("model_test_mix", writes={"h": "edges"})], {}, WiringError, "'edges'"),
        ([LIFT, MIX], {"readout": {"h": "hh"}}, WiringError, "'test'.*'hh'"),
        ([LIFT, component("model_test_mix", dims=3)], {}, OptionError, r"layers\[1\] \(model_test_mix\): got 'dims'"),
        ([LIFT, component("model_test_mx")], {}, UnknownNameError, "model_test_mix"),
        ([component("model_test_lift", reads=["pos"])], {}, WiringError, "pos"),
        ([LIFT, component("model_test_undeclared")], {}, WiringError, r"model_test_undeclared.*\['h'\]"),
        ([LIFT, component("model_test_shadow")], {}, WiringError, r"Shadow sets self\.out to Linear"),
        ([LIFT, component("model_test_buffered")], {}, WiringError, r"Buffered sets self\.declare to Tensor"),
        ([LIFT, component("model_test_line")], {"features": ["knn"]}, WiringError, "Line declares 'line' as an object"),
        ([LIFT], {"features": ["model_test_height", "model_test_height"]}, WiringError, "'b_factor'"),
        (
            [LIFT],
            {"heads": {"model_test_head": {"biass": True}}},
            OptionError,
            r"head \(model_test_head\): got 'biass'",
        ),
        ([component("model_test_mix", reads={"h": "edge_vec"})], {}, WiringError, "'edge_vec'"),
    ],
)
def test_invalid_wiring_is_an_error_with_its_path_and_data(layers, rest, error, words):
    with pytest.raises(error, match=words):
        build_model(graph(layers, **rest), TARGET)


@pytest.mark.parametrize("seed", [0, 1, None])
def test_a_layer_that_seeds_torch_when_it_is_created_is_refused(seed):
    with pytest.raises(ComponentError, match=r"layers\[1\] \(model_test_seeding\) calls torch.manual_seed\(7\)"):
        build_model(graph([LIFT, component("model_test_seeding")]), TARGET, seed=seed)


EDGES = ["knn", "edge_distance", "b_factor"]


@pytest.mark.parametrize(
    ("layers", "readout", "words"),
    [
        ([component("gat", reads={"edge_attr": "h"})], "h", "edge_attr is of level edge, 'h' of level node"),
        ([component("gat", reads={"h": "edge_dist"})], "h", "h is of level node, 'edge_dist' of level edge"),
        ([component("transformer", reads={"h": "edge_dist"})], "h", "h is of level node, 'edge_dist' of level edge"),
        ([component("schnet", reads={"edge_dist": "b_factor"})], "h", "edge_dist is of level edge"),
        ([component("gcn", reads={"edges": "edge_dist"})], "h", "edges are reduction objects"),
        ([component("gcn", reads={"h": "aatype"})], "h", "h are floating-point numbers, 'aatype' are integers"),
        ([component("egnn", reads={"pos": "aatype"})], "h", "pos are floating-point numbers, 'aatype' are integers"),
        ([], "pos", "readout of model 'test'.*'pos' are positions"),
        ([], "aatype", "readout of model 'test'.*'aatype' are integers"),
        ([], "backbone_mask", "readout of model 'test'.*'backbone_mask' are booleans"),
        ([], "edge_dist", "readout of model 'test'.*'edge_dist' is of level edge"),
        ([], "proteins", "readout of model 'test'.*'proteins' are reduction objects"),
    ],
)
def test_a_field_of_another_level_or_kind_is_an_error_when_the_model_is_built(layers, readout, words):
    embed = component("embed", reads=["aatype"], dim=16)
    with pytest.raises(WiringError, match=words):
        build_model(graph([embed, *layers], features=EDGES, readout={"h": readout}), TARGET)


def test_a_layer_of_any_level_reads_edges_under_the_name_h():
    layers = [LIFT, component("linear", reads={"h": "edge_dist"}, writes={"h": "edge_attr"}), component("gat")]
    model = build_model(graph(layers, features=EDGES), TARGET)
    assert model.fields["edge_attr"].level == "edge"


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        (component("edge_distance", writes={"zzz": "foo"}), "no output 'zzz'.*edge_dist"),
        (component("edge_distance", reads={"zzz": "pos"}), "no input 'zzz'.*pos, edges"),
        (component("radius", writes={"edge_index": "edges2"}), "makes the edges"),
        (component("edge_rbf", reads={"edge_dist": "b_factor"}), "edge_dist is of level edge, 'b_factor'"),
        (component("residue_one_hot", reads={"aatype": "b_factor"}), "aatype are integers"),
    ],
)
def test_a_featurizer_with_another_name_level_or_kind_is_an_error(feature, words):
    with pytest.raises(WiringError, match=words):
        graph([LIFT], features=[*EDGES, feature]).plan()


def test_a_tensor_featurizer_may_read_what_a_renamed_one_wrote(batch):
    features = ["model_test_height", component("model_test_height", writes={"b_factor": "again"})]
    model = build_model(graph([component("model_test_lift", reads=["again", "b_factor"])], features=features), TARGET)
    assert torch.equal(model.embed(batch)["again"], batch.pos[:, 2:])


def test_the_summary_has_one_row_per_component_and_counts_every_parameter():
    model = build_model(graph([LIFT, component("model_test_mix", scale=0.5)], features=["model_test_height"]), TARGET)
    rows = summarize_model(model)
    assert [r.name for r in rows] == ["model_test_height", "model_test_lift", "model_test_mix", "model_test_head"]
    assert rows[2].options == ("scale=0.5",) and rows[2].writes == ("h (N, 8) 8x0e",)
    assert sum(r.parameters for r in rows) == model.num_parameters


def test_chirality_propagates_through_the_layers():
    mirror = ModelSpec("m", [], [LIFT, MIX])
    assert not build_model(mirror, TARGET).fields["h"].chiral
    handed = ModelSpec("h", [], [component("model_test_lift", reads=["chain", "aatype"]), MIX])
    assert not build_model(handed, TARGET).fields["h"].chiral


def test_the_diagram_has_all_components_and_fields():
    spec = graph([LIFT, MIX], features=["model_test_height"])
    lines = mermaid_text(spec).splitlines()
    dag = spec.dag()
    assert lines[0] == "flowchart TD" and len(lines) == 1 + len(dag) + len(dag.edges)
    assert all(any(data["name"] in line for line in lines) for _, data in dag.nodes(data=True))
    assert any("-->|h|" in line for line in lines)

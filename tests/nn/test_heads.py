"""Heads: shapes of the logits, formulas on edges and pairs, invariance."""

from __future__ import annotations

import pytest
import torch
from e3nn import o3

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError
from protgraph.nn.heads import Pool
from protgraph.nn.heads.edge import ContactHead, EdgeHead
from protgraph.nn.heads.perceptron import GraphHead, NodeHead

SIZES = (7, 5, 9)
MIXED = FieldSpec("h", "node", "4x0e+3x1o")


def target(level, kind="classification", size=3):
    return Target("label", level, kind, size)


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("hidden", [(), (16, 8)])
def test_node_and_graph_heads_write_one_row_each(scene, specs, kind, hidden):
    s = scene(SIZES)
    node = NodeHead({"h": specs["h"]}, target("node", kind), hidden=hidden)
    graph = GraphHead({n: specs[n] for n in ("h", "proteins")}, target("graph", kind), hidden=hidden)
    assert node(s.inputs(["h"]))["logits"].shape == (21, 3)
    assert graph(s.inputs(["h", "proteins"]))["logits"].shape == (3, 3)
    assert len(node.mlp) == 1 + 3 * len(hidden)


def test_pools_are_their_formulas(scene, float64):
    s = scene(SIZES)
    parts = s.f["h"].split(SIZES)
    for mode, formula in {"mean": lambda x: x.mean(0), "sum": lambda x: x.sum(0), "max": lambda x: x.amax(0)}.items():
        expected = torch.stack([formula(x) for x in parts])
        torch.testing.assert_close(Pool(12, mode)(s.f["h"], s.proteins()), expected, rtol=1e-13, atol=1e-14)
    pool = Pool(12, "attention")
    expected = torch.stack([(pool.score(x).softmax(0) * x).sum(0) for x in parts])
    torch.testing.assert_close(pool(s.f["h"], s.proteins()), expected, rtol=1e-13, atol=1e-14)
    with pytest.raises(OptionError, match="pool='men'.*'mean'"):
        Pool(12, "men")


@pytest.mark.parametrize("with_edge", [True, False])
@pytest.mark.parametrize("degree", [None, 3])
def test_edge_head_is_a_perceptron_of_the_pair(scene, specs, float64, with_edge, degree):
    s = scene(SIZES, degree=degree)
    names = ("h", "edges", *(["edge_attr"] if with_edge else []))
    head = EdgeHead({n: specs[n] for n in names}, target("edge"))
    j, i = s.index
    z = head.target_linear(s.f["h"])[i] + head.source_linear(s.f["h"])[j]
    if with_edge:
        z = z + head.edge_linear(s.f["edge_attr"])
    expected = head.out_linear(z.relu())
    torch.testing.assert_close(head(s.inputs(names))["logits"], expected, rtol=1e-12, atol=1e-13)


def test_symmetric_edge_head_is_invariant_to_exchange_of_i_and_j(scene, specs, float64):
    s = scene(SIZES)
    names = ("h", "edges")
    given = {n: specs[n] for n in names}
    there = s.index[:, (s.index[0, :, None] == s.index[1]).logical_and(s.index[1, :, None] == s.index[0]).any(1)]
    place = {(int(j), int(i)): e for e, (j, i) in enumerate(s.index.t())}
    pairs = [(place[int(j), int(i)], place[int(i), int(j)]) for j, i in there.t()]
    one, other = torch.tensor(pairs).t()
    for symmetric in (True, False):
        logits = EdgeHead(given, target("edge"), symmetric=symmetric)(s.inputs(names))["logits"]
        assert torch.allclose(logits[one], logits[other], rtol=1e-12, atol=1e-13) == symmetric


@pytest.mark.parametrize("size", [1, 2])
def test_contact_head_is_its_formula_pair_after_pair(scene, specs, float64, size):
    s = scene(SIZES)
    head = ContactHead({n: specs[n] for n in ("h", "proteins")}, target("pair", "multilabel", size), rank=4)
    head.bias.data.normal_()
    got = head(s.inputs(["h", "proteins"]))["logits"]
    assert got.shape == (sum(n * n for n in SIZES), size)
    u, v = head.project(s.f["h"]), head.single(s.f["h"])
    rows, start = [], 0
    for n in SIZES:
        for i in range(start, start + n):
            for j in range(start, start + n):
                rows.append((head.sign * u[i] * u[j]).sum(1) + v[i] + v[j] + head.bias)
        start += n
    torch.testing.assert_close(got, torch.stack(rows), rtol=1e-12, atol=1e-13)
    first = got[:49].view(7, 7, size)
    torch.testing.assert_close(first, first.transpose(0, 1), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "head, level", [(NodeHead, "node"), (GraphHead, "graph"), (EdgeHead, "edge"), (ContactHead, "pair")]
)
def test_heads_depend_on_invariants_of_vectors_only(scene, specs, float64, head, level):
    s = scene(SIZES)
    fields = {"h": MIXED, "edges": specs["edges"], "proteins": specs["proteins"]}
    fields = {n: fields[n] for n in head.reads}
    built = head(fields, target(level, "multilabel"))
    h = torch.randn(21, MIXED.dim)
    turned = h @ MIXED.o3.D_from_matrix(o3.rand_matrix()).t()
    a, b = (built(s.inputs(fields, h=x))["logits"] for x in (h, turned))
    torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)
    other = built(s.inputs(fields, h=torch.cat([h[:, :4], 2 * h[:, 4:]], 1)))["logits"]
    assert not torch.allclose(a, other)  # the norms are seen


@pytest.mark.parametrize(("head", "level"), [(NodeHead, "node"), (GraphHead, "graph"), (EdgeHead, "edge")])
def test_heads_start_at_given_logits(scene, specs, head, level):
    s = scene(SIZES)
    made = head({n: specs[n] for n in head.reads}, target(level), hidden=8 if head is EdgeHead else (8,))
    start = torch.tensor([0.5, -1.0, 2.0])
    made.initialize_logits(start)
    logits = made(s.inputs(head.reads))["logits"]
    torch.testing.assert_close(logits, start.expand_as(logits))
    logits.square().sum().backward()
    assert made.last_linear.weight.grad.abs().sum() > 0  # and learn from there


@pytest.mark.parametrize(("head", "level"), [(NodeHead, "node"), (GraphHead, "graph")])
def test_values_are_outputs_times_their_scale(scene, specs, head, level):
    s = scene(SIZES)
    made = head({n: specs[n] for n in head.reads}, target(level, "regression"))
    usual = made(s.inputs(head.reads))["logits"]
    made.scale.copy_(torch.tensor([1.0, 10.0, 1000.0]))
    torch.testing.assert_close(made(s.inputs(head.reads))["logits"], usual * made.scale)
    start = torch.tensor([0.5, -100.0, 2e4])
    made.initialize_logits(start)
    torch.testing.assert_close(made(s.inputs(head.reads))["logits"], start.expand_as(usual))
    made.shift.copy_(torch.tensor([-3.0, 0.0, 1e4]))
    torch.testing.assert_close(made(s.inputs(head.reads))["logits"], start.expand_as(usual) + made.shift)
    made.initialize_logits(start)
    torch.testing.assert_close(made(s.inputs(head.reads))["logits"], start.expand_as(usual))
    assert head({n: specs[n] for n in head.reads}, target(level, "multilabel")).scale is None


@pytest.mark.parametrize(("head", "level"), [(NodeHead, "node"), (GraphHead, "graph")])
def test_weights_without_a_shift_load_and_give_the_same_bits(scene, specs, head, level):
    s = scene(SIZES)
    made = head({n: specs[n] for n in head.reads}, target(level, "regression"))
    made.scale.copy_(torch.tensor([1.0, 10.0, 1000.0]))
    state = {name: value for name, value in made.state_dict().items() if name != "shift"}
    loaded = head({n: specs[n] for n in head.reads}, target(level, "regression"))
    loaded.load_state_dict(state, strict=True)
    assert torch.equal(loaded(s.inputs(head.reads))["logits"], made(s.inputs(head.reads))["logits"])
    with pytest.raises(RuntimeError, match="scale"):
        loaded.load_state_dict({name: value for name, value in state.items() if name != "scale"}, strict=True)


def test_contacts_start_at_given_logits(scene, specs):
    s = scene(SIZES)
    made = ContactHead({n: specs[n] for n in ContactHead.reads}, target("pair", "multilabel"))
    start = torch.tensor([0.5, -1.0, 2.0])
    made.initialize_logits(start)
    logits = made(s.inputs(ContactHead.reads))["logits"]
    torch.testing.assert_close(logits, start.expand_as(logits))
    logits.square().sum().backward()
    assert made.sign.grad.abs().sum() > 0
    assert made.single.weight.grad.abs().sum() > 0

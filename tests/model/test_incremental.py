"""Incremental inference equals a forward pass on whole proteins; all state is in the returned caches."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import FieldError, WiringError
from protgraph.model.incremental import first_nodes, incremental_step
from protgraph.nn.kv_cache import KVCache
from protgraph.testing.protein_fixtures import make_protein

TARGET = pg.Target("type", "node", "classification", 20)
PLACE, BOTH = {"seq_pos": "seq_pos"}, {"seq_pos": "seq_pos", "chain": "chain"}
EMBED = pg.component("embed", reads=["previous"], dim=12)


def block(name="pre_norm_block", *, reads=PLACE, **options):
    return pg.component(name, heads=2, causal=True, reads=reads, **options)


MODELS = {
    "pre_norm": [block(), block()],
    "post_norm": [block("post_norm_block"), block("post_norm_block")],
    "transformer": [pg.component("transformer", dim=12, heads=2, causal=True)],
    "set": [block(reads={})],
    "chains": [block(reads=BOTH), block(reads=BOTH)],
    "offset": [block(position="offset"), block(position="offset")],
    "offset of chains": [block(position="offset", reads=BOTH)],
    "attention": [pg.component("attention", dim=12, heads=2, causal=True, gate=True, bias=False, writes={"h": "m"}),
                  pg.component("residual", reads={"update": "m"})],
    "context": [pg.component("linear", dim=7, writes={"h": "c"}), block(reads=PLACE | {"context": "c"})],
    "masked": [block(reads=PLACE | {"mask": "known"}), block(position="offset", reads=PLACE | {"mask": "known"})],
    "learned places": [pg.component("position", reads=PLACE), block(reads={})],
    "sinusoids of chains": [pg.component("position", kind="sinusoidal", reads=BOTH), block(reads={})],
}  # fmt: skip


class TypeIsKnown(pg.GraphLayer):
    """A mask that hides every third position."""

    reads, writes = ("seq_pos",), ("known",)

    def __init__(self, fields):
        super().__init__(fields)
        self.declare(known=pg.FieldSpec("known", "node", "1x0e", "bool", shape=()))

    def forward(self, f):
        return {"known": f["seq_pos"] % 3 != 1}


def build(layers, dtype=torch.float64):
    pg.layers.register("type_is_known", TypeIsKnown)
    layers = [EMBED, *(["type_is_known"] if layers is MODELS["masked"] else []), *layers, "layer_norm"]
    graph = pg.ModelSpec("causal", features=["previous_residue"], layers=layers)
    return pg.build_model(graph, TARGET, seed=0).to(dtype).eval()


def proteins(model, lengths=(9, 6), n=3):
    return collate([model.plan.precompute(make_protein(lengths, seed=seed)) for seed in range(n)])


def stepped(model, batch, cuts):
    parts, progress = [], None
    for cut in cuts:
        logits, progress = incremental_step(model, first_nodes(batch, cut), progress)
        parts.append(logits.view(batch.num_graphs, -1, TARGET.size))
    return torch.cat(parts, 1).flatten(0, 1)


@pytest.mark.parametrize("cuts", [range(1, 16), (15,), (4, 5, 9, 10, 15)], ids=["one by one", "at once", "in parts"])
@pytest.mark.parametrize("name", MODELS)
def test_steps_equal_the_whole(name, cuts):
    model = build(MODELS[name])
    batch = proteins(model)
    with torch.no_grad():
        want, got = model(batch)["logits"], stepped(model, batch, cuts)
    assert want.abs().max() > 0.1
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_steps_equal_the_whole_in_float32():
    model = build(MODELS["chains"], torch.float32)
    batch = proteins(model, lengths=(60,))
    with torch.no_grad():
        torch.testing.assert_close(stepped(model, batch, range(1, 61)), model(batch)["logits"], rtol=1e-4, atol=1e-5)


def test_one_state_can_be_continued_in_several_ways():
    model = build(MODELS["offset of chains"])
    one, other = proteins(model), proteins(model)
    other.aatype = other.aatype.view(3, -1).clone()
    other.aatype[:, 7:] = (other.aatype[:, 7:] + 1) % 20
    other.aatype = other.aatype.flatten()
    with torch.no_grad():
        _, progress = incremental_step(model, first_nodes(one, 8))
        before = [{k: x.clone() for k, x in cache.tensors.items()} for cache in progress.caches]
        ways = [incremental_step(model, batch, progress)[0] for batch in (one, other)]
        for batch, logits in zip((one, other), ways, strict=True):
            whole = model(batch)["logits"].view(3, 15, -1)[:, 8:].flatten(0, 1)
            torch.testing.assert_close(logits, whole, rtol=1e-12, atol=1e-12)
    after = [cache.tensors for cache in progress.caches]
    assert all(torch.equal(a[k], b[k]) for a, b in zip(before, after, strict=True) for k in a)
    assert not torch.allclose(*ways)


@pytest.mark.parametrize(
    "layers, match",
    [
        ([pg.component("pre_norm_block", heads=2)], r"layers\[1\] \(pre_norm_block\) of 'causal': .*causal=True"),
        ([pg.component("transformer", heads=2, dim=8)], r"layers\[1\] \(transformer\) of 'causal': .*causal=True"),
        ([pg.component("encoder", dim=8, heads=2)], r"layers\[1\] \(encoder\) .*proteins"),
        (
            [pg.component("pair_embed", writes={"pair": "z"}), block(reads={"pair": "z"})],
            r"layers\[1\] \(pair_embed\) .*proteins",
        ),
    ],
)
def test_a_layer_that_cannot_run_incrementally_is_named(layers, match):
    model = build(layers)
    with pytest.raises(WiringError, match=match):
        incremental_step(model, proteins(model))


def test_unequal_numbers_of_new_nodes_are_an_error():
    model = build(MODELS["pre_norm"])
    uneven = collate([model.plan.precompute(make_protein((n,), seed=n)) for n in (4, 5)])
    with pytest.raises(WiringError, match=r"\(4, 5\)"):
        incremental_step(model, uneven)
    with pytest.raises(FieldError, match=r"\(1, 2\)"):
        KVCache().append(pg.Proteins(torch.tensor([0, 1, 1]), (1, 2)), k=torch.zeros(3))
    _, progress = incremental_step(model, proteins(model))
    with pytest.raises(WiringError, match="15"):
        incremental_step(model, proteins(model), progress)


def test_first_nodes_keep_their_fields_and_edges_are_an_error():
    model = build(MODELS["pre_norm"])
    batch = proteins(model, n=2)
    first = first_nodes(batch, 4)
    assert first.sizes == (4, 4) and first.batch.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert torch.equal(first.aatype, batch.aatype.view(2, -1)[:, :4].flatten())
    assert torch.equal(first.pos, batch.pos.view(2, -1, 3)[:, :4].flatten(0, 1))
    batch.edge_index = torch.zeros(2, 0, dtype=torch.long)
    with pytest.raises(WiringError, match="edges"):
        first_nodes(batch, 4)


def test_the_work_of_a_step_is_linear_in_the_nodes_so_far():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    model, n = build(MODELS["pre_norm"]), 2
    batch = proteins(model, lengths=(97,), n=n)
    work = []
    for seen in (32, 64, 96):
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            _, progress = incremental_step(model, first_nodes(batch, seen))
            before = counter.get_total_flops()
            incremental_step(model, first_nodes(batch, seen + 1), progress)
            work.append(counter.get_total_flops() - before)
    grows = n * 2 * 32 * 2 * 2 * 12  # 32 nodes more, in 2 blocks: products and sums over 12 channels
    assert work[1] - work[0] == work[2] - work[1] == grows
    assert work[0] < before / 20  # of the 96 at once

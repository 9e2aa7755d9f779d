"""``attention``, ``global_attention``, the blocks and ``encoder`` against other programs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.esm.encoder import Encoder
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS, MASK, TOKENS
from protgraph_plugins.esm.weights import encoder_from_esm
from protgraph_plugins.structure_module.pair import EvoformerPair
from torch import nn

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import FieldError, OptionError, WiringError
from protgraph.nn.dot_product_attention import DotProductAttention, pair_term
from protgraph.nn.heads import Pool
from protgraph.nn.layers.attention import Attention
from protgraph.nn.layers.transformer import PostNormBlock, PreNormBlock
from protgraph.ops import Proteins
from protgraph.structure.residues.alphabet import ALPHABET
from tests.reference.openfold import load_global_attention


def vectors(folder, name):
    whole = {k: torch.from_numpy(v) for k, v in np.load(folder / f"{name}.npz").items()}
    return whole, {k.removeprefix("w/"): v for k, v in whole.items() if k.startswith("w/")}


def partition(sizes):
    return Proteins(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), tuple(sizes))


def close(ours, theirs, tol=1e-10):
    assert (ours - theirs).abs().max() <= tol * theirs.abs().max()


# OpenFold


def test_core_with_bias_and_gate_equals_openfold(shared_reference):
    t, w = vectors(shared_reference / "evoformer", "attention_bias_gate")  # 2 batches, 6 ask 8 that answer
    q_x, kv_x, bias = (t[f"in/{n}"].requires_grad_() for n in ("q_x", "kv_x", "bias"))
    heads = bias.size(1)
    asking, answering = partition((6, 6)), partition((8, 8))
    q = (q_x.flatten(0, 1) @ w["linear_q.weight"].T).unflatten(1, (heads, -1))
    k, v = ((kv_x.flatten(0, 1) @ w[f"linear_{n}.weight"].T).unflatten(1, (heads, -1)) for n in "kv")
    terms = [pair_term(bias.transpose(0, 1).flatten(1))]
    out = DotProductAttention()(q, k, v, asking, keys=answering, terms=terms).flatten(1)
    gate = (q_x.flatten(0, 1) @ w["linear_g.weight"].T + w["linear_g.bias"]).sigmoid()
    out = ((gate * out) @ w["linear_o.weight"].T + w["linear_o.bias"]).view_as(t["out/o"])
    close(out, t["out/o"])
    loss = (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum()
    for x, name in zip(torch.autograd.grad(loss, [q_x, kv_x, bias]), ("q_x", "kv_x", "bias"), strict=True):
        close(x, t[f"grad/{name}"])


def row_attention(w):
    """The first part of ``evoformer_pair`` with the weights of an ``MSARowAttentionWithPairBias``."""
    width, (heads, pair) = w["mha.linear_q.weight"].size(1), w["linear_z.weight"].shape
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "pair": FieldSpec("pair", "pair", f"{pair}x0e")}
    block = EvoformerPair({**fields, "proteins": field("proteins")}, heads=heads, pair_heads=1).double()
    block.norm.load_state_dict({k: w[f"layer_norm_m.{k}"] for k in ("weight", "bias")})
    block.pair_norm.load_state_dict({"weight": w["layer_norm_z.weight"]})  # softmax removes the other
    state = {f"{ours}.{k}": w[f"mha.linear_{theirs}.{k}"]
             for ours, theirs in (("out", "o"), ("gate", "g")) for k in ("weight", "bias")}  # fmt: skip
    state["query.weight"], state["pair.weight"] = w["mha.linear_q.weight"], w["linear_z.weight"]
    state["key_value.weight"] = torch.cat([w["mha.linear_k.weight"], w["mha.linear_v.weight"]])
    block.attention.load_state_dict(state)
    return block


def test_row_attention_with_pair_bias_equals_openfold(shared_reference):
    t, w = vectors(shared_reference / "evoformer", "msa_row_pair_bias")  # 5 sequences of 9 residues
    block, z = row_attention(w), t["in/z"].flatten(0, 1)
    for m, mask, want in zip(t["in/m"], t["in/mask"].bool(), t["out/o"], strict=True):
        there = mask.sum()  # residues that are not there are no nodes
        pairs = z[(mask[:, None] & mask).flatten()]
        f = {"pair": block.pair_norm(pairs), "proteins": partition((int(there),))}
        close(block.attention(block.norm(m[mask]), f), want[mask])


def test_global_attention_equals_openfold(shared_reference):
    t, w = vectors(shared_reference / "evoformer", "global_attention")
    there = t["in/mask"].bool()
    layer = load_global_attention(w)
    out = layer({"h": t["in/m"][there], "proteins": partition(there.sum(1).tolist())})["h"]
    close(out, t["out/o"][there])


# torch


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_blocks_equal_torchs_encoder_layer(float64, norm_first, act):
    theirs = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, activation=act, norm_first=norm_first, batch_first=True)
    fields = {"h": FieldSpec("h", "node", "12x0e"), "proteins": field("proteins")}
    ours = (PreNormBlock if norm_first else PostNormBlock)(fields, heads=3, hidden=20, act=act)
    weight, bias = theirs.self_attn.in_proj_weight.data, theirs.self_attn.in_proj_bias.data
    attention = ours.attention
    attention.query.weight.data, attention.key_value.weight.data = weight[:12], weight[12:]
    attention.query.bias.data, attention.key_value.bias.data = bias[:12], bias[12:]
    attention.out.load_state_dict(theirs.self_attn.out_proj.state_dict())
    for mine, other in ((ours.feed_forward[0], theirs.linear1), (ours.feed_forward[3], theirs.linear2),
                        (ours.norms[0], theirs.norm1), (ours.norms[1], theirs.norm2)):  # fmt: skip
        mine.load_state_dict(other.state_dict())
    h = torch.randn(9, 12)
    want = torch.cat([theirs(part.unsqueeze(0)).squeeze(0) for part in h.split((4, 5))])
    close(ours({"h": h, "proteins": partition((4, 5))})["h"], want, 1e-12)


# ESM-2


def test_encoder_equals_esm2_at_every_depth(shared_reference):
    t, w = vectors(shared_reference / "esm2", "esm2_tiny")  # one of the sequences has a masked residue
    encoder = encoder_from_esm(w, heads=t["out/attentions"].size(2))
    tokens = t["in/tokens"]
    sizes = [int((row == TOKENS.index("<eos>")).nonzero()) - 1 for row in tokens]
    inside = [slice(1, size + 1) for size in sizes]
    assert bool((tokens == MASK).any())
    f = {
        "aatype": torch.cat([row[s] for row, s in zip(tokens, inside, strict=True)]),
        "seq_pos": torch.cat([torch.arange(size) for size in sizes]),
        "proteins": partition(sizes),
    }
    for depth, state in enumerate(encoder.states(f)):
        want = torch.cat([row[s] for row, s in zip(t[f"out/repr{depth}"], inside, strict=True)])
        close(state, want, 1e-6)
    token, given, _ = encoder._read(f)
    h = encoder._embed(token, given)
    for number, block in enumerate(encoder.blocks):
        weights = block.attention.weights(block.norms[0](h), given)
        for b, (weight, size) in enumerate(zip(weights, sizes, strict=True)):
            close(weight, t["out/attentions"][b, number, :, : size + 2, : size + 2], 1e-6)
        h = block({"h": h, **given})["h"]


def encoder(**options):
    fields = {n: field(n) for n in ("aatype", "seq_pos", "chain", "proteins")}
    return Encoder(fields, dim=8, heads=2, depth=1, **options)


SEQUENCE = {
    "aatype": torch.tensor([0, 4, 20, 3, 3]),
    "seq_pos": torch.tensor([0, 1, 2, 0, 5]),
    "chain": torch.zeros(5, dtype=torch.long),
}


def test_every_residue_type_has_its_token():
    assert "".join(TOKENS[t] for t in AATYPE_TOKENS) == ALPHABET
    assert len(TOKENS) == 33 and TOKENS[4] == "L" and TOKENS[32] == "<mask>"


@pytest.mark.parametrize("position", ["rotary", "offset", "sinusoidal", "learned", "none"])
def test_encoder_depends_on_positions_unless_it_has_none(float64, position):
    layer = encoder(position=position)
    moved = torch.tensor([0, 1, 9, 0, 2])
    a, b = (layer({**SEQUENCE, "seq_pos": p, "proteins": partition((3, 2))})["h"] for p in (SEQUENCE["seq_pos"], moved))
    assert torch.allclose(a, b) is (position == "none")
    assert a.shape == (5, 8)


def test_a_protein_longer_than_max_len_is_an_error():
    with pytest.raises(FieldError, match=r"protein 0 .* 3 .*max_len=2"):
        encoder(max_len=2)({**SEQUENCE, "proteins": partition((3, 2))})
    with pytest.raises(FieldError, match="position 5.* 4"):
        encoder(max_len=5, position="learned")({**SEQUENCE, "proteins": partition((3, 2))})
    encoder(max_len=6, position="learned")({**SEQUENCE, "proteins": partition((3, 2))})


# Wiring


def test_edge_bias_applies_to_the_pairs_of_edges_only(scene, specs, float64):
    s = scene((4, 3))
    names = ("h", "proteins", "edges", "edge_attr")
    layer = Attention({n: specs[n] for n in names}, dim=8, heads=2)
    layer.attention.edge.data.normal_()
    f = s.inputs(names)
    plain = Attention({n: specs[n] for n in ("h", "proteins")}, dim=8, heads=2)
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if "edge" not in k})
    values = layer.attention.edge.t() + f["edge_attr"] @ layer.attention.edge_attr.weight.t()  # (E, H)
    with_bias, without = (x.attention.weights(f["h"], f) for x in (layer, plain))
    start = 0
    for a, b in zip(with_bias, without, strict=True):
        factor = torch.ones_like(a)
        for e, (j, i) in enumerate((s.index - start).t().tolist()):
            if 0 <= i < a.size(1):
                factor[:, i, j] = values[e].exp()
        torch.testing.assert_close(a, b * factor / (b * factor).sum(-1, keepdim=True), rtol=1e-11, atol=1e-12)
        start += a.size(1)


def test_keys_and_values_come_from_the_context(scene, specs, float64):
    s = scene((4, 3))
    fields = {n: specs[n] for n in ("h", "proteins")} | {"context": FieldSpec("context", "node", "5x0e")}
    layer, context = Attention(fields, dim=8, heads=2), torch.randn(7, 5)
    before = layer({**s.inputs(("h", "proteins")), "context": context})["h"]
    context = context.clone()
    context[5] += 1  # of the second protein
    after = layer({**s.inputs(("h", "proteins")), "context": context})["h"]
    assert torch.equal(before[:4], after[:4]) and (before[4:] != after[4:]).all(1).all()


@pytest.mark.parametrize("level", ["node", "pair"])
def test_masked_nodes_and_pairs_get_no_weight(scene, specs, float64, level):
    s = scene((4, 3))
    mask = FieldSpec("mask", level, "1x0e", "bool", shape=())
    layer = Attention({n: specs[n] for n in ("h", "proteins")} | {"mask": mask}, dim=8, heads=2)
    seen = torch.tensor([True, True, False, True, True, False, True])
    pairs = torch.cat([part.repeat(len(part)) for part in seen.split((4, 3))])
    f = {**s.inputs(("h", "proteins")), "mask": seen if level == "node" else pairs}
    for weight, part in zip(layer.attention.weights(f["h"], f), seen.split((4, 3)), strict=True):
        assert not weight[:, :, ~part].any()
    h = f["h"].clone()
    h[2] += 1
    assert torch.equal(layer({**f, "h": h})["h"][[0, 1, 3]], layer(f)["h"][[0, 1, 3]])


@pytest.mark.parametrize(
    "extra, options, error, match",
    [
        ((), {"position": "rotary"}, WiringError, "position='rotary'.*seq_pos"),
        (("seq_pos",), {"position": "rotry"}, OptionError, "'rotry'.*'rotary'"),
        (("seq_pos",), {"dim": 12, "heads": 4}, OptionError, "dim=12, heads=4"),
        (("edge_attr",), {}, WiringError, "'edge_attr'.*'edges'"),
        (("chain",), {}, WiringError, "'chain'.*'seq_pos'"),
    ],
)
def test_invalid_fields_and_options_are_errors(specs, extra, options, error, match):
    with pytest.raises(error, match=match):
        Attention({n: specs[n] for n in ("h", "proteins", *extra)}, **options)


def test_learned_queries_pool_each_protein_alone(float64):
    pool, h = Pool(6, "queries"), torch.randn(9, 6)
    whole = pool(h, partition((4, 5)))
    alone = torch.cat([pool(part, partition((len(part),))) for part in h.split((4, 5))])
    torch.testing.assert_close(whole, alone, rtol=1e-12, atol=1e-12)
    order = torch.tensor([3, 1, 0, 2, 8, 4, 6, 5, 7])
    torch.testing.assert_close(pool(h[order], partition((4, 5))), whole, rtol=1e-12, atol=1e-12)

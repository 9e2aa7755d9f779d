"""``encoder`` as BERT, masks and positional encodings, against torch's modules and closed forms."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.esm.encoder import Encoder
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS, END, MASK, START
from torch import nn

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import FieldError, OptionError
from protgraph.nn.layers.embed import Position
from protgraph.nn.positional_encoding import CHAIN_GAP, sinusoid
from protgraph.ops import Proteins

TYPES = torch.tensor([0, 4, 20, 3, 3, 17, 8])
SIZES = (4, 3)
F = {
    "aatype": TYPES,
    "seq_pos": torch.tensor([0, 1, 2, 5, 0, 1, 2]),
    "chain": torch.tensor([0, 0, 1, 1, 0, 0, 0]),
    "masked": torch.tensor([False, True, False, False, False, False, True]),
    "proteins": Proteins(torch.tensor([0, 0, 0, 0, 1, 1, 1]), SIZES),
}


def encoder(*names, **options):
    fields = {n: field(n) for n in ("aatype", "seq_pos", "proteins", *names)}
    return Encoder(fields, dim=8, heads=2, depth=2, **options).eval()


def given(*names):
    return {n: F[n] for n in ("aatype", "seq_pos", "proteins", *names)}


def torch_layer(block, *, norm_first):
    theirs = nn.TransformerEncoderLayer(8, 2, 32, 0.0, "gelu", norm_first=norm_first, batch_first=True).eval()
    a = block.attention
    theirs.self_attn.in_proj_weight.data = torch.cat([a.query.weight, a.key_value.weight])
    theirs.self_attn.in_proj_bias.data = torch.cat([a.query.bias, a.key_value.bias])
    theirs.self_attn.out_proj.load_state_dict(a.out.state_dict())
    pairs = ((theirs.linear1, block.feed_forward[0]), (theirs.linear2, block.feed_forward[3]))
    for mine, other in (*pairs, (theirs.norm1, block.norms[0]), (theirs.norm2, block.norms[1])):
        mine.load_state_dict(other.state_dict())
    return theirs


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_equals_a_bert_made_of_torchs_layers(float64, norm):
    """Token and position embeddings (Devlin et al. 2019, fig. 2), ``<mask>`` a token among others."""
    ours = encoder("masked", position="learned", norm=norm, token_dropout=False, max_len=10)
    for p in ours.norm.parameters():
        p.data.uniform_(0.5, 1.5)
    got = ours(given("masked"))["h"].split(SIZES)
    layers = [torch_layer(block, norm_first=norm == "pre") for block in ours.blocks]
    starts = [0, SIZES[0]]
    for start, size, want in zip(starts, SIZES, got, strict=True):
        rows = slice(start, start + size)
        inside = torch.tensor(AATYPE_TOKENS)[TYPES[rows]].masked_fill(F["masked"][rows], MASK)
        token = torch.cat([torch.tensor([START]), inside, torch.tensor([END])])
        place = F["seq_pos"][rows]
        place = torch.cat([place[:1] - 1, place, place[-1:] + 1]) + 1
        h = ours.embed.weight[token] + ours.place.weight[place]
        h = ours.norm(h) if norm == "post" else h
        for layer in layers:
            h = layer(h[None])[0]
        h = h if norm == "post" else ours.norm(h)
        torch.testing.assert_close(want, h[1:-1], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("token_dropout", [False, True])
def test_a_masked_residue_is_a_mask_token(float64, token_dropout):
    torch.manual_seed(1)
    ours = encoder("masked", token_dropout=token_dropout)
    fields = {n: field(n) for n in ("seq_pos", "proteins")}
    fields["aatype"] = FieldSpec("token", "node", "0e", "int64", shape=(), classes=33)
    reads_tokens = Encoder(fields, dim=8, heads=2, depth=2, token_dropout=token_dropout).eval()
    reads_tokens.load_state_dict(ours.state_dict())
    token = torch.tensor(AATYPE_TOKENS)[TYPES].masked_fill(F["masked"], MASK)
    want = reads_tokens({**given(), "aatype": token})["h"]
    torch.testing.assert_close(ours(given("masked"))["h"], want, rtol=0, atol=0)
    assert not torch.allclose(encoder("masked")(given("masked"))["h"], want)


# what ``position`` adds


def position(*names, **options):
    fields = {"h": FieldSpec("h", "node", "6x0e")} | {n: field(n) for n in ("seq_pos", "proteins", *names)}
    return Position(fields, **options)


@pytest.mark.parametrize("names", [(), ("chain",)])
def test_sinusoids_and_learned_vectors_are_added_by_position(float64, names):
    h, place = torch.randn(7, 6), F["seq_pos"].clone()
    if names:  # the second chain of the first protein begins after the first's end, at 1, and the gap
        place[2:4] += 1 + CHAIN_GAP - 2
    f = {"h": h, **{n: F[n] for n in ("seq_pos", "proteins", *names)}}
    torch.testing.assert_close(position(*names, kind="sinusoidal")(f)["h"], h + sinusoid(place, 6, torch.float64))
    learned = position(*names, max_len=1000)
    torch.testing.assert_close(learned(f)["h"], h + learned.table.weight[place])


def test_a_position_beyond_the_last_is_an_error():
    f = {"h": torch.zeros(7, 6), "seq_pos": F["seq_pos"], "proteins": F["proteins"]}
    position(max_len=6)(f)
    with pytest.raises(FieldError, match="position 5.* 4"):
        position(max_len=5)(f)
    with pytest.raises(OptionError, match="'sinusoidal'"):
        pg.layers.create("position", position().fields, options={"kind": "sinusoid"})


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "learned", "rotary", "offset"])
def test_the_order_of_types_matters_unless_there_are_no_positions(float64, kind):
    ours, order = encoder(position=kind, max_len=10), torch.tensor([2, 0, 3, 1, 6, 4, 5])
    usual = ours(given())["h"]
    moved = ours({**given(), "aatype": TYPES[order]})["h"]
    assert torch.allclose(moved, usual[order], rtol=1e-9, atol=1e-12) is (kind == "none")
    nodes = {**given(), "aatype": TYPES[order], "seq_pos": F["seq_pos"][order]}  # each with its place: the same
    torch.testing.assert_close(ours(nodes)["h"], usual[order], rtol=1e-10, atol=1e-12)

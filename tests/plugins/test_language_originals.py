"""Small versions of ``gpt.radford2019`` and ``bert.devlin2019`` against GPT-2 and BERT of transformers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS, END, MASK, START

import protgraph as pg
from protgraph.task import language_modeling as language
from protgraph.testing.protein_fixtures import make_protein

transformers = pytest.importorskip("transformers")

WIDTH, HEADS, DEPTH, TARGET = 16, 2, 2, language.NEXT_RESIDUE.target


def small(name):
    """Return the model spec of a variant with smaller width and depth."""
    graph, layers = pg.models.get(name), []
    options = {"dim": WIDTH, "heads": HEADS, "depth": DEPTH, "max_len": 40}
    for n in graph.layers:
        if n.name != "pre_norm_block" or sum(m.name == n.name for m in layers) < DEPTH:
            layers.append(replace(n, options=n.options | {k: v for k, v in options.items() if k in n.options}))
    heads = {"node_classifier": {}}
    return pg.build_model(replace(graph, layers=layers, heads=heads), TARGET, seed=0).double().eval()


def copy_(ours, weight, bias):
    ours.weight.data.copy_(weight)
    ours.bias.data.copy_(bias)


@pytest.fixture
def gpt2(float64):
    config = transformers.GPT2Config(
        vocab_size=22, n_positions=40, n_embd=WIDTH, n_layer=DEPTH, n_head=HEADS, activation_function="gelu"
    )
    torch.manual_seed(0)
    theirs, ours = transformers.GPT2Model(config).double().eval(), small("gpt.radford2019")
    for p in theirs.parameters():
        p.data.add_(0.1 * torch.randn_like(p))
    embed, position, *blocks, norm = ours.layers
    embed.tables["previous"].weight.data.copy_(theirs.wte.weight)
    position.table.weight.data.copy_(theirs.wpe.weight)
    for block, other in zip(blocks, theirs.h, strict=True):
        weight, bias = other.attn.c_attn.weight.t(), other.attn.c_attn.bias  # linear maps of GPT-2 are x W
        copy_(block.attention.query, weight[:WIDTH], bias[:WIDTH])
        copy_(block.attention.key_value, weight[WIDTH:], bias[WIDTH:])
        copy_(block.attention.out, other.attn.c_proj.weight.t(), other.attn.c_proj.bias)
        copy_(block.feed_forward[0], other.mlp.c_fc.weight.t(), other.mlp.c_fc.bias)
        copy_(block.feed_forward[3], other.mlp.c_proj.weight.t(), other.mlp.c_proj.bias)
        for mine, its in zip(block.norms, (other.ln_1, other.ln_2), strict=True):
            copy_(mine, its.weight, its.bias)
    copy_(norm.norm, theirs.ln_f.weight, theirs.ln_f.bias)
    return ours, theirs


def test_gpt_equals_gpt2(gpt2):
    ours, theirs = gpt2
    graph = ours.plan.precompute(make_protein((30,), seed=4))
    previous = torch.cat([torch.tensor([21]), graph.aatype[:-1]])[None]
    with torch.no_grad():
        want = theirs(previous).last_hidden_state[0]
        torch.testing.assert_close(ours.embed(graph)["h"], want, rtol=1e-10, atol=1e-11)
        their_logits = ours.head({"h": want})["logits"]
        torch.testing.assert_close(ours(pg.collate([graph]))["logits"], their_logits, rtol=1e-10, atol=1e-11)


@pytest.fixture
def bert(float64):
    config = transformers.BertConfig(
        vocab_size=33, hidden_size=WIDTH, num_hidden_layers=DEPTH, num_attention_heads=HEADS, layer_norm_eps=1e-5,
        intermediate_size=4 * WIDTH, max_position_embeddings=42, hidden_act="gelu",
    )  # fmt: skip
    torch.manual_seed(0)
    theirs, ours = transformers.BertModel(config, add_pooling_layer=False).double().eval(), small("bert.devlin2019")
    for p in theirs.parameters():
        p.data.add_(0.1 * torch.randn_like(p))
    (encoder,), e = ours.layers, theirs.embeddings
    encoder.embed.weight.data.copy_(e.word_embeddings.weight)
    encoder.place.weight.data.copy_(e.position_embeddings.weight + e.token_type_embeddings.weight[0])
    copy_(encoder.norm, e.LayerNorm.weight, e.LayerNorm.bias)
    for block, other in zip(encoder.blocks, theirs.encoder.layer, strict=True):
        a = other.attention.self
        copy_(block.attention.query, a.query.weight, a.query.bias)
        weight, bias = (torch.cat([getattr(a.key, kind), getattr(a.value, kind)]) for kind in ("weight", "bias"))
        copy_(block.attention.key_value, weight, bias)
        copy_(block.attention.out, other.attention.output.dense.weight, other.attention.output.dense.bias)
        copy_(block.feed_forward[0], other.intermediate.dense.weight, other.intermediate.dense.bias)
        copy_(block.feed_forward[3], other.output.dense.weight, other.output.dense.bias)
        for mine, its in zip(block.norms, (other.attention.output.LayerNorm, other.output.LayerNorm), strict=True):
            copy_(mine, its.weight, its.bias)
    return ours, theirs


def test_bert_equals_transformers(bert):
    ours, theirs = bert
    graph = ours.plan.precompute(make_protein((30,), seed=4))
    graph.masked = torch.arange(30) % 7 == 3
    inside = torch.tensor(AATYPE_TOKENS)[graph.aatype].masked_fill(graph.masked, MASK)
    token = torch.cat([torch.tensor([START]), inside, torch.tensor([END])])[None]
    with torch.no_grad():
        want = theirs(token).last_hidden_state[0, 1:-1]
        torch.testing.assert_close(ours.embed(graph)["h"], want, rtol=1e-10, atol=1e-11)

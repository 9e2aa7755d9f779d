"""Positional encodings: gaps, chains, order of nodes, rotary and offset encodings against closed forms."""

from __future__ import annotations

import pytest
import torch

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.featurize.residue_features import SequencePosition
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.layers.attention import Attention
from protgraph.nn.positional_encoding import CHAIN_GAP, OffsetBias, position_index, rotate, sinusoid
from protgraph.ops import Proteins

PROTEINS = Proteins(torch.tensor([0, 0, 0, 0, 0, 1, 1, 1]), (5, 3))
SEQ_POS = torch.tensor([0, 1, 4, 0, 1, 7, 0, 2])
CHAIN = torch.tensor([0, 0, 0, 1, 1, 5, 3, 3])


def test_positions_count_gaps_and_separate_chains():
    assert position_index(SEQ_POS, PROTEINS).tolist() == SEQ_POS.tolist()
    place = position_index(SEQ_POS, PROTEINS, CHAIN)
    assert place.tolist() == [0, 1, 4, 4 + CHAIN_GAP, 5 + CHAIN_GAP, 2 + CHAIN_GAP, 0, 2]


def test_positions_do_not_depend_on_the_order_of_nodes():
    order = torch.tensor([3, 0, 4, 2, 1, 7, 5, 6])
    place = position_index(SEQ_POS[order], PROTEINS, CHAIN[order])
    assert torch.equal(place, position_index(SEQ_POS, PROTEINS, CHAIN)[order])


@pytest.mark.parametrize("dim", [16, 6])
def test_sinusoids_are_those_of_the_featurizer(float64, dim):
    (want,) = SequencePosition(dim=dim)({"seq_pos": SEQ_POS}).values()
    torch.testing.assert_close(sinusoid(SEQ_POS, dim, torch.float64), want, rtol=1e-12, atol=1e-12)


def test_rotated_products_depend_on_the_difference_of_positions_only(float64):
    q, k = torch.randn(8, 3, 6), torch.randn(8, 3, 6)
    place = torch.randint(0, 1000, (8,))

    def products(shift):
        return torch.einsum("ihd,jhd->hij", rotate(q, place + shift), rotate(k, place + shift))

    torch.testing.assert_close(products(12345), products(0), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(rotate(q, 0 * place), q)
    torch.testing.assert_close(rotate(q, place).norm(dim=-1), q.norm(dim=-1))


def test_rotation_as_complex_numbers(float64):
    """Su et al. 2021, eq. 12: multiply the complex number of channels c and c + D/2 by exp(i p ω_c)."""
    x, place = torch.randn(8, 2, 6), torch.arange(8)
    omega = 10000.0 ** (-torch.arange(3.0) / 3)
    turned = torch.complex(x[..., :3], x[..., 3:]) * torch.exp(1j * place[:, None, None] * omega)
    torch.testing.assert_close(rotate(x, place), torch.cat([turned.real, turned.imag], -1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("chains", [False, True])
def test_offset_bias_is_the_table_looked_up_for_each_pair(float64, padded, chains):
    bias = OffsetBias(2, reach=2, chains=chains)
    proteins = Proteins(PROTEINS.batch, PROTEINS.sizes, padded=padded)
    zero = torch.zeros(8, 2, 1)
    weights = DotProductAttention().weights(zero, zero, proteins, terms=[bias(SEQ_POS, CHAIN if chains else None)])
    start = 0
    for weight in weights:
        n = weight.size(1)
        logits = torch.empty(2, n, n)
        for i in range(n):
            for j in range(n):
                a, b = start + i, start + j
                other = chains and CHAIN[a] != CHAIN[b]
                column = 5 if other else int((SEQ_POS[b] - SEQ_POS[a]).clamp(-2, 2)) + 2
                logits[:, i, j] = bias.table[:, column].detach()
        torch.testing.assert_close(weight, logits.softmax(-1), rtol=1e-12, atol=1e-12)
        start += n


def _layer(**options):
    fields = {"h": FieldSpec("h", "node", "8x0e"), "proteins": field("proteins")}
    if options:
        fields |= {"seq_pos": field("seq_pos"), "chain": field("chain")}
    return Attention(fields, dim=8, heads=2, **options)


@pytest.mark.parametrize("options", [{}, {"position": "rotary"}, {"position": "offset"}], ids=str)
def test_attention_depends_on_sequence_order_only_with_positions(float64, options):
    layer = _layer(**options)
    h, order = torch.randn(8, 8), torch.tensor([3, 0, 4, 2, 1, 7, 5, 6])
    f = {"proteins": PROTEINS, "seq_pos": SEQ_POS, "chain": CHAIN}
    before = layer({"h": h, **f})["h"]
    torch.testing.assert_close(  # nodes in another order, each with its place: the same
        layer({"h": h[order], "proteins": PROTEINS, "seq_pos": SEQ_POS[order], "chain": CHAIN[order]})["h"],
        before[order],
        rtol=1e-11,
        atol=1e-12,
    )
    moved = layer({"h": h[order], **f})["h"]  # types in another order along the sequence
    assert torch.allclose(moved, before[order], rtol=1e-9) is not bool(options)


def test_order_of_chains_matters_to_rotary_positions_only(float64):
    h, f = torch.randn(8, 8), {"proteins": PROTEINS, "seq_pos": SEQ_POS}
    renamed = torch.tensor([1, 1, 1, 0, 0, 3, 5, 5])
    for position, matters in (("rotary", True), ("offset", False)):
        layer = _layer(position=position)
        a, b = (layer({"h": h, "chain": chain, **f})["h"] for chain in (CHAIN, renamed))
        assert torch.allclose(a, b, rtol=1e-9) is not matters

"""``transformer`` equals PyG's TransformerConv on the explicit complete graph, and a softmax written out."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import TransformerConv

from protgraph.errors import OptionError
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.layers.transformer import Transformer
from protgraph.ops import Proteins

SIZES = [(7, 5, 9), (6, 6), (4,), (1, 3, 1)]


def make(specs, **options):
    return Transformer({n: specs[n] for n in ("h", "proteins")}, dim=16, heads=4, **options)


def complete(sizes):
    """Every ordered pair of each protein, self pairs too: ``(2, Σ L²)``."""
    starts = [sum(sizes[:b]) for b in range(len(sizes))]
    pairs = [torch.cartesian_prod(torch.arange(n), torch.arange(n)) + s for s, n in zip(starts, sizes, strict=True)]
    return torch.cat(pairs).t().flip(0)


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("root", [True, False])
def test_equals_pyg_on_the_complete_graph(scene, specs, agree, float64, dtype, tol, sizes, root):
    s = scene(sizes)
    ours = make(specs, root=root)
    theirs = TransformerConv(12, 4, heads=4, root_weight=root)
    for name, part in zip(("lin_query", "lin_key", "lin_value"), range(3), strict=True):
        getattr(theirs, name).weight.data.copy_(ours.qkv.weight[16 * part : 16 * (part + 1)])
        getattr(theirs, name).bias.data.copy_(ours.qkv.bias[16 * part : 16 * (part + 1)])
    if root:
        theirs.lin_skip.load_state_dict(ours.root.state_dict())
    ours, theirs = ours.to(dtype), theirs.to(dtype)
    h = s.f["h"].to(dtype).requires_grad_()
    f = s.inputs(ours.fields, h=h)
    agree(lambda: ours(f)["h"], lambda: theirs(h, complete(sizes)), [h], tol=tol)
    value = torch.autograd.grad(ours(f)["h"].sin().sum(), ours.qkv.weight)[0][32:]
    b = torch.autograd.grad(theirs(h, complete(sizes)).sin().sum(), theirs.lin_value.weight)[0]
    assert (value - b).abs().max() <= tol * b.abs().max()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_padded_and_unpadded_attention_equal_the_explicit_softmax(scene, agree, float64, padded, sizes):
    s = scene(sizes)
    qkv = torch.randn(s.num_nodes, 3, 4, 5, requires_grad=True)
    proteins = Proteins(s.proteins().batch, sizes, padded=padded)

    def explicit():
        rows = []
        for q, k, v in (part.unbind(1) for part in qkv.split(sizes)):
            alpha = torch.softmax(torch.einsum("ihd,jhd->hij", q, k) / 5**0.5, -1)
            rows.append(torch.einsum("hij,jhd->ihd", alpha, v))
        return torch.cat(rows)

    agree(lambda: DotProductAttention()(*qkv.unbind(1), proteins), explicit, [qkv], tol=1e-12)


def test_residues_of_other_proteins_have_no_effect(scene, specs):
    s = scene()
    layer = make(specs)
    before = layer(s.inputs(layer.fields))["h"]
    changed = s.f["h"].clone()
    changed[:7] += 1
    after = layer(s.inputs(layer.fields, h=changed))["h"]
    assert torch.equal(before[7:], after[7:]) and not torch.allclose(before[:7], after[:7])


def test_dropout_acts_only_in_training(scene, specs):
    s = scene()
    layer = make(specs, dropout=0.5)
    f = s.inputs(layer.fields)
    assert not torch.equal(layer(f)["h"], layer(f)["h"])
    layer.eval()
    assert torch.equal(layer(f)["h"], layer(f)["h"])


def test_heads_must_divide_dim(specs):
    with pytest.raises(OptionError, match="dim=16.*heads=3"):
        Transformer(specs, dim=16, heads=3)

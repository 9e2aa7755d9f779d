"""Pair features: embedding, outer products, triangle updates and the Evoformer block, against OpenFold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.structure_module.pair import PairEmbed
from protgraph_plugins.structure_module.triangle import TriangleAttention

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.ops import Proteins
from tests.reference.openfold import load_outer_product_mean, load_triangle_attention, load_triangle_multiplication

TRIANGLES = {
    "tri_mul_out": lambda w: load_triangle_multiplication(w, edges="outgoing"),
    "tri_att_start": lambda w: load_triangle_attention(w, node="starting"),
}


def vectors(folder, name):
    whole = {k: torch.from_numpy(v) for k, v in np.load(folder / "evoformer" / f"{name}.npz").items()}
    return whole, {k.removeprefix("w/"): v for k, v in whole.items() if k.startswith("w/")}


def partition(sizes):
    return Proteins(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), tuple(sizes))


def close(ours, theirs, tol=1e-10):
    assert (ours - theirs).abs().max() <= tol * theirs.abs().max()


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles_equal_openfold(shared_reference, name, dtype, tol):
    t, w = vectors(shared_reference, name)
    there = t["in/mask"][0].bool()  # the last residues are padding, which is not a node here
    n = int(there.sum())
    assert 0 < n < len(there)
    z, want = (x[there][:, there].flatten(0, 1) for x in (t["in/z"], t["out/o"]))
    layer = TRIANGLES[name]({k: v.to(dtype) for k, v in w.items()})
    out = layer({"pair": z.to(dtype), "proteins": partition((n,))})["pair"]
    assert out.dtype == dtype
    close(out.double(), want, tol)


@pytest.mark.parametrize("name", TRIANGLES)
def test_the_other_triangle_is_the_same_on_transposed_pairs(shared_reference, float64, name):
    """Algorithms 12 and 14 against 11 and 13, which have reference vectors."""
    _, w = vectors(shared_reference, name)
    one = TRIANGLES[name](w)
    z = torch.randn(5, 5, 8)
    if name == "tri_att_start":
        other = load_triangle_attention(w, node="ending")
        want = one({"pair": z.transpose(0, 1).flatten(0, 1), "proteins": partition((5,))})["pair"]
        want = want.view(5, 5, -1).transpose(0, 1).flatten(0, 1)
    else:
        other = load_triangle_multiplication(w, edges="incoming")
        x = other.layer_norm_in(z)
        a = other.linear_a_g(x).sigmoid() * other.linear_a_p(x)
        b = other.linear_b_g(x).sigmoid() * other.linear_b_p(x)
        summed = torch.stack(
            [torch.stack([sum(a[k, i] * b[k, j] for k in range(5)) for j in range(5)]) for i in range(5)]
        )
        want = (other.linear_g(x).sigmoid() * other.linear_z(other.layer_norm_out(summed))).flatten(0, 1)
    close(other({"pair": z.flatten(0, 1), "proteins": partition((5,))})["pair"], want, 1e-12)


def test_outer_product_mean_equals_openfold_for_each_sequence(shared_reference):
    t, w = vectors(shared_reference, "opm")
    layer = load_outer_product_mean(w)
    bias, total, count = layer.linear_out.bias, 0.0, 0.0
    for m, mask in zip(t["in/m"], t["in/mask"], strict=True):
        both = mask[:, None] * mask  # (L, L)
        alone = layer({"h": m, "proteins": partition((len(m),))})["pair"].unflatten(0, both.shape)
        total, count = total + (alone - bias) * both.unsqueeze(2), count + both
    valid = t["out/valid"].bool()
    close(((total + bias) / (count + 1e-3).unsqueeze(2))[valid], t["out/o"][valid])


def test_pair_embed_puts_edges_on_their_pairs(scene, float64):
    s = scene((4, 3))
    node_fields = {"h": FieldSpec("h", "node", "6x0e"), **{n: field(n) for n in ("seq_pos", "chain", "proteins")}}
    edge_fields = {"edges": field("edges"), "edge_attr": FieldSpec("edge_attr", "edge", "5x0e")}
    layer = PairEmbed({**node_fields, **edge_fields}, dim=8, reach=2)
    layer.edge.data.normal_()
    f = s.inputs([*node_fields, *edge_fields])
    f["h"] = torch.randn(s.num_nodes, 6)
    with_edges = layer(f)["pair"]
    plain = PairEmbed(node_fields, dim=8, reach=2)
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if not k.startswith("edge")})
    extra = with_edges - plain(f)["pair"]
    want = torch.zeros(7, 7, 8)
    want[s.index[1], s.index[0]] = layer.edge + layer.edge_attr(f["edge_attr"])
    torch.testing.assert_close(extra, torch.cat([want[:4, :4].flatten(0, 1), want[4:, 4:].flatten(0, 1)]).detach())


def test_a_node_field_as_pair_field_is_an_error():
    with pytest.raises(WiringError, match="'pair'.*node"):
        TriangleAttention({"pair": FieldSpec("pair", "node", "8x0e"), "proteins": field("proteins")})

"""Geometric layers of ``python -m benchmarks layers``, with the plain formula or another library."""

from __future__ import annotations

import torch
from e3nn import o3
from protgraph_plugins.egnn import EGNN
from protgraph_plugins.gvp.layers import GVPConv
from protgraph_plugins.gvp.perceptron import ScalarVectorWidths
from protgraph_plugins.ipa.attention import IPA
from protgraph_plugins.mace.product_basis import ProductBasis
from protgraph_plugins.se3_transformer.layers import SE3Conv, SE3Transformer
from protgraph_plugins.tfn import TFN
from torch import Tensor, nn
from torch_geometric.nn.models.schnet import GaussianSmearing, InteractionBlock

from benchmarks.layer_case import LayerInputs, SpeedCase, leaf
from benchmarks.plain_geometric import PlainEGCL, PlainGVPConv, PlainIPA
from benchmarks.plain_steerable import PlainProductBasis, PlainSE3Conv, PlainSE3Transformer, PlainTFN
from benchmarks.synthetic_inputs import scalars
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.testing.symmetry import random_rotations
from tests.reference.schnet import load_interaction_block

__all__ = ["CASES"]

VECTORS, EDGE_SCALARS, HEADS, CUTOFF, GAUSSIANS = 16, 32, 8, 40.0, 50
STEERABLE = "128x0e+32x1o"
PAIRWISE = "16x0e+16x1o"  # as many channels as the paper's network: each pair of them has a function of the distance
BODIES = "128x0e+128x1o"


def egnn(s: LayerInputs) -> SpeedCase:
    """Compare EGNN with its equations on every edge; x is h and positions."""
    width, fields = s.h.size(1), {"h": scalars("h", s.h.size(1)), "pos": field("pos"), "edges": field("edges")}
    ours = EGNN(fields | {"edge_attr": scalars("edge_attr", s.e.size(1))}, dim=width, scale=10.0)
    plain = PlainEGCL(ours)

    def run(x: Tensor) -> Tensor:
        out = ours({"h": x[:, :width], "pos": x[:, width:], "edges": s.edges, "edge_attr": s.e})
        return torch.cat([out["h"], out["pos"]], 1)

    return SpeedCase(
        run,
        ours,
        "plain formula",
        lambda x: torch.cat(plain(x[:, :width], x[:, width:], s.edges.index, s.e), 1),
        plain,
        leaf(s.h, s.pos),
        f"{width} channels",
        (5 * width**2, 2 * width**2 + (s.e.size(1) + 2) * width, "5 W on nodes; 2 W and W_e on edges"),
    )


def gvp_conv(s: LayerInputs) -> SpeedCase:
    """Compare GVPConv, gate "scalar", with its equations on every edge."""
    node, edge = ScalarVectorWidths(s.h.size(1), VECTORS), ScalarVectorWidths(EDGE_SCALARS, 1)
    fields = {"h": FieldSpec("h", "node", node.irreps), "edge_attr": FieldSpec("edge_attr", "edge", edge.irreps)}
    ours = GVPConv(fields | {"edges": field("edges")})
    plain = PlainGVPConv(ours)
    e = torch.randn(s.edges.num_edges, EDGE_SCALARS + 3)
    es, ev = e[:, :EDGE_SCALARS], e[:, EDGE_SCALARS:, None].mT

    def theirs(x: Tensor) -> Tensor:
        h, v = plain(x[:, : node.scalars], x[:, node.scalars :].unflatten(1, (-1, 3)), s.edges.index, es, ev)
        return torch.cat([h, v.flatten(1)], 1)

    return SpeedCase(
        lambda x: ours({"h": x, "edges": s.edges, "edge_attr": e})["h"],
        ours,
        "plain formula",
        theirs,
        plain,
        leaf(s.h, torch.randn(len(s.h), 3 * VECTORS)),
        node.irreps,
        (
            10 * node.scalars**2,
            node.scalars**2,
            "W_s on nodes, but for the middle GVP on edges",
        ),
    )


def schnet(s: LayerInputs) -> SpeedCase:
    """Compare SchNet with PyG's InteractionBlock and the smearing before it."""
    width, j_i = s.h.size(1), s.edges.index
    theirs, smear = InteractionBlock(width, GAUSSIANS, width, CUTOFF), GaussianSmearing(0.0, CUTOFF, GAUSSIANS)
    ours = load_interaction_block(theirs.state_dict(), cutoff=CUTOFF)
    d = s.vec.norm(dim=1, keepdim=True)
    return SpeedCase(
        lambda x: ours({"h": x, "edges": s.edges, "edge_dist": d})["h"],
        ours,
        "PyG InteractionBlock",
        lambda x: theirs(x, j_i, d.flatten(), smear(d.flatten())),
        theirs,
        leaf(s.h),
        f"{width} channels",
        (3 * width**2, width**2 + (GAUSSIANS + 1) * width, "W₁, W₂, W₃ on nodes; F and a sum on edges"),
    )


def _steerable(s: LayerInputs) -> tuple[dict[str, FieldSpec], Tensor]:
    fields = {"h": FieldSpec("h", "node", STEERABLE), "edge_vec": field("edge_vec"), "edges": field("edges")}
    x = torch.randn(len(s.h), o3.Irreps(STEERABLE).dim).requires_grad_()
    return fields | {"edge_attr": scalars("edge_attr", s.e.size(1))}, x


def tfn(s: LayerInputs) -> SpeedCase:
    """Compare TFN, mode "channelwise", with e3nn's product and linear map."""
    fields, x = _steerable(s)
    ours = TFN(fields, irreps=STEERABLE)
    plain, vec, mid = PlainTFN(ours), s.vec, ours.irreps_mid
    nodes = sum(p.channels * mid[p.o].dim for p in ours.product.paths)
    edges = sum(ours.fc[2].weight.shape) * ours.fc[2].in_features
    return SpeedCase(
        lambda h: ours({"h": h, "edge_vec": vec, "edges": s.edges, "edge_attr": s.e})["h"],
        ours,
        "e3nn TensorProduct and Linear",
        lambda h: plain(h, vec, s.edges.index, s.e),
        plain,
        x,
        STEERABLE,
        (nodes, edges, "self-interaction on nodes; R on edges"),
    )


def se3_transformer(s: LayerInputs) -> SpeedCase:
    """Compare SE3Transformer, mode "channelwise", with keys and values of e3nn's product on every edge."""
    fields, x = _steerable(s)
    ours = SE3Transformer(fields, irreps=STEERABLE)
    plain, vec, attention = PlainSE3Transformer(ours), s.vec, ours.attention
    values, paths = attention.values, attention.product.paths
    nodes = sum(p.channels * values[p.o].dim for p in paths)
    edges = sum(attention.fc[2].weight.shape) * attention.fc[2].in_features
    return SpeedCase(
        lambda h: ours({"h": h, "edge_vec": vec, "edges": s.edges, "edge_attr": s.e})["h"],
        ours,
        "plain formula with e3nn TensorProduct",
        lambda h: plain(h, vec, s.edges.index, s.e),
        plain,
        x,
        STEERABLE,
        (nodes, edges, "W_V on nodes; R on edges"),
    )


def se3_conv(s: LayerInputs) -> SpeedCase:
    """Compare SE3Conv, a radial function per pair of channels, with the paper's kernel matrices of every edge."""
    fields = {"h": FieldSpec("h", "node", PAIRWISE), "edge_vec": field("edge_vec"), "edges": field("edges")}
    ours = SE3Conv(fields | {"edge_attr": scalars("edge_attr", s.e.size(1))}, irreps=PAIRWISE)
    plain, vec, paths = PlainSE3Conv(ours), s.vec, ours.kernel.product.paths
    edges = sum(
        w.numel() + w[0].numel() * ours.irreps_out[p.o].ir.dim for w, p in zip(ours.kernel.weights, paths, strict=True)
    )
    return SpeedCase(
        lambda h: ours({"h": h, "edge_vec": vec, "edges": s.edges, "edge_attr": s.e})["h"],
        ours,
        "plain formula with e3nn TensorProduct",
        lambda h: plain(h, vec, s.edges.index, s.e),
        plain,
        leaf(torch.randn(len(s.h), o3.Irreps(PAIRWISE).dim)),
        PAIRWISE,
        (0, edges, "R of every pair of channels, and R times products, on edges"),
    )


def product_basis(s: LayerInputs) -> SpeedCase:
    """Compare ProductBasis of degree 3 with MACE's contractions of dense coupling tensors, one factor after another."""
    ours = ProductBasis({"h": FieldSpec("h", "node", BODIES)}, correlation=3)
    plain, channels = PlainProductBasis(ours), ours.channels
    return SpeedCase(
        lambda h: ours({"h": h})["h"],
        ours,
        "plain formula, dense contractions",
        plain,
        plain,
        leaf(torch.randn(len(s.h), o3.Irreps(BODIES).dim)),
        BODIES,
        (channels * 4 * (4 * 15) + 4 * channels**2, 0, "monomials of two factors to P_d, and W on nodes"),
    )


def ipa(s: LayerInputs) -> SpeedCase:
    """Compare IPA, pair features on edges, with algorithm 22 with tensors over all pairs."""
    width = s.h.size(1)
    fields = {name: field(name) for name in ("frame", "pos", "proteins", "edges")}
    fields |= {"h": scalars("h", width), "edge_attr": scalars("edge_attr", s.e.size(1))}
    ours = IPA(fields, dim=width, heads=HEADS)
    frame = random_rotations(len(s.h)).to(s.h)
    f = {"frame": frame, "pos": s.pos, "proteins": s.proteins, "edges": s.edges, "edge_attr": s.e}
    plain, sizes = PlainIPA(ours), s.proteins.sizes
    maps = sum(m.weight.numel() for m in ours.children() if isinstance(m, nn.Linear) and m is not ours.linear_b)
    joined = ours.linear_kv.out_features + ours.linear_kv_points.out_features  # of k, v and their points
    return SpeedCase(
        lambda h: ours({"h": h, **f})["h"],
        ours,
        "plain formula on all pairs",
        lambda h: plain(h, frame, s.pos, sizes, s.edges.index, s.e),
        plain,
        leaf(s.h),
        f"{width} channels",
        (
            maps + joined * s.proteins.num_pairs / len(s.h),
            2 * s.e.size(1) * HEADS,
            "linear maps on nodes; logits and sums on all pairs; pair features on edges",
        ),
    )


CASES = {
    "egnn": egnn,
    "gvp_conv": gvp_conv,
    "ipa": ipa,
    "product_basis": product_basis,
    "schnet": schnet,
    "se3_conv": se3_conv,
    "se3_transformer": se3_transformer,
    "tfn": tfn,
}

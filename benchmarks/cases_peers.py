"""Layers of ``python -m benchmarks layers``, with packages of PyPI that compute the same with the same weights.

The packages are in the extra ``peers`` or in the comment beside it; a layer whose package is not installed is not
measured, and a warning names the package.

Not measured, because they compute other functions: ``se3-transformer-pytorch`` 0.9 (radial networks with layer
normalization, keys of another form) and the ``Convolution`` of e3nn 0.5 (products with node attributes).
``GVP_MPNN`` of geometric-vector-perceptron 0.0.14 calls methods that PyG 2.8 does not have; its perceptron is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from e3nn import o3
from protgraph_plugins.egnn import EGNN
from protgraph_plugins.gvp.layers import GVPLayer
from protgraph_plugins.gvp.perceptron import ScalarVectorWidths
from protgraph_plugins.ipa.attention import IPA
from torch import Tensor, nn

from benchmarks.layer_case import LayerInputs, SpeedCase, leaf
from benchmarks.synthetic_inputs import scalars
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.ops import Edges
from protgraph.testing.symmetry import random_rotations
from tests.reference.mace import load_product_basis

__all__ = ["CASES", "missing_peers"]

HEADS, PAIR, MESSAGE, VECTORS, CORRELATION = 8, 16, 64, 16, 3
BODIES = "64x0e+64x1o"


def ipa_package(s: LayerInputs) -> SpeedCase:
    """Compare IPA, dense pair features, with lucidrains' InvariantPointAttention."""
    package, width, (b, n) = import_module("invariant_point_attention"), s.h.size(1), _batch(s)
    theirs = package.InvariantPointAttention(dim=width, heads=HEADS, point_value_dim=8, pairwise_repr_dim=PAIR)
    fields = {name: field(name) for name in ("frame", "pos", "proteins")}
    fields |= {"h": scalars("h", width), "pair": FieldSpec("pair", "pair", f"{PAIR}x0e")}
    ours = IPA(fields, dim=width, heads=HEADS, unit=1.0)
    with torch.no_grad():
        _copy_ipa(ours, theirs)
    frame, pair = random_rotations(b * n).to(s.h), torch.randn(b * n * n, PAIR)
    frames = {"rotations": frame.view(b, n, 3, 3), "translations": s.pos.view(b, n, 3) / 10}
    dense, f = pair.view(b, n, n, PAIR), {"frame": frame, "pos": s.pos / 10, "proteins": s.proteins, "pair": pair}
    maps = sum(m.weight.numel() for m in theirs.modules() if isinstance(m, nn.Linear))
    return SpeedCase(
        lambda x: ours({"h": x, **f})["h"],
        ours,
        "invariant-point-attention",
        lambda x: theirs(x.view(b, n, width), dense, **frames).flatten(0, 1),
        theirs,
        leaf(s.h),
        f"{width} channels",
        (maps + n * (2 * PAIR + 2 * 16 + 3 * (4 + 8)) * HEADS, 0, "linear maps on nodes; logits and sums on all pairs"),
    )


def _copy_ipa(ours: IPA, theirs: Any) -> None:
    """Copy weights; points are ordered (3, H, P) in AlphaFold's layout and (H, P, 3) in the package."""

    def planes(weight: Tensor, points: int) -> Tensor:
        return weight.unflatten(0, (HEADS, points, 3)).permute(2, 0, 1, 3)  # (3, H, P, C)

    for linear in ours.children():
        if isinstance(linear, nn.Linear) and linear.bias is not None:
            linear.bias.zero_()
    ours.linear_q.weight.copy_(theirs.to_scalar_q.weight)
    k, v = (m.weight.unflatten(0, (HEADS, -1)) for m in (theirs.to_scalar_k, theirs.to_scalar_v))
    ours.linear_kv.weight.copy_(torch.cat([k, v], 1).flatten(0, 1))
    queries, values = ours.points
    ours.linear_q_points.weight.copy_(planes(theirs.to_point_q.weight, queries).flatten(0, 2))
    k, v = planes(theirs.to_point_k.weight, queries), planes(theirs.to_point_v.weight, values)
    ours.linear_kv_points.weight.copy_(torch.cat([k, v], 2).flatten(0, 2))
    ours.linear_b.weight.copy_(theirs.to_pairwise_attn_bias[0].weight)
    ours.head_weights.copy_(theirs.point_weights)
    scalar, points, norms, pair = theirs.to_out.weight.split(
        [HEADS * 16, HEADS * values * 3, HEADS * values, HEADS * PAIR], 1
    )
    points = points.unflatten(1, (HEADS, values, 3)).permute(0, 3, 1, 2).flatten(1)
    ours.linear_out.weight.copy_(torch.cat([scalar, points, norms, pair], 1))
    ours.linear_out.bias.copy_(theirs.to_out.bias)


def egnn_package(s: LayerInputs) -> SpeedCase:
    """Compare EGNN with that of egnn-pytorch, which searches the same neighbors, the node itself among them."""
    package, width, (b, n) = import_module("egnn_pytorch"), s.h.size(1), _batch(s)
    count = s.edges.max_degree + 1
    theirs = package.EGNN(dim=width, m_dim=MESSAGE, num_nearest_neighbors=count, init_eps=0.05)
    fields = {"h": scalars("h", width), "pos": field("pos"), "edges": field("edges")}
    ours = EGNN(fields, dim=width, hidden=MESSAGE, reduce="sum")
    ours.edge_mlp, ours.node_mlp, ours.coord_mlp = theirs.edge_mlp, theirs.node_mlp, theirs.coors_mlp
    node, pos = torch.arange(len(s.h)), s.pos / 10
    incoming = torch.cat([node.unsqueeze(1), s.edges.index[0].view(len(s.h), -1)], 1)
    edges = Edges(torch.stack([incoming.flatten(), node.repeat_interleave(count)]), len(s.h), degree=count)

    def run(x: Tensor) -> Tensor:
        out = ours({"h": x[:, :width], "pos": x[:, width:], "edges": edges})
        return torch.cat([out["h"], out["pos"]], 1)

    def peer(x: Tensor) -> Tensor:
        x = x.view(b, n, -1)
        return torch.cat(theirs(x[..., :width], x[..., width:]), 2).flatten(0, 1)

    hidden = theirs.edge_mlp[0].out_features
    return SpeedCase(
        run,
        ours,
        "egnn-pytorch, with its neighbor search",
        peer,
        theirs,
        leaf(s.h, pos),
        f"{width} channels, messages of {MESSAGE} through {hidden}",
        (2 * hidden * width, hidden * (MESSAGE + 1) + 4 * MESSAGE**2, "W_i and W_j on nodes; the rest of φ on edges"),
    )


def gvp_package(s: LayerInputs) -> SpeedCase:
    """Compare one GVP on every edge with that of geometric-vector-perceptron."""
    package, width, edges = import_module("geometric_vector_perceptron"), s.h.size(1), s.edges.num_edges
    widths = ScalarVectorWidths(width, VECTORS)
    theirs = package.GVP(
        dim_vectors_in=VECTORS,
        dim_vectors_out=VECTORS,
        dim_feats_in=width,
        dim_feats_out=width,
        feats_activation=nn.SiLU(),
    )
    ours = GVPLayer(
        {"e": FieldSpec("e", "edge", widths.irreps)}, irreps=widths.irreps, act="silu", gate="norm", norm=False
    )
    with torch.no_grad():
        ours.gvp.wh.weight.copy_(theirs.Wh.t())
        ours.gvp.wv.weight.copy_(theirs.Wu.t())
        norms, rest = theirs.to_feats_out[0].weight[:, width:], theirs.to_feats_out[0].weight[:, :width]
        ours.gvp.ws.weight.copy_(torch.cat([rest, norms], 1))
        ours.gvp.ws.bias.copy_(theirs.to_feats_out[0].bias)

    def peer(x: Tensor) -> Tensor:
        h, v = theirs((x[:, :width], x[:, width:].unflatten(1, (VECTORS, 3))))
        return torch.cat([h, v.flatten(1)], 1)

    return SpeedCase(
        lambda x: ours({"e": x})["h"],
        ours,
        "geometric-vector-perceptron",
        peer,
        theirs,
        torch.randn(edges, width + 3 * VECTORS).requires_grad_(),
        widths.irreps,
        (0, width * (width + VECTORS) + 6 * VECTORS**2, "W_s, W_h and W_v on edges"),
    )


def mace_package(s: LayerInputs) -> SpeedCase:
    """Compare ProductBasis with mace-torch's SymmetricContraction and e3nn's linear map after it."""
    contraction = import_module("mace.modules.symmetric_contraction").SymmetricContraction
    irreps = o3.Irreps(BODIES)
    theirs = nn.ModuleList([contraction(irreps, irreps, CORRELATION, num_elements=1), o3.Linear(irreps, irreps)])
    channels, element = irreps[0].mul, torch.ones(len(s.h), 1)
    ours = load_product_basis(_mace_state(theirs, irreps), irreps_in=BODIES, irreps=BODIES)

    def peer(x: Tensor) -> Tensor:
        parts = x.split([mul * ir.dim for mul, ir in irreps], 1)
        joined = torch.cat([part.unflatten(1, (channels, -1)) for part in parts], 2)  # (N, C, D)
        return theirs[1](theirs[0](joined, element))

    return SpeedCase(
        lambda x: ours({"h": x})["h"],
        ours,
        "mace-torch SymmetricContraction, e3nn Linear",
        peer,
        theirs,
        torch.randn(len(s.h), irreps.dim).requires_grad_(),
        BODIES,
        (channels * 4 * (4 * 15) + 4 * channels**2, 0, "monomials of two factors to P_d, and W on nodes"),
    )


def _mace_state(theirs: nn.ModuleList, irreps: o3.Irreps) -> dict[str, Tensor]:
    """Rename parameters as in geometric-gnn-dojo; mace-torch numbers the weights from the highest degree down."""
    state = {"linear.weight": theirs[1].weight.detach()}
    for (mul, ir), contraction in zip(irreps, theirs[0].contractions, strict=True):
        where = f"symmetric_contractions.contractions.{mul}x{ir}."
        for degree in range(1, CORRELATION + 1):
            weight = contraction.weights_max if degree == CORRELATION else contraction.weights[CORRELATION - 1 - degree]
            state[f"{where}U_matrix_{degree}"] = contraction.U_tensors(degree)
            state[f"{where}weights.{degree}"] = weight.detach()[0]
    return state


def _batch(s: LayerInputs) -> tuple[int, int]:
    """Return the number of proteins and their common length."""
    return len(s.proteins), s.proteins.sizes[0]


#: Module of a package → name of the case and its function.
_PEERS: dict[str, tuple[str, Callable[[LayerInputs], SpeedCase]]] = {
    "egnn_pytorch": ("egnn, package", egnn_package),
    "geometric_vector_perceptron": ("gvp, package", gvp_package),
    "invariant_point_attention": ("ipa, package", ipa_package),
    "mace": ("product_basis, package", mace_package),
}
CASES = {name: case for module, (name, case) in _PEERS.items() if find_spec(module)}


def missing_peers() -> list[str]:
    """Return the packages that are not installed, by the names of their modules."""
    return [module for module in _PEERS if not find_spec(module)]

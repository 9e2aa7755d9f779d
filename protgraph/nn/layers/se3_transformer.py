"""SE(3)-Transformer attention: equivariant keys and values on edges, invariant weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from e3nn import o3
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError
from protgraph.nn.attention_recorder import AttentionMixin, EdgeWeights
from protgraph.nn.layers.gate import Gate
from protgraph.nn.layers.irreps import IrrepsLinear
from protgraph.nn.layers.radial import BesselBasis, polar
from protgraph.nn.layers.se3_conv import PairwiseKernel, RadialNets
from protgraph.nn.mlp import check_choice
from protgraph.nn.module import GraphLayer
from protgraph.nn.tensor_product import ChannelwiseProduct, TensorProductBackend
from protgraph.ops import Edges

__all__ = ["SE3Transformer"]
ENTRY_POINTS = {"protgraph.layers": {"se3_transformer": "SE3Transformer"}}


class SE3Transformer(GraphLayer):
    """``h_i ← Gate(W [Σ_j α_ij v_ij, h_i])``, ``α_ij = softmax_j(<q_i, k_ij> / sqrt(D))``, ``q_i = W_Q h_i``.

    Keys ``k_ij = W_K(r_ij) h_j`` and values ``v_ij = W_V(r_ij) h_j`` are tensor field network messages, so they turn
    with the protein and their products with queries do not.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        What ``h``, ``edge_vec`` and, where wired, ``edge_attr`` hold.
    irreps : str
        Of the output; with a gate, even scalars come first.
    value : str
        Irreps of values; keys have those among them that h has. "": as ``irreps``.
    heads : int
        Heads; multiplicities of ``value`` are multiples of it.
    lmax : int
        Largest degree of the spherical harmonics.
    mode : {"channelwise", "full"}
        "channelwise": one radial function per channel of h and coupling, then maps over channels. "full": one per
        pair of channels (:class:`~protgraph.nn.layers.se3_conv.PairwiseKernel`), as in the paper.
    radial : int
        Width of the radial networks.
    nets : {"one", "output", "pair"}
        Radial networks of mode "full": one, one per block of the output, or one per pair of blocks.
    layer_norm : bool
        Whether those of mode "full" normalize their hidden layers.
    basis, cutoff : int, float
        Bessel functions of the distance, and where they vanish (Å), where no ``edge_attr`` is wired.
    gate : bool
        Apply :class:`~protgraph.nn.layers.gate.Gate`.
    parity : bool
        True: O(3), pseudovectors are not vectors. False: SO(3), as in the paper; the output is then chiral.
    backend : {"e3nn", "cuequivariance"}
        Whose tensor product runs.

    Notes
    -----
    Reads ``h`` (N, any irreps), ``edge_vec`` (E, 3) Å, ``edges``; optional ``edge_attr`` (E, scalars).
    Writes ``h`` (N, irreps). D counts the numbers of a key, all heads together, as in both published codes.

    In mode "channelwise" keys and values are two linear maps of one product z_ij, so both maps are taken on nodes:
    ``<q_i, W_K z_ij> = <W_Kᵀ q_i, z_ij>`` and ``Σ_j α_ij W_V z_ij = W_V Σ_j α_ij z_ij``.

    Deviations from the paper: the skip is NVIDIA's, a linear map of attention beside h; a gate follows; parity is
    kept unless ``parity=False``; mode "channelwise".

    References
    ----------
    Fuchs, Worrall, Fischer & Welling 2020, arXiv:2006.10503, eqs. 10–12; weights of NVIDIA's SE3Transformer load
    through :func:`protgraph.nn.layers.se3_reference.from_reference`.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edge_vec", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        irreps: str = "64x0e+16x1o",
        value: str = "",
        heads: int = 4,
        lmax: int = 1,
        mode: Literal["channelwise", "full"] = "channelwise",
        radial: int = 16,
        nets: RadialNets = "one",
        layer_norm: bool = True,
        basis: int = 8,
        cutoff: float = 10.0,
        gate: bool = True,
        parity: bool = True,
        backend: TensorProductBackend = "e3nn",
    ) -> None:
        super().__init__(fields)
        h = fields["h"].o3
        values = o3.Irreps(value or irreps).simplify()
        keys = o3.Irreps([block for block in values if h.count(block.ir)])
        if heads < 1 or any(mul % heads for mul, _ in values) or not keys:
            raise OptionError(f"se3_transformer: {heads} heads cannot share keys {keys} and values {values}")
        self.gate = Gate(irreps) if gate else None
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") if "edge_attr" in fields else basis
        self.query = IrrepsLinear({"h": fields["h"]}, irreps=str(keys))
        if check_choice("mode", mode, ("channelwise", "full")) == "full":
            # One kernel makes each block's value and key channels side by side.
            fused = o3.Irreps([(2 * mul if ir in keys else mul, ir) for mul, ir in values])
            nets_of = {"width": width, "radial": radial, "nets": nets, "layer_norm": layer_norm}
            kernel = PairwiseKernel(h, fused, lmax=lmax, parity=parity, backend=backend, **nets_of)
            self.attention: nn.Module = _PairwiseAttention(kernel, values, keys, heads)
        else:
            product = ChannelwiseProduct(h, lmax, values, parity=parity, backend=backend)
            self.attention = _ChannelwiseAttention(product, values, keys, heads, width=width, radial=radial)
        both = {"value": FieldSpec("value", "node", str(values)), "h": fields["h"]}
        self.project = IrrepsLinear(both, irreps=str(self.gate.irreps_in) if gate else irreps)
        out = self.gate.irreps_out if gate else self.project.irreps_out
        self.declare(h=FieldSpec("h", "node", str(out), chiral=not parity))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``h`` (N, irreps)."""
        distance, direction = polar(f["edge_vec"])
        attr = f["edge_attr"] if self.basis is None else self.basis(distance)
        value = self.attention(f["h"], self.query(f)["h"], direction, attr, f["edges"])
        h = self.project({"value": value, "h": f["h"]})["h"]
        return {"h": h if self.gate is None else self.gate(h)}


class _PairwiseAttention(AttentionMixin):
    """``Σ_j softmax_j(<q_i, k_ij> / sqrt(D)) v_ij`` with keys and values made on every edge."""

    def __init__(self, kernel: PairwiseKernel, values: o3.Irreps, keys: o3.Irreps, heads: int) -> None:
        super().__init__()
        self.kernel, self.values, self.keys, self.heads = kernel, values, keys, heads

    def forward(self, h: Tensor, q: Tensor, direction: Tensor, attr: Tensor, edges: Edges) -> Tensor:
        queries = _by_irrep(q, self.keys)
        made, logits = [], 0
        for (mul, ir), both in zip(self.values, self.kernel(h, direction, attr, edges), strict=True):
            made.append(both[:, :, :mul].unflatten(2, (self.heads, -1)))  # (E, 2l+1, H, W / H)
            if ir in queries:
                dots = (both[:, :, mul:] * edges.target(queries[ir])).unflatten(2, (self.heads, -1))
                logits = logits + dots.sum((1, 3))  # (E, H)
        weight = edges.softmax(logits / math.sqrt(self.keys.dim))
        self.record_attention(EdgeWeights(edges.index, weight))
        weight = weight[:, None, :, None]
        return torch.cat([edges.sum((weight * v).flatten(2)).mT.flatten(1) for v in made], 1)  # (N, irreps)


class _ChannelwiseAttention(AttentionMixin):
    """The same for keys ``W_K z_ij`` and values ``W_V z_ij`` of one ``z_ij = R(e_ij) ⊙ (Y(r_ij) ⊗ h_j)``, on nodes."""

    def __init__(
        self, product: ChannelwiseProduct, values: o3.Irreps, keys: o3.Irreps, heads: int, *, width: int, radial: int
    ) -> None:
        super().__init__()
        self.product, self.values, self.keys, self.heads = product, values, keys, heads
        self.fc = nn.Sequential(nn.Linear(width, radial), nn.ReLU(), nn.Linear(radial, product.weight_numel))
        # Radial functions of unit scale, as the maps after them suppose, for edge features of unit scale.
        nn.init.kaiming_normal_(self.fc[0].weight, nonlinearity="relu")
        nn.init.kaiming_normal_(self.fc[2].weight, nonlinearity="linear")
        fan_in = [sum(p.channels for p in product.paths if p.o == o) for o in range(len(values))]
        shapes = [(p.channels, heads, values[p.o].mul // heads, fan_in[p.o]) for p in product.paths]
        self.value = nn.ParameterList(torch.randn(u, n, w) / math.sqrt(fan) for u, n, w, fan in shapes)
        self.key_paths = [n for n, p in enumerate(product.paths) if values[p.o].ir in keys]
        self.key = nn.ParameterList(torch.randn_like(self.value[n]) / math.sqrt(shapes[n][3]) for n in self.key_paths)

    def forward(self, h: Tensor, q: Tensor, direction: Tensor, attr: Tensor, edges: Edges) -> Tensor:
        weights = self.product.weights(self.fc[2], self.fc[:2](attr))
        factors = list(self.product.factors(h, direction, edges, weights))
        queries = {ir: x.unflatten(2, (self.heads, -1)) for ir, x in _by_irrep(q, self.keys).items()}
        logits: Tensor | int = 0
        for n, key in zip(self.key_paths, self.key, strict=True):
            query = queries[self.values[self.product.paths[n].o].ir]  # (N, 2l+1, H, W / H)
            logits = logits + _dots(edges, *factors[n], torch.einsum("nmhw,uhw->nhmu", query, key))  # (E, H)
        weight = edges.softmax(logits / math.sqrt(self.keys.dim))
        self.record_attention(EdgeWeights(edges.index, weight))
        out: list[Tensor | int] = [0] * len(self.values)
        for path, factor, value in zip(self.product.paths, factors, self.value, strict=True):
            summed = _sums(edges, weight, *factor)  # (N, H, 2l+1, U)
            out[path.o] = out[path.o] + torch.einsum("nhmu,uhw->nhwm", summed, value).flatten(1)
        return torch.cat(out, 1)  # (N, irreps)


def _by_irrep(x: Tensor, irreps: o3.Irreps) -> dict[o3.Irrep, Tensor]:
    """``(N, irreps)`` to one ``(N, 2l+1, mul)`` per block."""
    parts = x.split([block.dim for block in irreps], 1)
    return {ir: part.unflatten(1, (mul, ir.dim)).mT for (mul, ir), part in zip(irreps, parts, strict=True)}


def _dots(edges: Edges, x: Tensor, c: Tensor | None, q: Tensor) -> Tensor:
    """``<cᵀ x, q_i>`` of each edge and head, x ``(E, L, U)``, c ``(E, L, M)``, q ``(N, H, M, U)``, to ``(E, H)``."""
    n, k = edges.num_nodes, edges.degree
    if k and c is None:
        return (x.reshape(n, k, -1) @ q.flatten(2).mT).flatten(0, 1)
    if k and c is not None:  # <cᵀ x, q> = <c, x qᵀ>, and x qᵀ is one matrix product a node
        products = (x.reshape(n, k * x.size(1), -1) @ q.flatten(1, 2).mT).view(len(x), x.size(1), -1, c.size(2))
        return (products * c.unsqueeze(2)).sum((1, 3))
    z = x if c is None else c.mT @ x
    return torch.stack([(z * edges.target(each)).sum((1, 2)) for each in q.unbind(1)], 1)


def _sums(edges: Edges, weight: Tensor, x: Tensor, c: Tensor | None) -> Tensor:
    """``Σ_j weight_ij cᵀ x`` of each head, weight ``(E, H)``, x ``(E, L, U)``, c ``(E, L, M)``, to ``(N, H, M, U)``."""
    n, k, heads = edges.num_nodes, edges.degree, weight.size(1)
    if k and c is None:
        return (weight.view(n, k, heads).mT @ x.reshape(n, k, -1)).unflatten(2, x.shape[1:])
    if k and c is not None:
        spread = (weight[:, None, :, None] * c.unsqueeze(2)).view(n, k * x.size(1), -1)  # (N, K L, H M)
        return (spread.mT @ x.reshape(n, k * x.size(1), -1)).unflatten(1, (heads, -1))
    z = x if c is None else c.mT @ x
    return torch.stack([edges.sum(each[:, None, None] * z) for each in weight.unbind(1)], 1)

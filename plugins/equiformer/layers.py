"""Equivariant graph attention and feed-forward network of Equiformer (Liao & Smidt 2023).

Not ``e3nn.o3.TensorProduct``: :class:`protgraph_plugins.tfn.ChannelwiseProduct` is the same depth-wise tensor product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from e3nn import o3
from protgraph_plugins.tfn import ChannelwiseProduct
from torch import Tensor, nn

from protgraph import Edges, FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import OptionError
from protgraph.nn import AttentionMixin, EdgeWeights, Gate, IrrepsLinear, irreps_blocks
from protgraph.ops import BesselBasis, polar

__all__ = ["EquiformerAttention", "EquiformerFeedForward"]
ENTRY_POINTS = {
    "protgraph.layers": {"equiformer": "EquiformerAttention", "equiformer_feed_forward": "EquiformerFeedForward"}
}


class EdgeProduct(nn.Module):
    """Depth-wise tensor product of features of edges with harmonics of their directions, then a linear map.

    ``W (R(e) ⊙ (x ⊗ Y(r)))``, with a weight of R per channel and path, and a bias for even scalars.
    """

    def __init__(self, irreps_in: o3.Irreps, irreps_out: o3.Irreps, *, lmax: int, width: int, radial: int) -> None:
        super().__init__()
        self.product = ChannelwiseProduct(irreps_in, lmax, irreps_out)
        self.hidden = nn.Sequential(nn.Linear(width, radial), nn.SiLU())
        self.weights = nn.Linear(radial, self.product.weight_numel)
        self._num_blocks = len(irreps_out)

        # A linear map of each path to its block, scaled by the number of channels that are summed there.
        fan_in = [0] * len(irreps_out)
        for path in self.product.paths:
            fan_in[path.o] += path.channels
        self.maps = nn.ParameterList()
        for path in self.product.paths:
            shape = (path.channels, irreps_out[path.o].mul)
            self.maps.append(torch.randn(shape) / math.sqrt(fan_in[path.o]))

        # Even scalars have a bias.
        self.biases = nn.ParameterList()
        self._scalars: list[int] = []  # their blocks
        for number, (mul, ir) in enumerate(irreps_out):
            if ir == o3.Irrep("0e"):
                self.biases.append(torch.zeros(mul))
                self._scalars.append(number)

    def forward(self, x: Tensor, direction: Tensor, e: Tensor) -> Tensor:
        """Compute ``(E, irreps_out)`` from x ``(E, irreps_in)``, directions ``(E, 3)`` and e ``(E, width)``."""
        # The product multiplies features of sources: here each row is its own source.
        row = torch.arange(len(x), device=x.device)
        edges = Edges(torch.stack([row, row]), len(x), degree=1)
        weights = self.product.weights(self.weights, self.hidden(e))
        factors = self.product.factors(x, direction, edges, weights)

        # Sum the paths to each block, (E, 2l+1, U).
        blocks: list[Tensor | int] = [0] * self._num_blocks
        for path, (source, coupling), linear in zip(self.product.paths, factors, self.maps, strict=True):
            product = source
            if coupling is not None:
                product = coupling.mT @ source
            blocks[path.o] = blocks[path.o] + product @ linear
        for number, bias in zip(self._scalars, self.biases, strict=True):
            blocks[number] = blocks[number] + bias
        return torch.cat([block.mT.flatten(1) for block in blocks if isinstance(block, Tensor)], 1)


class EquiformerAttention(GraphLayer, AttentionMixin):
    """Equivariant graph attention with nonlinear messages (Equiformer; Liao & Smidt 2023).

    A dot product of queries and keys sees each neighbor linearly; here the weights and the values are networks of
    both nodes of the edge and their distance.
    ``f_ij = W (R(e_ij) ⊙ (x_ij ⊗ Y(r_ij)))`` with ``x_ij = W_t h_i + W_s h_j``. The first ``alpha`` scalars a of f give
    ``α_ij = softmax_j(w · σ(a_ij))`` per head, the others ``v_ij = W' (R'(e_ij) ⊙ (Gate(f_ij) ⊗ Y(r_ij)))``, and
    ``h'_i = W_o Σ_j α_ij v_ij``.

    Parameters
    ----------
    heads : int
        Number of attention heads; divides the number of channels of each irrep.
    alpha : int
        Number of scalars per head in a.
    lmax : int
        Highest degree of the spherical harmonics Y.
    radial : int
        Hidden width of the networks R and R'.
    basis : int
        Number of Bessel functions of the distance, if ``edge_attr`` is not wired.
    cutoff : float
        Distance at which they vanish, Å.

    Notes
    -----
    Reads: ``h`` ``(N, irreps)``, with even scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å. Optional: ``edge_attr``
    ``(E, F)`` scalars, which R and R' read instead of the Bessel functions.
    Writes: ``h`` ``(N, irreps)``, of the same irreps.

    σ is the smooth leaky ReLU ``(1 + s) / 2 x + (1 - s) / 2 x (2 sigmoid(x) - 1)`` with s = 0.2. The normalization
    before and the residual after it are the layers ``irreps_norm`` and ``add``.

    References
    ----------
    Liao & Smidt 2023, arXiv:2206.11990, secs. 4.1–4.2 and figure 1 (b), with mode "nonlinear messages".
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(inputs={"h": "16x0e+4x1o"})

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        heads: Annotated[int, Ge(1)] = 4,
        alpha: Annotated[int, Ge(1)] = 8,
        lmax: Annotated[int, Ge(1)] = 1,
        radial: int = 16,
        basis: Annotated[int, Ge(1)] = 16,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        irreps = fields["h"].o3.simplify()
        uneven = [str(block) for block in irreps if block.mul % heads]
        if uneven or irreps.count(o3.Irrep("0e")) == 0:
            raise OptionError(
                f"equiformer: heads={heads}, h of {irreps}. h needs even scalars, and heads divides the number of "
                "channels of each irrep. Choose another number of heads, or add a layer 'irreps_linear' before."
            )
        self.heads, self.alpha = heads, heads * alpha
        self._blocks = irreps_blocks(irreps)
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") or basis
        self.target = IrrepsLinear({"h": fields["h"]}, irreps=str(irreps))
        self.source = IrrepsLinear({"h": fields["h"]}, irreps=str(irreps))

        # f: scalars of the attention, then what the gate reads.
        self.gate = Gate(str(irreps))
        middle = (o3.Irreps([(self.alpha, "0e")]) + self.gate.irreps_in).simplify()
        self.message = EdgeProduct(irreps, middle, lmax=lmax, width=width, radial=radial)
        self.logit = nn.Parameter(torch.randn(heads, alpha) / math.sqrt(alpha))
        self.value = EdgeProduct(self.gate.irreps_out, irreps, lmax=lmax, width=width, radial=radial)
        self.out_linear = IrrepsLinear({"h": FieldSpec("h", "node", str(irreps))}, irreps=str(irreps))
        self.declare(h=str(irreps))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, irreps)``."""
        edges = f["edges"]
        distance, direction = polar(f["edge_vec"])
        e = f["edge_attr"] if self.basis is None else self.basis(distance)

        # Messages of both nodes and the direction.
        target = self.target({"h": f["h"]})["h"]
        source = self.source({"h": f["h"]})["h"]
        message = self.message(edges.pair_sum(target, source), direction, e)
        scalars, gated = message[:, : self.alpha], message[:, self.alpha :]

        # Weights, of the first scalars.
        by_head = scalars.unflatten(1, (self.heads, -1))  # (E, H, A)
        logits = (_smooth_leaky_relu(by_head) * self.logit).sum(2)
        weight = edges.softmax(logits)  # (E, H)
        self.record_attention(EdgeWeights(edges.index, weight))

        # Values, of the others; heads are groups of channels of each irrep.
        value = self.value(self.gate(gated), direction, e)
        sizes = [mul * dim for mul, dim in self._blocks]
        weighted = []
        for block, (mul, dim) in zip(value.split(sizes, 1), self._blocks, strict=True):
            by_head = block.unflatten(1, (self.heads, mul // self.heads * dim))
            weighted.append((by_head * weight.unsqueeze(2)).flatten(1))
        summed = edges.sum(torch.cat(weighted, 1))
        return self.out_linear({"h": summed})


class EquiformerFeedForward(GraphLayer):
    """Equivariant feed-forward network ``W₂ Gate(W₁ h)``: mixes the channels of each node after the attention.

    Parameters
    ----------
    factor : int
        Hidden channels of each irrep, as a multiple of those of h.

    Notes
    -----
    Reads: ``h`` ``(N, irreps)``, with even scalars. Writes: ``h`` ``(N, irreps)``, of the same irreps.

    References
    ----------
    Liao & Smidt 2023, arXiv:2206.11990, figure 1 (d).
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(inputs={"h": "16x0e+4x1o"})

    def __init__(self, fields: Mapping[str, FieldSpec], *, factor: Annotated[int, Ge(1)] = 3) -> None:
        super().__init__(fields)
        irreps = fields["h"].o3.simplify()
        wide = o3.Irreps([(factor * mul, ir) for mul, ir in irreps])
        self.gate = Gate(str(wide))
        self.first = IrrepsLinear({"h": fields["h"]}, irreps=str(self.gate.irreps_in))
        hidden = FieldSpec("h", fields["h"].level, str(self.gate.irreps_out))
        self.second = IrrepsLinear({"h": hidden}, irreps=str(irreps))
        self.declare(h=FieldSpec("h", fields["h"].level, str(irreps)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, irreps)`` row by row."""
        hidden = self.first({"h": f["h"]})["h"]
        return self.second({"h": self.gate(hidden)})


def _smooth_leaky_relu(x: Tensor, slope: float = 0.2) -> Tensor:
    """Compute a leaky ReLU with a smooth kink at 0."""
    return (1 + slope) / 2 * x + (1 - slope) / 2 * x * (2 * x.sigmoid() - 1)

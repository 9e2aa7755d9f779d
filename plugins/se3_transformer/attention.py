"""Attention along edges with equivariant keys and values and invariant weights.

Not ``e3nn.o3.TensorProduct`` per edge: as layer ``se3_transformer`` it takes 4.3× the time forward and backward (e3nn
0.6.0, one thread, 128x0e+32x1o, 2026-11-22).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from e3nn import o3
from protgraph_plugins.se3_transformer.kernel import PairwiseKernel
from protgraph_plugins.tfn import ChannelwiseProduct
from torch import Tensor, nn

from protgraph.nn import AttentionMixin, EdgeWeights, irreps_blocks
from protgraph.ops import Edges

__all__ = ["ChannelwiseAttention", "PairwiseAttention"]


class PairwiseAttention(AttentionMixin):
    """Attention ``Σ_j softmax_j(<q_i, k_ij> / sqrt(D)) v_ij`` with keys and values computed on every edge.

    Parameters
    ----------
    kernel : PairwiseKernel
        Gives the value and key channels of each block side by side.
    values, keys : e3nn.o3.Irreps
        Their irreps; D is the dimension of the keys.
    heads : int
        Number of attention heads.
    """

    def __init__(self, kernel: PairwiseKernel, values: o3.Irreps, keys: o3.Irreps, heads: int) -> None:
        super().__init__()
        self.kernel, self.values, self.keys, self.heads = kernel, values, keys, heads
        self._widths = [mul for mul, _ in values]
        self._keys = irreps_blocks(keys)
        self._key_of = _places(values, keys)

    def forward(self, h: Tensor, q: Tensor, direction: Tensor, attr: Tensor, edges: Edges) -> Tensor:
        """Attend along edges.

        Parameters
        ----------
        h, q : Tensor
            ``(N, irreps)`` features and ``(N, keys)`` queries.
        direction : Tensor
            ``(E, 3)`` unit vectors, or 0.
        attr : Tensor
            ``(E, width)`` edge features.
        edges : Edges

        Returns
        -------
        Tensor
            ``(N, values)``.
        """
        queries = _split_blocks(q, self._keys)
        blocks = self.kernel(h, direction, attr, edges)

        # Values of each block of irreps, and the sum over blocks of <q_i, k_ij>.
        values: list[Tensor] = []
        logits: Tensor | int = 0
        for width, key, channels in zip(self._widths, self._key_of, blocks, strict=True):
            value = channels[:, :, :width]
            values.append(value.unflatten(2, (self.heads, -1)))  # (E, 2l+1, H, W / H)
            if key is None:
                continue
            products = channels[:, :, width:] * edges.target(queries[key])
            by_head = products.unflatten(2, (self.heads, -1))
            logits = logits + by_head.sum((1, 3))  # (E, H)

        weight = edges.softmax(logits / math.sqrt(q.size(1)))
        self.record_attention(EdgeWeights(edges.index, weight))
        weight = weight[:, None, :, None]
        out = []
        for value in values:
            summed = edges.sum((weight * value).flatten(2))  # (N, 2l+1, W)
            out.append(summed.mT.flatten(1))
        return torch.cat(out, 1)  # (N, irreps)


class ChannelwiseAttention(AttentionMixin):
    """The same attention with keys ``W_K z_ij`` and values ``W_V z_ij``, both maps taken on nodes.

    ``z_ij = R(e_ij) ⊙ (Y(r_ij) ⊗ h_j)`` with one radial function per channel and path.

    Parameters
    ----------
    product : ChannelwiseProduct
        Computes z.
    values, keys : e3nn.o3.Irreps
        Irreps of values and keys; D is the dimension of the keys.
    heads : int
        Number of attention heads.
    width : int
        Width of the edge features e_ij.
    radial : int
        Hidden width of the radial network R.
    """

    def __init__(
        self, product: ChannelwiseProduct, values: o3.Irreps, keys: o3.Irreps, heads: int, *, width: int, radial: int
    ) -> None:
        super().__init__()
        self.product, self.values, self.keys, self.heads = product, values, keys, heads
        self._num_blocks = len(values)
        self._keys = irreps_blocks(keys)
        self._key_of = _places(values, keys)

        # Radial functions of unit scale for edge features of unit scale, as the initialization of the maps assumes.
        self.fc = nn.Sequential(nn.Linear(width, radial), nn.ReLU(), nn.Linear(radial, product.weight_numel))
        nn.init.kaiming_normal_(self.fc[0].weight, nonlinearity="relu")
        nn.init.kaiming_normal_(self.fc[2].weight, nonlinearity="linear")

        # W_V and W_K of each path, from its channels to those of its block; all paths to a block are summed.
        fan_in = [0] * len(values)
        for path in product.paths:
            fan_in[path.o] += path.channels
        self.value = nn.ParameterList()
        for path in product.paths:
            shape = (path.channels, heads, values[path.o].mul // heads)
            self.value.append(torch.randn(shape) / math.sqrt(fan_in[path.o]))
        self.key_paths = [number for number, path in enumerate(product.paths) if values[path.o].ir in keys]
        self.key = nn.ParameterList()
        for number in self.key_paths:
            fan = fan_in[product.paths[number].o]
            self.key.append(torch.randn_like(self.value[number]) / math.sqrt(fan))

    def forward(self, h: Tensor, q: Tensor, direction: Tensor, attr: Tensor, edges: Edges) -> Tensor:
        """Attend along edges; see :meth:`PairwiseAttention.forward`."""
        weights = self.product.weights(self.fc[2], self.fc[:2](attr))
        factors = list(self.product.factors(h, direction, edges, weights))  # of each path: x and c, with z = cᵀ x
        queries = [block.unflatten(2, (self.heads, -1)) for block in _split_blocks(q, self._keys)]

        # <q_i, W_K z_ij> = <W_Kᵀ q_i, z_ij>: the map is applied to nodes.
        logits: Tensor | int = 0
        for number, key in zip(self.key_paths, self.key, strict=True):
            x, c = factors[number]
            query = queries[self._key_of[self.product.paths[number].o]]  # (N, 2l+1, H, W / H)
            mapped = torch.einsum("nmhw,uhw->nhmu", query, key)
            logits = logits + _dots(edges, x, c, mapped)  # (E, H)
        weight = edges.softmax(logits / math.sqrt(q.size(1)))
        self.record_attention(EdgeWeights(edges.index, weight))

        # Σ_j w_ij W_V z_ij = W_V Σ_j w_ij z_ij.
        out: list[Tensor | int] = [0] * self._num_blocks
        for path, (x, c), value in zip(self.product.paths, factors, self.value, strict=True):
            summed = _sums(edges, weight, x, c)  # (N, H, 2l+1, U)
            mapped = torch.einsum("nhmu,uhw->nhwm", summed, value)
            out[path.o] = out[path.o] + mapped.flatten(1)
        return torch.cat(out, 1)  # (N, irreps)


def _places(values: o3.Irreps, keys: o3.Irreps) -> list[int | None]:
    """Return the block of the keys that has the irrep of each block of the values; None without one."""
    block_of = {ir: number for number, (_, ir) in enumerate(keys)}
    return [block_of.get(ir) for _, ir in values]


def _split_blocks(x: Tensor, blocks: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Split ``(N, irreps)`` into one ``(N, 2l+1, mul)`` per block."""
    parts = x.split([mul * dim for mul, dim in blocks], 1)
    return [part.unflatten(1, block).mT for part, block in zip(parts, blocks, strict=True)]


def _dots(edges: Edges, x: Tensor, c: Tensor | None, q: Tensor) -> Tensor:
    """Compute ``<cᵀ x, q_i>``: x ``(E, L, U)``, c ``(E, L, M)``, q ``(N, H, M, U)``, to ``(E, H)``."""
    n, k = edges.num_nodes, edges.degree
    if k and c is None:
        dots = x.reshape(n, k, -1) @ q.flatten(2).mT  # (N, K, H)
        return dots.flatten(0, 1)
    if k and c is not None:  # <cᵀ x, q> = <c, x qᵀ>, and x qᵀ is one matrix product per node
        of_node = x.reshape(n, k * x.size(1), -1)  # (N, K L, U)
        products = of_node @ q.flatten(1, 2).mT  # (N, K L, H M)
        products = products.view(len(x), x.size(1), -1, c.size(2))  # (E, L, H, M)
        return (products * c.unsqueeze(2)).sum((1, 3))
    z = x if c is None else c.mT @ x
    dots_of_heads = [(z * edges.target(query)).sum((1, 2)) for query in q.unbind(1)]
    return torch.stack(dots_of_heads, 1)


def _sums(edges: Edges, weight: Tensor, x: Tensor, c: Tensor | None) -> Tensor:
    """Compute ``Σ_j weight_ij cᵀ x``: weight ``(E, H)``, x ``(E, L, U)``, c ``(E, L, M)``, to ``(N, H, M, U)``."""
    n, k, heads = edges.num_nodes, edges.degree, weight.size(1)
    if k and c is None:
        of_node = x.reshape(n, k, -1)  # (N, K, L U)
        sums = weight.view(n, k, heads).mT @ of_node
        return sums.unflatten(2, x.shape[1:])
    if k and c is not None:
        of_node = x.reshape(n, k * x.size(1), -1)  # (N, K L, U)
        weighted = weight[:, None, :, None] * c.unsqueeze(2)  # (E, L, H, M)
        sums = weighted.view(n, k * x.size(1), -1).mT @ of_node  # (N, H M, U)
        return sums.unflatten(1, (heads, -1))
    z = x if c is None else c.mT @ x
    sums_of_heads = [edges.sum(of_head[:, None, None] * z) for of_head in weight.unbind(1)]
    return torch.stack(sums_of_heads, 1)

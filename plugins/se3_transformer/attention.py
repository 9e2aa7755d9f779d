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
from torch import Tensor, nn

from protgraph.nn import AttentionMixin, ChannelwiseProduct, EdgeWeights, irreps_blocks
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
        self._keys, self._key_of = irreps_blocks(keys), _places(values, keys)

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
        values, logits = [], 0
        for mul, key, both in zip(self._widths, self._key_of, self.kernel(h, direction, attr, edges), strict=True):
            values.append(both[:, :, :mul].unflatten(2, (self.heads, -1)))  # (E, 2l+1, H, W / H)
            if key is not None:
                dots = (both[:, :, mul:] * edges.target(queries[key])).unflatten(2, (self.heads, -1))
                logits = logits + dots.sum((1, 3))  # (E, H)
        weight = edges.softmax(logits / math.sqrt(q.size(1)))
        self.record_attention(EdgeWeights(edges.index, weight))
        weight = weight[:, None, :, None]
        return torch.cat([edges.sum((weight * v).flatten(2)).mT.flatten(1) for v in values], 1)  # (N, irreps)


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
        self._num_blocks, self._keys, self._key_of = len(values), irreps_blocks(keys), _places(values, keys)
        self.fc = nn.Sequential(nn.Linear(width, radial), nn.ReLU(), nn.Linear(radial, product.weight_numel))
        # Radial functions of unit scale for edge features of unit scale, as the initialization of the maps assumes.
        nn.init.kaiming_normal_(self.fc[0].weight, nonlinearity="relu")
        nn.init.kaiming_normal_(self.fc[2].weight, nonlinearity="linear")
        fan_in = [sum(p.channels for p in product.paths if p.o == o) for o in range(len(values))]
        shapes = [(p.channels, heads, values[p.o].mul // heads, fan_in[p.o]) for p in product.paths]
        self.value = nn.ParameterList(torch.randn(u, n, w) / math.sqrt(fan) for u, n, w, fan in shapes)
        self.key_paths = [n for n, p in enumerate(product.paths) if values[p.o].ir in keys]
        self.key = nn.ParameterList(torch.randn_like(self.value[n]) / math.sqrt(shapes[n][3]) for n in self.key_paths)

    def forward(self, h: Tensor, q: Tensor, direction: Tensor, attr: Tensor, edges: Edges) -> Tensor:
        """Attend along edges; see :meth:`PairwiseAttention.forward`."""
        weights = self.product.weights(self.fc[2], self.fc[:2](attr))
        factors = list(self.product.factors(h, direction, edges, weights))
        queries = [x.unflatten(2, (self.heads, -1)) for x in _split_blocks(q, self._keys)]
        logits: Tensor | int = 0
        for n, key in zip(self.key_paths, self.key, strict=True):
            query = queries[self._key_of[self.product.paths[n].o]]  # (N, 2l+1, H, W / H)
            logits = logits + _dots(edges, *factors[n], torch.einsum("nmhw,uhw->nhmu", query, key))  # (E, H)
        weight = edges.softmax(logits / math.sqrt(q.size(1)))
        self.record_attention(EdgeWeights(edges.index, weight))
        out: list[Tensor | int] = [0] * self._num_blocks
        for path, factor, value in zip(self.product.paths, factors, self.value, strict=True):
            summed = _sums(edges, weight, *factor)  # (N, H, 2l+1, U)
            out[path.o] = out[path.o] + torch.einsum("nhmu,uhw->nhwm", summed, value).flatten(1)
        return torch.cat(out, 1)  # (N, irreps)


def _places(values: o3.Irreps, keys: o3.Irreps) -> list[int | None]:
    """Return the block of the keys that has the irrep of each block of the values; None without one."""
    place = {ir: n for n, (_, ir) in enumerate(keys)}
    return [place.get(ir) for _, ir in values]


def _split_blocks(x: Tensor, blocks: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Split ``(N, irreps)`` into one ``(N, 2l+1, mul)`` per block."""
    parts = x.split([mul * dim for mul, dim in blocks], 1)
    return [part.unflatten(1, block).mT for part, block in zip(parts, blocks, strict=True)]


def _dots(edges: Edges, x: Tensor, c: Tensor | None, q: Tensor) -> Tensor:
    """Compute ``<cᵀ x, q_i>``: x ``(E, L, U)``, c ``(E, L, M)``, q ``(N, H, M, U)``, to ``(E, H)``."""
    n, k = edges.num_nodes, edges.degree
    if k and c is None:
        return (x.reshape(n, k, -1) @ q.flatten(2).mT).flatten(0, 1)
    if k and c is not None:  # <cᵀ x, q> = <c, x qᵀ>, and x qᵀ is one matrix product per node
        products = (x.reshape(n, k * x.size(1), -1) @ q.flatten(1, 2).mT).view(len(x), x.size(1), -1, c.size(2))
        return (products * c.unsqueeze(2)).sum((1, 3))
    z = x if c is None else c.mT @ x
    return torch.stack([(z * edges.target(each)).sum((1, 2)) for each in q.unbind(1)], 1)


def _sums(edges: Edges, weight: Tensor, x: Tensor, c: Tensor | None) -> Tensor:
    """Compute ``Σ_j weight_ij cᵀ x``: weight ``(E, H)``, x ``(E, L, U)``, c ``(E, L, M)``, to ``(N, H, M, U)``."""
    n, k, heads = edges.num_nodes, edges.degree, weight.size(1)
    if k and c is None:
        return (weight.view(n, k, heads).mT @ x.reshape(n, k, -1)).unflatten(2, x.shape[1:])
    if k and c is not None:
        spread = (weight[:, None, :, None] * c.unsqueeze(2)).view(n, k * x.size(1), -1)  # (N, K L, H M)
        return (spread.mT @ x.reshape(n, k * x.size(1), -1)).unflatten(1, (heads, -1))
    z = x if c is None else c.mT @ x
    return torch.stack([edges.sum(each[:, None, None] * z) for each in weight.unbind(1)], 1)

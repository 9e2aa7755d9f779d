"""Channelwise tensor products of node features with spherical harmonics of edges."""

# Not e3nn.o3.TensorProduct and Linear: 8.3 times the time, as they multiply before the sum (e3nn 0.6.0, 2026-11-22).

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Literal, NamedTuple

import torch
from e3nn import get_optimization_defaults, o3, set_optimization_defaults
from protgraph_plugins.tfn.cuequivariance_backend import require_cuequivariance, require_cuequivariance_kernels
from torch import Tensor, nn
from torch.nn.functional import linear as linear_map

from protgraph.errors import OptionError
from protgraph.nn import irreps_blocks
from protgraph.ops import Edges

__all__ = ["ChannelwiseProduct", "TensorProductPath", "TensorProductBackend", "neighbor_sum"]

TensorProductBackend = Literal["e3nn", "cuequivariance"]


class TensorProductPath(NamedTuple):
    """Coupling of input block i and harmonic s to output block o, with its channels and columns of the coefficients."""

    i: int
    s: int
    o: int
    channels: int
    columns: slice


class ChannelwiseProduct(nn.Module):
    """Tensor product of source features and edge harmonics, channel by channel.

    ``z_ij^p = w_ij^p ⊙ (Y^(s)(r_ij) ⊗ h_j^(i))^(o)`` for every path p = (i, s, o); channels never mix.

    Coefficients are e3nn's Wigner 3j symbols times sqrt(2 l_out + 1) and Y is component-normalized, so that components
    of z have unit variance if those of h have. For a direction of 0, only Y_0 = 1 contributes.

    ``irreps_in``: irreps of h. ``lmax``: highest degree of the spherical harmonics Y. ``irreps_out``: allowed output
    blocks; their multiplicities are ignored. ``parity``: True: only paths that reflections allow, O(3). False: SO(3).
    ``backend``: "e3nn" or "cuequivariance"; implementation of the product. cuEquivariance runs its kernels on CUDA
    tensors and plain PyTorch elsewhere.

    References
    ----------
    Geiger & Smidt 2022, arXiv:2207.09453 (mode "uvu"); https://github.com/NVIDIA/cuEquivariance.
    """

    def __init__(
        self,
        irreps_in: o3.Irreps,
        lmax: int,
        irreps_out: o3.Irreps,
        *,
        parity: bool = True,
        backend: TensorProductBackend = "e3nn",
    ) -> None:
        super().__init__()
        self.irreps_in = o3.Irreps(irreps_in)
        self.irreps_out = o3.Irreps(irreps_out)
        self.irreps_sh = o3.Irreps.spherical_harmonics(lmax)
        self.harmonics = _component_harmonics(lmax)
        self._blocks = irreps_blocks(self.irreps_in)
        self._dims = [ir.dim for _, ir in self.irreps_out]

        # the allowed paths, and their coupling coefficients side by side
        self.paths: list[TensorProductPath] = []
        coefficients = []
        start = 0
        numbers = product(range(len(self.irreps_in)), range(len(self.irreps_sh)), range(len(self.irreps_out)))
        for i, s, o in numbers:
            channels, a = self.irreps_in[i]
            b = self.irreps_sh[s].ir
            c = self.irreps_out[o].ir
            is_triangle = abs(a.l - b.l) <= c.l <= a.l + b.l
            is_allowed = not parity or a.p * b.p == c.p
            if not (is_triangle and is_allowed):
                continue
            w3j = o3.wigner_3j(a.l, b.l, c.l, dtype=torch.float64).transpose(0, 1)
            size = a.dim * c.dim
            coupling = torch.zeros(self.irreps_sh.dim, size, dtype=torch.float64)
            coupling[self.irreps_sh.slices()[s]] = w3j.flatten(1) * math.sqrt(c.dim)  # (2l_s+1, (2l_i+1)(2l_o+1))
            coefficients.append(coupling)
            self.paths.append(TensorProductPath(i, s, o, channels, slice(start, start + size)))
            start += size
        for o, (_, ir) in enumerate(self.irreps_out):
            if all(p.o != o for p in self.paths):
                raise OptionError(f"{self.irreps_in} ⊗ {self.irreps_sh} contains no {ir}. Increase lmax={lmax}.")
        # Neither parameter nor buffer, so that conversions of the module to float32 lose no precision.
        self._exact = torch.cat(coefficients, 1)
        self._coupling = self._exact
        self._cuequivariance = _CuEquivariance(self) if backend == "cuequivariance" else None

    @property
    def weight_numel(self) -> int:
        """Number of weights per edge: one per channel of each path."""
        return sum(p.channels for p in self.paths)

    def forward(self, h: Tensor, direction: Tensor, edges: Edges, weight: Tensor | None = None) -> list[Tensor]:
        """Compute z of every path.

        ``h``: ``(N, irreps_in)``. ``direction``: ``(E, 3)`` unit vectors, or 0. ``weight``: ``(E, weight_numel)``;
        None: 1. Returns ``(E, 2l_o+1, U)`` per path.
        """
        weights = None if weight is None else weight.split([p.channels for p in self.paths], 1)
        return [x if c is None else c.mT @ x for x, c in self.factors(h, direction, edges, weights)]

    def weights(self, linear: nn.Linear, hidden: Tensor) -> Iterator[Tensor]:
        """Yield ``W hidden + b`` of each path, ``(E, T)`` to ``(E, U)``, one at a time."""
        widths = [p.channels for p in self.paths]
        affine = zip(linear.weight.split(widths), linear.bias.split(widths), strict=True)
        return (linear_map(hidden, weight, bias) for weight, bias in affine)

    def factors(
        self, h: Tensor, direction: Tensor, edges: Edges, weights: Iterable[Tensor] | None = None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield the factors x ``(E, 2l_i+1, U)`` and c ``(E, 2l_i+1, 2l_o+1)`` of ``z = cᵀ x`` for each path.

        c is None if it is the identity; with cuEquivariance x is z. :func:`neighbor_sum` needs no z. For ``h`` and
        ``direction`` see :meth:`forward`; ``weights`` has ``(E, U)`` per path.
        """
        harmonics = self.harmonics(direction)
        # One gather per block: splitting one wide gather would copy its whole gradient.
        blocks = h.split([mul * dim for mul, dim in self._blocks], 1)
        shaped = [x.unflatten(1, block).mT for x, block in zip(blocks, self._blocks, strict=True)]
        sources = [edges.source(x) for x in shaped]  # (E, 2l+1, U)
        if self._cuequivariance is not None:
            weight = None if weights is None else torch.cat(list(weights), 1)
            for z in self._cuequivariance(sources, harmonics, weight):
                yield z, None
            return
        filters = harmonics @ self._coupling_as(h)  # (E, Σ (2l_i+1)(2l_o+1))
        weight_of_path: Iterable[Tensor | None] = [None] * len(self.paths) if weights is None else weights
        for p, weight in zip(self.paths, weight_of_path, strict=True):
            x = sources[p.i] if weight is None else sources[p.i] * weight.unsqueeze(1)
            if p.s == 0:  # Y_0 = 1: c is the identity
                yield x, None
            else:
                shape = (x.size(1), self._dims[p.o])
                yield x, filters[:, p.columns].contiguous().unflatten(1, shape)

    def _coupling_as(self, h: Tensor) -> Tensor:
        """Return the coupling coefficients with the type and on the device of ``h``."""
        if self._coupling.dtype != h.dtype or self._coupling.device != h.device:
            self._coupling = self._exact.to(h)
        return self._coupling


def neighbor_sum(edges: Edges, x: Tensor, c: Tensor | None, weight: Tensor | None = None) -> Tensor:
    """Compute ``Σ_j cᵀ x`` over the neighbors of each node, or one sum per weight.

    ``x``: ``(E, L, U)``. ``c``: ``(E, L, M)``; None: the identity, M = L. ``weight``: ``(E, T)``. Returns ``(N, M,
    U)``, with weights ``(N, M, T, U)``.
    """
    if c is None and weight is None:
        return edges.sum(x)
    if c is None:
        assert weight is not None
        summed = _sum_of_products(edges, weight.unsqueeze(1), x.flatten(1).unsqueeze(1))  # (N, T, L U)
        return summed.unflatten(2, x.shape[1:]).transpose(1, 2)
    if weight is None:
        return _sum_of_products(edges, c, x)
    weighted = c[..., None] * weight[:, None, None]  # (E, L, M, T)
    summed = _sum_of_products(edges, weighted.flatten(2), x)  # (N, M T, U)
    return summed.unflatten(1, (c.size(2), -1))


def _sum_of_products(edges: Edges, a: Tensor, b: Tensor) -> Tensor:
    """Compute ``Σ_j aᵀ b`` over the neighbors of each node, ``(E, L, M)`` and ``(E, L, U)`` to ``(N, M, U)``."""
    if not edges.degree:
        return edges.sum(a.mT @ b)
    rows = edges.degree * a.size(1)  # equally many of each node: one product sums them
    a_of_node = a.reshape(edges.num_nodes, rows, -1)
    b_of_node = b.reshape(edges.num_nodes, rows, -1)
    return a_of_node.mT @ b_of_node


def _component_harmonics(lmax: int) -> o3.SphericalHarmonics:
    """Create a module of the real spherical harmonics up to ``lmax``, with e3nn's normalization "component".

    It maps ``(E, 3)`` unit vectors to ``(E, (lmax + 1)²)`` and calls no scripted function.
    """
    mode = get_optimization_defaults()["jit_mode"]
    set_optimization_defaults(jit_mode="eager")
    try:
        return o3.SphericalHarmonics(list(range(lmax + 1)), normalize=False, normalization="component")
    finally:
        set_optimization_defaults(jit_mode=mode)


class _CuEquivariance(nn.Module):
    """The product as a segmented polynomial of cuEquivariance, with the same coefficients and memory layout."""

    def __init__(self, product: ChannelwiseProduct) -> None:
        super().__init__()
        require_cuequivariance()
        import cuequivariance as cue

        polynomial = cue.SegmentedTensorProduct.from_subscripts("u,iu,j,ku+ijk")
        for mul, ir in product.irreps_in:
            polynomial.add_segment(1, (ir.dim, mul))
        for _, ir in product.irreps_sh:
            polynomial.add_segment(2, (ir.dim,))
        self.shapes = [(product.irreps_out[p.o].ir.dim, p.channels) for p in product.paths]
        for p, (dim, mul) in zip(product.paths, self.shapes, strict=True):
            exact = product._exact[product.irreps_sh.slices()[p.s], p.columns]
            exact = exact.unflatten(1, (-1, dim)).transpose(0, 1)
            weight_segment = polynomial.add_segment(0, (mul,))
            output_segment = polynomial.add_segment(3, (dim, mul))
            polynomial.add_path(weight_segment, p.i, p.s, output_segment, c=exact.numpy())
        # CUDA kernels require segments of equal width.
        width = math.gcd(*(mul for mul, _ in product.irreps_in))
        polynomial = polynomial.flatten_coefficient_modes().split_mode("u", width)
        self._polynomial = cue.SegmentedPolynomial.eval_last_operand(polynomial)
        self._compiled: dict[str, Any] = {}

    def forward(self, sources: list[Tensor], harmonics: Tensor, weight: Tensor | None) -> list[Tensor]:
        x = torch.cat([s.flatten(1) for s in sources], 1)  # (E, Σ (2l+1) U)
        if weight is None:
            weight = x.new_ones(len(x), sum(channels for _, channels in self.shapes))
        (z,) = self._on(x.device)([weight, x, harmonics])
        of_path = z.split([dim * mul for dim, mul in self.shapes], 1)
        return [z_p.unflatten(1, shape) for z_p, shape in zip(of_path, self.shapes, strict=True)]

    def _on(self, device: torch.device) -> Any:
        method = "uniform_1d" if device.type == "cuda" else "naive"
        if method not in self._compiled:
            if method == "uniform_1d":
                require_cuequivariance_kernels()
            from cuequivariance_torch import SegmentedPolynomial

            self._compiled[method] = SegmentedPolynomial(self._polynomial, method=method).to(device)
        return self._compiled[method]

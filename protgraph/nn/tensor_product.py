"""Products of node features with spherical harmonics of edges, by e3nn's coefficients or through cuEquivariance."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Literal, NamedTuple

import torch
from e3nn import o3
from torch import Tensor, nn
from torch.nn.functional import linear as linear_map

from protgraph.errors import MissingExtraError, OptionError
from protgraph.ops import Edges

__all__ = ["ChannelwiseProduct", "TensorProductPath", "TensorProductBackend", "neighbor_sum"]

TensorProductBackend = Literal["e3nn", "cuequivariance"]


class TensorProductPath(NamedTuple):
    """One coupling of features' block i and harmonic s to block o: its channels, and its columns of all tensors."""

    i: int
    s: int
    o: int
    channels: int
    columns: slice


class ChannelwiseProduct(nn.Module):
    """``z_ij^p = w_ij^p ⊙ (Y^(s)(r_ij) ⊗ h_j^(i))^(o)`` for every coupling p = (i, s, o); channels never mix.

    Parameters
    ----------
    irreps_in : e3nn.o3.Irreps
        Of h.
    lmax : int
        Largest degree of Y.
    irreps_out : e3nn.o3.Irreps
        Blocks that p may lead to; their multiplicities do not matter.
    parity : bool
        Keep only couplings that reflections allow too (O(3)); otherwise SO(3).
    backend : {"e3nn", "cuequivariance"}
        Whose code multiplies. cuEquivariance runs its kernels on CUDA tensors, its plain PyTorch form elsewhere.

    Notes
    -----
    Coefficients are e3nn's Wigner 3j times sqrt(2 l_out + 1), Y is component normalized: components of z have unit
    variance where those of h have. A direction of 0 leaves what Y_0 = 1 carries.

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
        if backend not in ("e3nn", "cuequivariance"):
            raise OptionError(f"backend {backend!r} is none of 'e3nn', 'cuequivariance'")
        self.irreps_in, self.irreps_out = o3.Irreps(irreps_in), o3.Irreps(irreps_out)
        self.irreps_sh = o3.Irreps.spherical_harmonics(lmax)
        self.paths: list[TensorProductPath] = []
        tensors, at = [], 0
        for (i, (mul, a)), (s, (_, b)), (o, (_, c)) in product(
            *map(enumerate, (self.irreps_in, self.irreps_sh, self.irreps_out))
        ):
            if not abs(a.l - b.l) <= c.l <= a.l + b.l or (parity and a.p * b.p != c.p):
                continue
            w3j = o3.wigner_3j(a.l, b.l, c.l, dtype=torch.float64).transpose(0, 1).flatten(1) * math.sqrt(c.dim)
            tensor = torch.zeros(self.irreps_sh.dim, a.dim * c.dim, dtype=torch.float64)
            tensor[self.irreps_sh.slices()[s]] = w3j  # (2l_s+1, (2l_i+1)(2l_o+1))
            self.paths.append(TensorProductPath(i, s, o, mul, slice(at, at + a.dim * c.dim)))
            tensors.append(tensor)
            at += a.dim * c.dim
        for o, (_, ir) in enumerate(self.irreps_out):
            if all(p.o != o for p in self.paths):
                raise OptionError(f"{self.irreps_in} ⊗ {self.irreps_sh} never makes {ir}; raise lmax={lmax}")
        # Neither parameter nor buffer: a round trip through float32 must not blunt it.
        self._exact = self._coupling = torch.cat(tensors, 1)
        self._peer = _CuEquivariance(self) if backend == "cuequivariance" else None

    @property
    def weight_numel(self) -> int:
        """Numbers that weigh one edge: a channel of each path."""
        return sum(p.channels for p in self.paths)

    def forward(self, h: Tensor, direction: Tensor, edges: Edges, weight: Tensor | None = None) -> list[Tensor]:
        """One z ``(E, 2l_o+1, U)`` per path of h (N, irreps), direction (E, 3), weight (E, weight_numel) or 1."""
        weights = None if weight is None else weight.split([p.channels for p in self.paths], 1)
        return [x if c is None else c.mT @ x for x, c in self.factors(h, direction, edges, weights)]

    def weights(self, linear: nn.Linear, hidden: Tensor) -> Iterator[Tensor]:
        """``W hidden + b``, ``(E, T)`` to one ``(E, U)`` per path, each made when its turn comes."""
        widths = [p.channels for p in self.paths]
        affine = zip(linear.weight.split(widths), linear.bias.split(widths), strict=True)
        return (linear_map(hidden, weight, bias) for weight, bias in affine)

    def factors(
        self, h: Tensor, direction: Tensor, edges: Edges, weights: Iterable[Tensor] | None = None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The same not yet multiplied: x ``(E, 2l_i+1, U)`` and c ``(E, 2l_i+1, 2l_o+1)`` with ``z = cᵀ x``.

        c is None where it is the identity. :func:`neighbor_sum` needs no z. With cuEquivariance x is z. Weights are
        ``(E, U)`` per path.
        """
        harmonics = o3.spherical_harmonics(self.irreps_sh, direction, normalize=False, normalization="component")
        # A gather per block: splitting one wide gather would copy its whole gradient back together.
        blocks = h.split([block.dim for block in self.irreps_in], 1)
        shaped = [x.unflatten(1, (mul, ir.dim)).mT for x, (mul, ir) in zip(blocks, self.irreps_in, strict=True)]
        sources = [edges.source(x) for x in shaped]  # (E, 2l+1, U)
        if self._peer is not None:
            weight = None if weights is None else torch.cat(list(weights), 1)
            yield from ((z, None) for z in self._peer(sources, harmonics, weight))
            return
        if self._coupling.dtype != h.dtype or self._coupling.device != h.device:
            self._coupling = self._exact.to(h)
        filters = harmonics @ self._coupling  # (E, Σ (2l_i+1)(2l_o+1))
        for p, w in zip(self.paths, weights or [None] * len(self.paths), strict=True):
            x = sources[p.i] if w is None else sources[p.i] * w.unsqueeze(1)
            shape = (x.size(1), self.irreps_out[p.o].ir.dim)
            # Y_0 = 1 couples nothing.
            yield x, None if p.s == 0 else filters[:, p.columns].contiguous().unflatten(1, shape)


def neighbor_sum(edges: Edges, x: Tensor, c: Tensor | None, weight: Tensor | None = None) -> Tensor:
    """``Σ_j cᵀ x`` over each node's neighbors; with weights, one sum for each of them.

    Parameters
    ----------
    edges : Edges
    x, c : Tensor
        ``(E, L, U)`` and ``(E, L, M)``, factors of a product; no c means the identity, M = L.
    weight : Tensor, optional
        ``(E, T)``.

    Returns
    -------
    Tensor
        ``(N, M, U)``, with weights ``(N, M, T, U)``.
    """
    if c is None and weight is None:
        return edges.sum(x)
    n, k, flat = edges.num_nodes, edges.degree, x
    if c is None:
        spread, flat = weight.unsqueeze(1), x.flatten(1).unsqueeze(1)  # (E, 1, T), (E, 1, L U)
    else:
        spread = c if weight is None else (c[..., None] * weight[:, None, None]).flatten(2)  # (E, L, M T)
    if k:
        rows = k * spread.size(1)
        summed = spread.reshape(n, rows, -1).mT @ flat.reshape(n, rows, -1)
    else:
        summed = edges.sum(spread.mT @ flat)
    if weight is None:
        return summed
    return summed.unflatten(2, x.shape[1:]).transpose(1, 2) if c is None else summed.unflatten(1, (c.size(2), -1))


class _CuEquivariance(nn.Module):
    """The same product as a segmented polynomial of cuEquivariance, with our coefficients and order of numbers."""

    def __init__(self, ours: ChannelwiseProduct) -> None:
        super().__init__()
        if not all(map(importlib.util.find_spec, ("cuequivariance", "cuequivariance_torch"))):
            raise MissingExtraError(
                "backend='cuequivariance' needs cuequivariance-torch: pip install 'protgraph-pyg[cuequivariance]'"
            )
        import cuequivariance as cue

        wanted = cue.SegmentedTensorProduct.from_subscripts("u,iu,j,ku+ijk")
        for mul, ir in ours.irreps_in:
            wanted.add_segment(1, (ir.dim, mul))
        for _, ir in ours.irreps_sh:
            wanted.add_segment(2, (ir.dim,))
        self.shapes = [(ours.irreps_out[p.o].ir.dim, p.channels) for p in ours.paths]
        for p, (dim, mul) in zip(ours.paths, self.shapes, strict=True):
            exact = ours._exact[ours.irreps_sh.slices()[p.s], p.columns].unflatten(1, (-1, dim)).transpose(0, 1)
            made = wanted.add_segment(0, (mul,)), wanted.add_segment(3, (dim, mul))
            wanted.add_path(made[0], p.i, p.s, made[1], c=exact.numpy())
        # CUDA kernels want one width of all segments.
        wanted = wanted.flatten_coefficient_modes().split_mode("u", math.gcd(*(mul for mul, _ in ours.irreps_in)))
        self._polynomial = cue.SegmentedPolynomial.eval_last_operand(wanted)
        self._made: dict[str, Any] = {}

    def forward(self, sources: list[Tensor], harmonics: Tensor, weight: Tensor | None) -> list[Tensor]:
        x = torch.cat([s.flatten(1) for s in sources], 1)  # (E, Σ (2l+1) U)
        if weight is None:
            weight = x.new_ones(len(x), sum(channels for _, channels in self.shapes))
        (z,) = self._on(x.device)([weight, x, harmonics])
        parts = z.split([dim * mul for dim, mul in self.shapes], 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def _on(self, device: torch.device) -> Any:
        method = "uniform_1d" if device.type == "cuda" else "naive"
        if method not in self._made:
            if method == "uniform_1d" and not importlib.util.find_spec("cuequivariance_ops_torch"):
                kernels = f"cuequivariance-ops-torch-cu{(torch.version.cuda or '12').split('.')[0]}"
                raise MissingExtraError(f"backend='cuequivariance' needs {kernels} on CUDA: pip install {kernels}")
            from cuequivariance_torch import SegmentedPolynomial

            self._made[method] = SegmentedPolynomial(self._polynomial, method=method).to(device)
        return self._made[method]

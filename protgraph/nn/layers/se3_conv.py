"""Convolutions with a learned kernel for every pair of degrees and channels, as SE(3)-Transformers have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from e3nn import o3
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.layers.irreps import IrrepsLinear
from protgraph.nn.layers.radial import BesselBasis, polar
from protgraph.nn.mlp import check_choice
from protgraph.nn.module import GraphLayer
from protgraph.nn.tensor_product import ChannelwiseProduct, TensorProductBackend
from protgraph.ops import Edges

__all__ = ["PairwiseKernel", "RadialNets", "SE3Conv"]
ENTRY_POINTS = {"protgraph.layers": {"se3_conv": "SE3Conv"}}

RadialNets = Literal["one", "output", "pair"]

# Numbers of R(e_ij) made at once on CPU: 4 MB float32 stay in cache, and in memory that is used again and again.
_CHUNK = 1 << 20


class PairwiseKernel(nn.Module):
    """``k_ij[w] = Σ_u Σ_J R_J[u, w](e_ij) (Y_J(r_ij) ⊗ h_j[u])`` for every degree, with R = Linear ∘ MLP of the edge.

    Parameters
    ----------
    irreps_in, irreps_out : e3nn.o3.Irreps
        Of h and of k.
    lmax : int
        Largest degree J of the spherical harmonics.
    width : int
        Edge features that the radial networks read.
    radial : int
        Width T of their two hidden layers.
    nets : {"one", "output", "pair"}
        How many hidden layers there are: one for all kernels, one per block of the output, or one per pair of
        input and output block. Last linear maps are always apart.
    layer_norm : bool
        Whether the radial networks normalize their hidden layers.
    parity : bool
        Keep only couplings that reflections allow (O(3)); otherwise SO(3).
    backend : {"e3nn", "cuequivariance"}
        Of :class:`~protgraph.nn.tensor_product.ChannelwiseProduct`.

    References
    ----------
    Thomas et al. 2018, arXiv:1802.08219, eq. 4; Fuchs et al. 2020, arXiv:2006.10503, eqs. 8–9.
    """

    def __init__(
        self,
        irreps_in: o3.Irreps,
        irreps_out: o3.Irreps,
        *,
        lmax: int,
        width: int,
        radial: int,
        nets: RadialNets,
        layer_norm: bool,
        parity: bool,
        backend: TensorProductBackend,
    ) -> None:
        super().__init__()
        self.irreps_out = irreps_out
        self.product = ChannelwiseProduct(irreps_in, lmax, irreps_out, parity=parity, backend=backend)
        paths = self.product.paths
        name = {"one": lambda p: "all", "output": lambda p: f"{p.o}", "pair": lambda p: f"{p.i}_{p.o}"}[
            check_choice("nets", nets, ("one", "output", "pair"))
        ]
        self.net_of = [name(p) for p in paths]
        self.nets = nn.ModuleDict({n: _hidden(width, radial, layer_norm) for n in dict.fromkeys(self.net_of)})
        fan_in = [sum(p.channels for p in paths if p.o == o) * radial for o in range(len(irreps_out))]
        self.weights = nn.ParameterList(
            torch.randn(radial + 1, p.channels, irreps_out[p.o].mul) / math.sqrt(fan_in[p.o]) for p in paths
        )

    def forward(self, h: Tensor, direction: Tensor, attr: Tensor, edges: Edges) -> list[Tensor]:
        """One ``(E, 2l+1, W)`` per block of the output."""
        ones = attr.new_ones(len(attr), 1)
        hidden = {name: torch.cat([net(attr), ones], 1) for name, net in self.nets.items()}  # (E, T + 1)
        out: list[Any] = [0] * len(self.irreps_out)
        products = self.product(h, direction, edges)
        for path, name, z, weight in zip(self.product.paths, self.net_of, products, self.weights, strict=True):
            out[path.o] = out[path.o] + _Kernel.apply(hidden[name], z, weight)
        return out


def _hidden(width: int, radial: int, layer_norm: bool) -> nn.Sequential:
    norm = (lambda: [nn.LayerNorm(radial)]) if layer_norm else list
    return nn.Sequential(nn.Linear(width, radial), *norm(), nn.ReLU(), nn.Linear(radial, radial), *norm(), nn.ReLU())


class _Kernel(torch.autograd.Function):
    """``k[e, m, w] = Σ_tu hidden[e, t] weight[t, u, w] z[e, m, u]`` in chunks of edges, whose R is made anew backwards.

    R = hidden · weight has U W numbers an edge. Held for all edges, it costs far more time than its arithmetic.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(hidden, z, weight)
        parts = [x @ (t @ weight.flatten(1)).unflatten(1, weight.shape[1:]) for t, x in _chunks(weight, hidden, z)]
        return torch.cat(parts)  # (E, 2l+1, W)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden, z, weight = ctx.saved_tensors
        flat = weight.flatten(1)  # (T, U W)
        dhidden, dz, dweight = [], [], torch.zeros_like(flat)
        for t, x, g in _chunks(weight, hidden, z, grad):
            r = (t @ flat).unflatten(1, weight.shape[1:])  # (e, U, W)
            dr = (x.mT @ g).flatten(1)  # (e, U W)
            dz.append(g @ r.mT)
            dhidden.append(dr @ flat.t())
            dweight = dweight + t.t() @ dr
        return torch.cat(dhidden), torch.cat(dz), dweight.view_as(weight)


def _chunks(weight: Tensor, *tensors: Tensor) -> Any:
    on_cpu, each = weight.device.type == "cpu", max(1, weight[0].numel())
    size = max(16, _CHUNK // each) if on_cpu else max(1, len(tensors[0]))
    return zip(*(x.split(size) for x in tensors), strict=True)


class SE3Conv(GraphLayer):
    """``h_i ← mean_j W(r_ij) h_j + W_0 h_i`` with the kernel W of :class:`PairwiseKernel`.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        What ``h``, ``edge_vec`` and, where wired, ``edge_attr`` hold.
    irreps : str
        Of the output.
    lmax : int
        Largest degree of the spherical harmonics.
    radial : int
        Width of the radial networks.
    nets : {"one", "output", "pair"}
        Radial networks: one, one per block of the output, or one per pair of blocks.
    layer_norm : bool
        Whether they normalize their hidden layers.
    basis, cutoff : int, float
        Bessel functions of the distance, and where they vanish (Å), where no ``edge_attr`` is wired.
    reduce : {"mean", "sum"}
        Over neighbors, W_0 h_i included in every term.
    parity : bool
        True: O(3), pseudovectors are not vectors. False: SO(3), as in the paper; the output is then chiral.
    backend : {"e3nn", "cuequivariance"}
        Whose tensor product runs.

    Notes
    -----
    Reads ``h`` (N, any irreps), ``edge_vec`` (E, 3) Å, ``edges``; optional ``edge_attr`` (E, scalars).
    Writes ``h`` (N, irreps). Deviation from the paper: neighbors are averaged, as in its code.

    References
    ----------
    Fuchs et al. 2020, arXiv:2006.10503, eqs. 8–9, and its code; NVIDIA's SE3Transformer sums.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edge_vec", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        irreps: str = "16x0e+16x1o",
        lmax: int = 2,
        radial: int = 32,
        nets: RadialNets = "one",
        layer_norm: bool = True,
        basis: int = 8,
        cutoff: float = 10.0,
        reduce: Literal["mean", "sum"] = "mean",
        parity: bool = True,
        backend: TensorProductBackend = "e3nn",
    ) -> None:
        super().__init__(fields)
        self.reduce = check_choice("reduce", reduce, ("mean", "sum"))
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") if "edge_attr" in fields else basis
        self.irreps_out, given = o3.Irreps(irreps).simplify(), {ir for _, ir in fields["h"].o3}
        kept = [block.ir in given for block in self.irreps_out]
        shared = o3.Irreps([block for block, keep in zip(self.irreps_out, kept, strict=True) if keep])
        self.own = IrrepsLinear({"h": fields["h"]}, irreps=str(shared)) if any(kept) else None
        columns = [k for k, block in zip(kept, self.irreps_out, strict=True) for _ in range(block.dim)]
        self.register_buffer("_own_columns", torch.tensor(columns).nonzero().squeeze(1), persistent=False)
        self.kernel = PairwiseKernel(
            fields["h"].o3,
            self.irreps_out,
            lmax=lmax,
            width=width,
            radial=radial,
            nets=nets,
            layer_norm=layer_norm,
            parity=parity,
            backend=backend,
        )
        self.declare(h=FieldSpec("h", "node", str(self.irreps_out), chiral=not parity))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``h`` (N, irreps)."""
        edges = f["edges"]
        distance, direction = polar(f["edge_vec"])
        attr = f["edge_attr"] if self.basis is None else self.basis(distance)
        messages = self.kernel(f["h"], direction, attr, edges)
        h = torch.cat([edges.sum(m).mT.flatten(1) for m in messages], 1)  # (N, irreps)
        count = edges.count.clamp(min=1).to(h).unsqueeze(1)
        h = h / count if self.reduce == "mean" else h
        if self.own is None:
            return {"h": h}
        own = self.own(f)["h"] if self.reduce == "mean" else count * self.own(f)["h"]
        return {"h": h.index_add(1, self._own_columns, own)}

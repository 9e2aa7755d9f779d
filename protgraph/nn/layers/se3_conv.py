"""Equivariant convolution of SE(3)-Transformers (Fuchs et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from e3nn import o3
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.layers.irreps import IrrepsLinear
from protgraph.nn.module import GraphLayer
from protgraph.nn.pairwise_kernel import PairwiseKernel, RadialNets
from protgraph.nn.radial_basis import BesselBasis, polar
from protgraph.nn.tensor_product import TensorProductBackend
from protgraph.validation import check_choice

__all__ = ["SE3Conv"]
ENTRY_POINTS = {"protgraph.layers": {"se3_conv": "SE3Conv"}}


class SE3Conv(GraphLayer):
    """Equivariant convolution ``h_i ← mean_j W(r_ij) h_j + W_0 h_i`` (Fuchs et al. 2020).

    W is a :class:`~protgraph.nn.pairwise_kernel.PairwiseKernel`.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
    irreps : str
        Output irreps, e.g. ``"16x0e+16x1o"``.
    lmax : int
        Highest degree of the spherical harmonics.
    radial : int
        Hidden width of the radial networks.
    nets : {"one", "output", "pair"}
        Number of radial networks: one, one per output block, or one per pair of blocks.
    layer_norm : bool
        Layer normalization in the radial networks.
    basis : int
        Number of Bessel functions of the distance, if ``edge_attr`` is not wired.
    cutoff : float
        Distance at which they vanish, Å.
    reduce : {"mean", "sum"}
        Aggregation over neighbors; each term includes W_0 h_i.
    parity : bool
        True: O(3) equivariance. False: SO(3) equivariance, as in the paper; the output is then chiral.
    backend : {"e3nn", "cuequivariance"}
        Implementation of the tensor product.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``edge_vec`` ``(E, 3)``, Å; ``edges``. Optional: ``edge_attr`` ``(E, F)``
    scalars.
    Writes: ``h`` ``(N, irreps)``.

    Deviation from the paper: neighbors are averaged, as in its code.

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
        width = self.scalar_width("edge_attr") or basis
        self.irreps_out, irreps_h = o3.Irreps(irreps).simplify(), {ir for _, ir in fields["h"].o3}
        is_shared = [block.ir in irreps_h for block in self.irreps_out]
        shared = o3.Irreps([block for block, keep in zip(self.irreps_out, is_shared, strict=True) if keep])
        self.own = IrrepsLinear({"h": fields["h"]}, irreps=str(shared)) if any(is_shared) else None
        columns = [k for k, block in zip(is_shared, self.irreps_out, strict=True) for _ in range(block.dim)]
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
        """Compute ``h (N, dim)``: kernels of direction and distance applied to the neighbors, plus self-interaction."""
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
        return {"h": h.index_add(1, self._own_columns, own.to(h.dtype))}  # other types in mixed precision

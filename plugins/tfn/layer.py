"""Tensor field network layer (Thomas et al. 2018)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, cast

import torch
from e3nn import o3
from protgraph_plugins.tfn.tensor_product import ChannelwiseProduct, TensorProductBackend, neighbor_sum
from torch import Tensor, nn

from protgraph.data.graph import FieldSpec
from protgraph.nn import Gate, GraphLayer
from protgraph.ops import BesselBasis, polar

__all__ = ["TFN"]
ENTRY_POINTS = {"protgraph.layers": {"tfn": "TFN"}}


class TFN(GraphLayer):
    """Tensor field network layer (Thomas et al. 2018).

    ``h_i ← Gate( Σ_j (R(d_ij) Y(r_ij)) ⊗ h_j )`` with a radial network R and spherical harmonics Y of the direction.

    Parameters
    ----------
    irreps : str
        Output irreps, e.g. ``"64x0e+16x1o"``; with a gate, even scalars come first.
    lmax : int
        Highest degree of the spherical harmonics.
    mode : {"channelwise", "full"}
        "channelwise": one radial function per channel and path, then a linear map over channels (self-interaction).
        "full": one radial function per pair of channels (e3nn's FullyConnectedTensorProduct).
    radial : int
        Hidden width of the radial network R = Linear ∘ ReLU ∘ Linear.
    basis : int
        Number of Bessel functions of the distance, if ``edge_attr`` is not wired.
    cutoff : float
        Distance at which they vanish, Å.
    gate : bool
        Apply :class:`~protgraph.nn.irreps.Gate`.
    reduce : {"mean", "sum"}
        Aggregation over neighbors.
    average_degree : float
        Divisor of a sum, so that its scale does not depend on the choice of edges.
    backend : {"e3nn", "cuequivariance"}
        Implementation of the tensor product.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``edge_vec`` ``(E, 3)``, Å; ``edges``. Optional: ``edge_attr`` ``(E, F)``
    scalars, which R reads instead of its Bessel basis.
    Writes: ``h`` ``(N, irreps)``.

    The sum over neighbors is linear and is taken before channels are mixed, so that no edge has a message of the
    output's width or (mode "full") a weight matrix. Coincident nodes have direction 0 and interact through Y_0 only.

    Deviations from the paper: O(3) instead of SO(3); Bessel functions instead of Gaussians; a gate as nonlinearity;
    path normalization of e3nn. As ``edge_vec`` = pos[j] − pos[i], odd filters change sign; weights absorb it.

    References
    ----------
    Thomas et al. 2018, arXiv:1802.08219, eqs. 4–7. Mode "full": Joshi et al. 2023, arXiv:2301.09308, and its code
    geometric-gnn-dojo. Normalization: Geiger & Smidt 2022, arXiv:2207.09453.

    Examples
    --------
    >>> fields = {"h": FieldSpec("h", "node", "8x0e"), "edges": FieldSpec("edges", "edge", "object")}
    >>> fields["edge_vec"] = FieldSpec("edge_vec", "edge", "1x1o")
    >>> TFN(fields, irreps="8x0e+4x1o").out["h"].irreps
    '8x0e+4x1o'
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edge_vec", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        irreps: str = "64x0e+16x1o",
        lmax: int = 1,
        mode: Literal["channelwise", "full"] = "channelwise",
        radial: int = 16,
        basis: int = 8,
        cutoff: float = 10.0,
        gate: bool = True,
        reduce: Literal["mean", "sum"] = "mean",
        average_degree: float = 1.0,
        backend: TensorProductBackend = "e3nn",
    ) -> None:
        super().__init__(fields)
        self.mode = mode
        self.average_degree = average_degree
        self.reduce = reduce
        self.gate = Gate(irreps) if gate else None
        if self.gate is None:
            self.irreps_mid = o3.Irreps(irreps).simplify()
            self.irreps_out = self.irreps_mid
        else:
            self.irreps_mid = self.gate.irreps_in
            self.irreps_out = self.gate.irreps_out
        self._num_blocks = len(self.irreps_mid)
        self.product = ChannelwiseProduct(fields["h"].o3, lmax, self.irreps_mid, backend=backend)
        paths = self.product.paths
        fan_in = [0] * len(self.irreps_mid)
        for path in paths:
            fan_in[path.o] += path.channels
        #: U, W and the number of channels with the same output block, per path.
        self.shapes = [(p.channels, self.irreps_mid[p.o].mul, fan_in[p.o]) for p in paths]
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") or basis
        if mode == "channelwise":
            num_weights = self.product.weight_numel
        else:
            num_weights = sum(u * w for u, w, _ in self.shapes)
        first = nn.Linear(width, radial)
        last = nn.Linear(radial, num_weights)
        self.fc = nn.Sequential(first, nn.ReLU(), last)
        # Weights of unit scale for edge features of unit scale, as e3nn's path normalization assumes.
        nn.init.kaiming_normal_(first.weight, nonlinearity="relu")
        nn.init.kaiming_normal_(last.weight, nonlinearity="linear")
        if mode == "channelwise":  # scale 1 / sqrt(fan_in), as torch's linear maps
            self.self_interaction = nn.ParameterList(torch.randn(u, w) / math.sqrt(fan) for u, w, fan in self.shapes)
        self.declare(h=str(self.irreps_out))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: tensor products of neighbors with spherical harmonics of the direction."""
        edges = f["edges"]
        distance, direction = polar(f["edge_vec"])
        features = f["edge_attr"] if self.basis is None else self.basis(distance)
        hidden = self.fc[:2](features)  # (E, radial)

        # the terms of all paths to an output block are added
        if self.mode == "channelwise":
            terms = self._channelwise(f, direction, hidden)
        else:
            terms = self._full(f, direction, hidden)
        out: list[Any] = [0] * self._num_blocks
        for path, term in zip(self.product.paths, terms, strict=True):
            out[path.o] = out[path.o] + term  # (N, 2l_o+1, W)
        h = torch.cat([block.mT.flatten(1) for block in out], 1)

        if self.reduce == "mean":
            h = h / edges.count.clamp(min=1).to(h)[:, None]
        else:
            h = h / self.average_degree
        if self.gate is not None:
            h = self.gate(h)
        return {"h": h}

    def _channelwise(self, f: Mapping[str, Any], direction: Tensor, hidden: Tensor) -> Iterator[Tensor]:
        weight = self.product.weights(cast(nn.Linear, self.fc[2]), hidden)
        factors = self.product.factors(f["h"], direction, f["edges"], weight)
        for (x, c), mixing in zip(factors, self.self_interaction, strict=True):
            yield neighbor_sum(f["edges"], x, c) @ mixing

    def _full(self, f: Mapping[str, Any], direction: Tensor, hidden: Tensor) -> Iterator[Tensor]:
        # R's last map is linear in its hidden layer, so neighbors are summed per hidden unit and mixed afterwards.
        last = cast(nn.Linear, self.fc[2])
        affine = torch.cat([last.weight, last.bias[:, None]], 1)  # (Σ U W, T)
        hidden = torch.cat([hidden, hidden.new_ones(len(hidden), 1)], 1)  # (E, T)
        affines = affine.split([u * w for u, w, _ in self.shapes])
        factors = self.product.factors(f["h"], direction, f["edges"])
        for (x, c), (u, w, fan), linear in zip(factors, self.shapes, affines, strict=True):
            summed = neighbor_sum(f["edges"], x, c, hidden)  # (N, 2l_o+1, T, U)
            weights = linear.unflatten(0, (u, w)).permute(2, 0, 1)  # (T, U, W)
            weights = weights.flatten(0, 1) / math.sqrt(fan)  # (T U, W)
            yield summed.flatten(2) @ weights

"""Continuous-discrete convolution (Fan et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from protgraph import Edges, FieldSpec, GraphLayer

__all__ = ["CDConv"]
ENTRY_POINTS = {"protgraph.layers": {"cdconv": "CDConv"}}


class CDConv(GraphLayer):
    """Convolution with kernels that are continuous in space and discrete along the sequence (Fan et al. 2023).

    Distances are real numbers and offsets along a chain are integers: one function of both would have to learn the
    difference between the residue next in sequence and one that is as close in space.
    ``h'_i = W Σ_j u_ij k_ij ⊗ h_j`` with ``k_ij = σ(V_s e_ij + b_s)``, where s is the offset of j to i along the chain,
    from -S to S, and every offset has a V and a b of its own. ``u = (1 - tanh(16 (d_ij / r) (|s| / S) - 14)) / 2``
    vanishes for neighbors that are far in space and along the chain.

    Parameters
    ----------
    dim : int
        Width of the output.
    kernels : int
        Number of numbers in k.
    offsets : int
        S, at least 1. Larger offsets count as S; residues of another chain have a V and a b of their own, and |s| = S.
    radius : float
        r, Å.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``; ``edge_attr`` ``(E, D)`` scalars, e, e.g. ``edge_local``,
    ``edge_rotation`` and ``edge_dist``; ``edge_dist`` ``(E, 1)``, Å; ``seq_pos`` and ``chain`` ``(N,)`` int64.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    σ is LeakyReLU with slope 0.2. The sums over neighbors are taken before W, without a tensor of edges × kernels × C.

    References
    ----------
    Fan et al. 2023, "Continuous-discrete convolution for geometry-sequence modeling in proteins", ICLR, eqs. 3–5; u is
    of the authors' code.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_attr", "edge_dist", "seq_pos", "chain")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        kernels: Annotated[int, Ge(1)] = 16,
        offsets: Annotated[int, Ge(1)] = 5,
        radius: Annotated[float, Gt(0)] = 12.0,
    ) -> None:
        super().__init__(fields)
        self.offsets = offsets
        self.radius = float(radius)
        width = self.scalar_width("edge_attr")
        kinds = 2 * offsets + 2  # offsets -S … S, and another chain
        bound = 1 / math.sqrt(width)
        self.weight = nn.Parameter(torch.empty(kinds, width, kernels).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(kinds, kernels).uniform_(-bound, bound))
        self.linear = nn.Linear(kernels * self.scalar_width("h"), dim, bias=False)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: neighbors times the numbers of their kernels, summed, then mapped."""
        edges, e = f["edges"], f["edge_attr"]

        # Kernels of edges, with the map of their offset.
        kind = self._kinds(edges, f["seq_pos"], f["chain"])  # (E,)
        weight = self.weight.index_select(0, kind)  # (E, D, K)
        bias = self.bias.index_select(0, kind)
        kernel = leaky_relu(torch.einsum("ed,edk->ek", e, weight) + bias, 0.2)

        # Less of what is far in space and along the chain; the last kind, another chain, is as far as S.
        offset = (kind - self.offsets).abs().clamp(max=self.offsets)
        share_of_offsets = (offset.to(e.dtype) / self.offsets).unsqueeze(1)
        far = 16 * (f["edge_dist"] / self.radius) * share_of_offsets - 14
        kernel = kernel * (0.5 - 0.5 * torch.tanh(far))  # (E, K)

        features = f["h"].unsqueeze(1).expand(-1, kernel.size(1), -1)  # (N, K, C), a view
        summed = edges.gather_sum(features, kernel)
        return {"h": self.linear(summed.flatten(1))}

    def _kinds(self, edges: Edges, seq_pos: Tensor, chain: Tensor) -> Tensor:
        """Compute the number of V and b of each edge, ``(E,)`` int64."""
        offset = edges.source(seq_pos) - edges.target(seq_pos)
        offset = offset.clamp(-self.offsets, self.offsets)
        in_one_chain = edges.source(chain) == edges.target(chain)
        return torch.where(in_one_chain, offset + self.offsets, 2 * self.offsets + 1)

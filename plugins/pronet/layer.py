"""Interaction block of ProNet at the level of residues (Wang et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from protgraph_plugins.dimenet import SphericalBasis
from torch import Tensor, nn
from torch.nn.functional import silu

from protgraph import Edges, FieldSpec, GraphLayer
from protgraph.ops import polar, unit_or_zero

__all__ = ["ProNet"]
ENTRY_POINTS = {"protgraph.layers": {"pronet": "ProNet"}}


class EdgeConv(nn.Module):
    """``act(W₀ (W₁ Σ_j (V₂ V₁ e_ij) ∘ x_j + W₂ x_i))``, a graph convolution with one weight per edge and channel."""

    def __init__(self, width: int, dim: int, narrow: int) -> None:
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(width, narrow, bias=False), nn.Linear(narrow, dim, bias=False))
        self.neighbors, self.own = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.linear = nn.Linear(dim, dim)

    def forward(self, x: Tensor, e: Tensor, edges: Edges) -> Tensor:
        """Compute ``(N, dim)`` from ``(N, dim)`` and features of edges ``(E, width)``."""
        summed = edges.sum(self.filter(e) * edges.source(x))
        return silu(self.linear(self.neighbors(summed) + self.own(x)))


class ProNet(GraphLayer):
    """Interaction block with complete geometry: distances, polar angles and torsions (Wang et al. 2023).

    Three convolutions of ``σ(W₁ h)``, with filters of ``j_ln(d) Y_lm(θ, φ)``, of ``j_ln(d) Y_l(τ)`` and of
    ``edge_attr``, are joined: ``h' = MLP(σ(W [c_1, c_2, c_3]) + σ(W₂ h))``.
    θ and φ are the polar angles of the neighbor j at residue i, in axes from the previous and next CA of i; τ is the
    torsion of the previous CA of i, i, j and the previous CA of j around the edge, with the next CA where the previous
    one is the other end of the edge.

    Parameters
    ----------
    dim : int
        Width of the output.
    radial : int
        Number of spherical Bessel functions of each degree; degrees are 0 and 1.
    cutoff : float
        Distance at which they vanish, Å.
    narrow : int
        Width between the two maps of a filter.
    dropout : float
        Dropout probability of the convolutions.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å; ``orientation`` ``(N, 2, 3)``, to the next
    and the previous CA; ``seq_pos`` and ``chain`` ``(N,)`` int64; ``edge_attr`` ``(E, D)`` scalars, e.g. of the
    sequence offset.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``, chiral, since φ is signed.

    Angles at chain ends and gaps, where a CA is missing, have the functions 0 (φ and θ) or those of a right angle (τ).

    References
    ----------
    Wang et al. 2023, arXiv:2207.12600, sec. 4.2 and appendix (interaction block); its program in DIG.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec", "orientation", "seq_pos", "chain", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        radial: Annotated[int, Ge(1)] = 6,
        cutoff: Annotated[float, Gt(0)] = 20.0,
        narrow: int = 16,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.cutoff, self.basis = float(cutoff), SphericalBasis(2, radial)
        self.key = f"angles of pronet {radial} {cutoff}"
        self.lin1, self.lin2 = nn.Linear(width, dim), nn.Linear(width, dim)
        widths = [4 * radial, 2 * radial, self.scalar_width("edge_attr")]
        self.convs = nn.ModuleList(EdgeConv(w, dim, narrow) for w in widths)
        self.join, self.hidden, self.last = nn.Linear(3 * dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.declare(h=FieldSpec("h", "node", f"{dim}x0e", chiral=True))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: convolutions with filters of angles, joined."""
        edges, vec = f["edges"], f["edge_vec"]
        of_polar, of_torsion = edges.cached(self.key, vec, lambda: self._features(f))
        x = silu(self.lin1(f["h"]))
        features = (of_polar, of_torsion, f["edge_attr"])
        terms = [self.dropout(conv(x, e, edges)) for conv, e in zip(self.convs, features, strict=True)]
        h = silu(self.join(torch.cat(terms, 1))) + silu(self.lin2(f["h"]))
        return {"h": self.last(silu(self.hidden(h)))}

    def _features(self, f: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Compute the functions of d, θ and φ, ``(E, 4 R)``, and of d and τ, ``(E, 2 R)``."""
        edges, orientation = f["edges"], f["orientation"]
        distance, direction = polar(f["edge_vec"])  # from i to j
        radial = self.basis.of_distance(distance / self.cutoff)  # (E, 2, R)

        # Axes of i: z to the previous CA, y normal to the plane with the next CA.
        following, previous = orientation.unbind(1)
        y = unit_or_zero(torch.linalg.cross(previous, following))
        axes = torch.stack([torch.linalg.cross(y, previous), y, previous], 1)  # (N, 3, 3)
        local = torch.einsum("ekx,ex->ek", edges.target(axes), direction)  # sin θ cos φ, sin θ sin φ, cos θ
        first, second = radial.unbind(1)
        norm = math.sqrt(1 / (4 * math.pi))
        of_polar = [norm * first, (math.sqrt(3) * norm * local.unsqueeze(2) * second.unsqueeze(1)).flatten(1)]

        # The CA beside i and j that is not the other end of the edge.
        offset = edges.source(f["seq_pos"]) - edges.target(f["seq_pos"])
        is_same = edges.source(f["chain"]) == edges.target(f["chain"])
        is_previous, is_next = ((is_same & (offset == step)).unsqueeze(1) for step in (-1, 1))
        beside_i = torch.where(is_previous, edges.target(following), edges.target(previous))
        beside_j = torch.where(is_next, edges.source(following), edges.source(previous))
        plane_i = unit_or_zero(torch.linalg.cross(direction, beside_i))
        plane_j = unit_or_zero(torch.linalg.cross(direction, beside_j))
        cosine = (plane_i * plane_j).sum(1, keepdim=True)
        of_torsion = radial * self.basis.of_cosine(cosine).unsqueeze(2)
        return torch.cat(of_polar, 1), of_torsion.flatten(1)

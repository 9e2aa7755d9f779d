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
        down = nn.Linear(width, narrow, bias=False)
        up = nn.Linear(narrow, dim, bias=False)
        self.filter = nn.Sequential(down, up)
        self.neighbors = nn.Linear(dim, dim)
        self.own = nn.Linear(dim, dim, bias=False)
        self.linear = nn.Linear(dim, dim)

    def forward(self, x: Tensor, e: Tensor, edges: Edges) -> Tensor:
        """Compute ``(N, dim)`` from ``(N, dim)`` and features of edges ``(E, width)``."""
        summed = edges.sum(self.filter(e) * edges.source(x))
        return silu(self.linear(self.neighbors(summed) + self.own(x)))


class ProNet(GraphLayer):
    """Interaction block with complete geometry: distances, polar angles and torsions (Wang et al. 2023).

    Distances of a node's neighbors do not fix where they are; with both angles and the torsion of each edge, the
    positions of all CA follow from the features of the graph.
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
        self.cutoff = float(cutoff)
        self.basis = SphericalBasis(2, radial)
        self.key = f"angles of pronet {radial} {cutoff}"
        self.lin1 = nn.Linear(width, dim)
        self.lin2 = nn.Linear(width, dim)
        filter_widths = [4 * radial, 2 * radial, self.scalar_width("edge_attr")]
        self.convs = nn.ModuleList(EdgeConv(filter_width, dim, narrow) for filter_width in filter_widths)
        self.join = nn.Linear(3 * dim, dim)
        self.hidden = nn.Linear(dim, dim)
        self.last = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.declare(h=FieldSpec("h", "node", f"{dim}x0e", chiral=True))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: convolutions with filters of angles, joined."""
        edges = f["edges"]
        of_polar, of_torsion = edges.cached(self.key, f["edge_vec"], lambda: self._features(f))

        # One convolution for each kind of edge features.
        x = silu(self.lin1(f["h"]))
        features = (of_polar, of_torsion, f["edge_attr"])
        convolved = []
        for conv, e in zip(self.convs, features, strict=True):
            convolved.append(self.dropout(conv(x, e, edges)))

        h = silu(self.join(torch.cat(convolved, 1))) + silu(self.lin2(f["h"]))
        return {"h": self.last(silu(self.hidden(h)))}

    def _features(self, f: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Compute the functions of d, θ and φ, ``(E, 4 R)``, and of d and τ, ``(E, 2 R)``."""
        distance, direction = polar(f["edge_vec"])  # from i to j
        radial = self.basis.of_distance(distance / self.cutoff)  # (E, 2, R)

        # Degree 0 of Y(θ, φ) is constant, and degree 1 the direction in the axes of i.
        degree_0, degree_1 = radial.unbind(1)
        norm = math.sqrt(1 / (4 * math.pi))
        local = _local_directions(f, direction)
        of_direction = math.sqrt(3) * norm * local.unsqueeze(2) * degree_1.unsqueeze(1)  # (E, 3, R)
        of_polar = torch.cat([norm * degree_0, of_direction.flatten(1)], 1)

        of_torsion = radial * self.basis.of_cosine(_torsion_cosines(f, direction)).unsqueeze(2)
        return of_polar, of_torsion.flatten(1)


def _local_directions(f: Mapping[str, Any], direction: Tensor) -> Tensor:
    """Compute ``(sin θ cos φ, sin θ sin φ, cos θ)`` of each edge, ``(E, 3)``.

    In the axes of i, z points to the previous CA, and y is normal to the plane with the next CA.
    """
    following, previous = f["orientation"].unbind(1)
    y = unit_or_zero(torch.linalg.cross(previous, following))
    x = torch.linalg.cross(y, previous)
    axes = torch.stack([x, y, previous], 1)  # (N, 3, 3)
    return torch.einsum("ekx,ex->ek", f["edges"].target(axes), direction)


def _torsion_cosines(f: Mapping[str, Any], direction: Tensor) -> Tensor:
    """Compute ``cos τ`` of each edge, ``(E, 1)``."""
    edges = f["edges"]
    following, previous = f["orientation"].unbind(1)

    # The previous CA of i and of j, or the next one if the previous one is the other end of the edge.
    offset = edges.source(f["seq_pos"]) - edges.target(f["seq_pos"])
    in_one_chain = edges.source(f["chain"]) == edges.target(f["chain"])
    is_previous = (in_one_chain & (offset == -1)).unsqueeze(1)
    is_next = (in_one_chain & (offset == 1)).unsqueeze(1)
    beside_i = torch.where(is_previous, edges.target(following), edges.target(previous))
    beside_j = torch.where(is_next, edges.source(following), edges.source(previous))

    # The angle between the planes that contain the edge and each of them.
    plane_i = unit_or_zero(torch.linalg.cross(direction, beside_i))
    plane_j = unit_or_zero(torch.linalg.cross(direction, beside_j))
    return (plane_i * plane_j).sum(1, keepdim=True)

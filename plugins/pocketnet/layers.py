"""Layers of PocketNet: gated messages between atoms, attention of points to atoms, log-odds of probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from protgraph_plugins.pocketnet.featurizers import KIND, SHAPE
from torch import Tensor, nn

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.ops import unit_or_zero

__all__ = ["PocketNetAttention", "PocketNetEmbed", "PocketNetLogOdds", "PocketNetMessage"]
ENTRY_POINTS = {
    "protgraph.layers": {
        "pocketnet_attention": "PocketNetAttention",
        "pocketnet_embed": "PocketNetEmbed",
        "pocketnet_log_odds": "PocketNetLogOdds",
        "pocketnet_message": "PocketNetMessage",
    }
}

_NEAR = 6.0  # Å, neighbors of an atom; of the 24 nearest
_NEIGHBORS = 24.0
_COUNT_RADII = (4.0, 6.0, 3.0, 5.0)  # Å, in which neighbors of an atom are counted
_DEGREE = 12.0  # by which sums of messages are divided
_BASIS = 16  # Gaussian functions of the distance of two atoms

_VIEW = 10.0  # Å, atoms that a point attends to; of the 32 nearest
_AXIAL, _RADIAL = 12, 10  # Gaussian functions of the coordinates of an atom along the normal and off it
_HEADS = 4
_HIDDEN = 128
_LEAST = 2.0**-20  # probability; residues without points have this one; exact in float32, as is 1 minus it


def _gaussians(x: Tensor, low: float, high: float, number: int) -> Tensor:
    """Return Gaussian functions of ``(…,)`` numbers, ``(…, number)``, with centers from low to high."""
    center = torch.linspace(low, high, number, dtype=x.dtype, device=x.device)
    width = (high - low) / number
    deviation = (x.unsqueeze(-1) - center) / width
    return torch.exp(-(deviation**2))


class PocketNetEmbed(GraphLayer):
    """Embed atoms by their kind and by the numbers of neighbors: ``h_i = E[kind_i] + W c_i + b``.

    c are the numbers of neighbors closer than 4, 6, 3 and 5 Å, divided by 24.

    Parameters
    ----------
    dim : int
        Width of the output.

    Notes
    -----
    Reads: ``pocketnet_kind`` ``(N,)``, ``edge_dist`` ``(E, 1)`` Å, edges from the 24 nearest atoms. Writes: ``h``
    ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Distribution ``pocketnet`` 0.3.0 (PyPI).
    """

    reads: ClassVar[tuple[str, ...]] = (KIND.name, "edge_dist", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(
        expected_failures={"non_trivial": "only the targets of the edges are read"}
    )

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 128) -> None:
        super().__init__(fields)
        self.kind = nn.Embedding(fields[KIND.name].dim, dim)
        self.count = nn.Linear(len(_COUNT_RADII), dim)
        self.register_buffer("radius", torch.tensor(_COUNT_RADII), persistent=False)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``."""
        edges = f["edges"]
        distance = f["edge_dist"]
        is_near = (distance < self.radius).to(distance.dtype)  # (E, 4)
        count = edges.sum(is_near) / _NEIGHBORS  # (N, 4)
        of_count = self.count(count.to(self.count.weight.dtype))
        of_kind = self.kind(f[KIND.name])
        return {"h": of_kind + of_count}


class PocketNetMessage(GraphLayer):
    """Gated messages between atoms closer than 6 Å, with a normalized update.

    ``m_i = Σ_j σ(V z_ij + c) ⊙ W₂ silu(W₁ z_ij + b₁) / 12`` with ``z_ij = [h_i, h_j, G(d_ij)]``, G 16 Gaussian
    functions, and ``h'_i = norm(h_i + U₂ silu(U₁ [h_i, m_i]))``.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars, ``edge_dist`` ``(E, 1)`` Å, edges. Writes: ``h`` ``(N, C)``, ``C x 0e``.

    W₁ and V act on nodes and on G, not on z: a map of the source, one of the target and one of the edge.

    References
    ----------
    Distribution ``pocketnet`` 0.3.0 (PyPI).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edge_dist", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        dim = self.scalar_width("h")
        # The first half of each map is for the message, the second one for its gate.
        self.target = nn.Linear(dim, 2 * dim)
        self.source = nn.Linear(dim, 2 * dim, bias=False)
        self.edge = nn.Linear(_BASIS, 2 * dim, bias=False)
        self.message = nn.Linear(dim, dim)
        self.update = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.norm = nn.LayerNorm(dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)``."""
        h = f["h"]
        edges = f["edges"]
        distance = f["edge_dist"].to(h.dtype)
        of_edge = self.edge(_gaussians(distance[:, 0], 0.0, _NEAR, _BASIS))
        first = edges.pair_sum(self.target(h), self.source(h), of_edge)  # (E, 2C)
        hidden, gate = first.chunk(2, dim=1)
        message = self.message(nn.functional.silu(hidden)) * torch.sigmoid(gate)
        is_near = (distance < _NEAR).to(h.dtype)
        received = edges.sum(message * is_near) / _DEGREE
        update = self.update(torch.cat([h, received], 1))
        return {"h": self.norm(h + update)}


class PocketNetAttention(GraphLayer):
    """Attention of points to the atoms within 10 Å, and one logit per point.

    The position of an atom is its coordinate along the normal, which points from the nearest atom to the point, and its
    distance from this axis, both in Gaussian functions g. With ``s_j`` a linear map of the features of the atom:
    ``a_ij = softmax_j(A₂ silu(A₁ [g_ij, s_j]))`` for each of four heads, ``p_i = Σ_j a_ij V [s_j, g_ij]``, and
    ``h_i = MLP[p_i, MLP(shape_i), s_nearest]``.

    Parameters
    ----------
    dim : int
        Width of s.
    dropout : float
        Dropout probability in the last network.

    Notes
    -----
    Reads: ``source_h`` ``(M, C)`` scalars of the atoms, ``pos`` ``(N, 3)`` and ``source_pos`` ``(M, 3)`` Å,
    ``pocketnet_shape`` ``(N, F)``, and edges from the nearest atoms to each point. Writes: ``h`` ``(N, 1)``, ``1x0e``.

    References
    ----------
    Distribution ``pocketnet`` 0.3.0 (PyPI).
    """

    reads: ClassVar[tuple[str, ...]] = ("source_h", "pos", "source_pos", SHAPE.name, "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(
        inputs={"source_pos": FieldSpec("source_pos", "node", "point", unit="Å")},
        tolerance=3e-4,  # the distance from the axis is a small difference of squares
    )

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 64, dropout: float = 0.1) -> None:
        super().__init__(fields)
        self.project = nn.Linear(self.scalar_width("source_h"), dim)
        geometry = _AXIAL + _RADIAL
        # Maps of [g, s] are those of g and of s, so that the latter acts on atoms, not on edges.
        self.attend_geometry = nn.Linear(geometry, _HIDDEN)
        self.attend_source = nn.Linear(dim, _HIDDEN, bias=False)
        self.attend = nn.Linear(_HIDDEN, _HEADS, bias=False)  # softmax takes away the bias of the program
        self.value_geometry = nn.Linear(geometry, dim)
        self.value_source = nn.Linear(dim, dim, bias=False)
        self.shape = nn.Sequential(nn.Linear(self.scalar_width(SHAPE.name), 128), nn.SiLU(), nn.Linear(128, 128))
        self.output = nn.Sequential(
            nn.Linear(_HEADS * dim + 128 + dim, 256),
            nn.SiLU(),
            nn.Dropout(dropout),
            nn.Linear(256, 128),
            nn.SiLU(),
            nn.Linear(128, 1),
        )
        self.declare(h="1x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute the logits of the points, ``h (N, 1)``."""
        edges = f["edges"]
        s = self.project(f["source_h"])  # (M, dim)
        vector = edges.source(f["source_pos"]) - edges.target(f["pos"])  # (E, 3) from the point to the atom
        distance = vector.norm(dim=1)
        least_distance = -edges.max(-distance)  # (N,)
        is_nearest = (distance == edges.target(least_distance)).to(s.dtype)  # (E,)
        nearest = edges.sum(is_nearest[:, None] * vector)  # (N, 3)
        normal = unit_or_zero(-nearest)

        # Cylinder coordinates of the atoms.
        along = (vector * edges.target(normal)).sum(1)
        across = (distance**2 - along**2).clamp(min=1e-12).sqrt()
        of_along = _gaussians(along, -_VIEW, _VIEW, _AXIAL)
        of_across = _gaussians(across, 0.0, _VIEW, _RADIAL)
        geometry = torch.cat([of_along, of_across], 1).to(s.dtype)

        # Attention to the atoms within the view, and the mean of their values by each head.
        hidden = self.attend_geometry(geometry) + edges.source(self.attend_source(s))
        logits = self.attend(nn.functional.silu(hidden))  # (E, heads)
        is_outside = distance >= _VIEW
        logits = logits.masked_fill(is_outside[:, None], -1e4)
        weight = edges.softmax(logits)
        value = self.value_geometry(geometry) + edges.source(self.value_source(s))  # (E, dim)
        of_heads = [edges.sum(weight[:, head, None] * value) for head in range(_HEADS)]

        of_shape = self.shape(f[SHAPE.name].to(s.dtype))
        of_nearest = edges.sum(is_nearest[:, None] * edges.source(s))
        columns = torch.cat([*of_heads, of_shape, of_nearest], 1)
        return {"h": self.output(columns)}


class PocketNetLogOdds(GraphLayer):
    """Log-odds of probabilities: ``h'_i = log(p_i / (1 − p_i))``, p = h limited to 2⁻²⁰ … 1 − 2⁻²⁰.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars from 0 to 1. Writes: ``h`` ``(N, C)``, ``C x 0e``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(nonnegative=("h",))

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        self.declare(h=f"{self.scalar_width('h')}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)``."""
        probability = f["h"]
        precise = torch.promote_types(probability.dtype, torch.float32)  # in bfloat16, 1 − 2⁻²⁰ is 1
        return {"h": torch.logit(probability.to(precise), eps=_LEAST).to(probability.dtype)}

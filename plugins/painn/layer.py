"""Message and update block of PaiNN (Schütt et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from torch import Tensor, nn

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import WiringError
from protgraph.ops import cosine_cutoff, polar

__all__ = ["PaiNN"]
ENTRY_POINTS = {"protgraph.layers": {"painn": "PaiNN"}}

SMALLEST = 1e-8  # added to |V v|², so that a zero vector has a finite gradient


class PaiNN(GraphLayer):
    """Equivariant message passing with scalars h and as many vectors v (Schütt et al. 2021).

    Vectors pass on the directions of neighbors, which layers of distances alone (``schnet``) lose after one step.
    Message, with ``[a, b, c]_ij = φ(h_j) ∘ W(d_ij, e_ij)`` and the direction ``r_ij``: ``h_i ← h_i + Σ_j a_ij``,
    ``v_i ← v_i + Σ_j (v_j ∘ b_ij + r_ij c_ij)``.
    Update, with ``[a, b, c]_i = ψ(h_i, |V v_i|)``: ``h_i ← h_i + a_i + b_i ∘ <U v_i, V v_i>``,
    ``v_i ← v_i + c_i ∘ U v_i``.

    Parameters
    ----------
    basis : int
        Number of radial functions ``sin(n π d / d_c) / d``.
    cutoff : float
        d_c, Å. Neighbors beyond it have no effect; should be at least the length of the edges.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å. Optional: ``v`` ``(N, 3 C)``, ``C x 1o``, 0
    if it is not wired; ``edge_attr`` ``(E, D)`` scalars, which W reads besides the radial functions.
    Writes: ``h`` ``(N, C)``, ``C x 0e``; ``v`` ``(N, 3 C)``, ``C x 1o``.

    W is a linear map multiplied by the cosine cutoff. Deviations from the paper: ``edge_vec`` is pos[j] − pos[i], which
    the sign of c absorbs; 1e-8 is added to the squares of the norms.

    References
    ----------
    Schütt, Unke & Gastegger 2021, arXiv:2102.03150, eqs. 7–10 and figure 2.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec")
    optional: ClassVar[tuple[str, ...]] = ("v", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("h", "v")
    conformity: ClassVar[Conformity] = Conformity(
        inputs={"h": "16x0e", "v": "16x1o"},
        tolerance=3e-4,  # each layer squares sums of vectors: three of them on all atoms multiply rounding by 10
    )

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        basis: Annotated[int, Ge(1)] = 20,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        dim = self.scalar_width("h")
        if "v" in fields and str(fields["v"].o3.simplify()) != f"{dim}x1o":
            raise WiringError(
                f"painn reads h of {dim} scalars and v of {fields['v'].irreps}. It needs one vector per scalar, "
                f"{dim}x1o. Add a layer 'irreps_linear' before."
            )
        self.dim = dim
        self.basis = basis
        self.cutoff = float(cutoff)
        self.phi = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 3 * dim))
        self.filter = nn.Linear(basis + self.scalar_width("edge_attr"), 3 * dim)
        self.mix = nn.Linear(dim, 2 * dim, bias=False)  # U and V
        self.psi = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, 3 * dim))
        self.declare(h=f"{dim}x0e", v=f"{dim}x1o")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)`` and ``v (N, 3 C)``: messages of the neighbors, then an update of each node."""
        # Messages: eqs. 7 and 8. Without input vectors, v starts at 0.
        h = f["h"]
        v = f["v"].unflatten(1, (self.dim, 3)).mT if "v" in self.fields else None  # (N, 3, C)
        scalar_messages, vector_messages = self._messages(h, v, f)
        h = h + scalar_messages
        v = vector_messages if v is None else v + vector_messages

        # Update: eqs. 9 and 10.
        left, right = self.mix(v).chunk(2, 2)  # U v and V v, (N, 3, C) each
        norm = (right.square().sum(1) + SMALLEST).sqrt()  # (N, C)
        a, b, c = self.psi(torch.cat([h, norm], 1)).chunk(3, 1)
        h = h + a + b * (left * right).sum(1)
        v = v + c.unsqueeze(1) * left
        return {"h": h, "v": v.mT.flatten(1)}

    def _messages(self, h: Tensor, v: Tensor | None, f: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Compute the sums of messages over neighbors, scalars ``(N, C)`` and vectors ``(N, 3, C)`` (eqs. 7 and 8)."""
        edges = f["edges"]
        distance, direction = polar(f["edge_vec"])
        factors = edges.source(self.phi(h)) * self._filters(distance, f.get("edge_attr"))  # (E, 3 C)
        a, b, c = factors.chunk(3, 1)
        vectors = direction.unsqueeze(2) * c.unsqueeze(1)  # (E, 3, C)
        if v is not None:
            vectors = vectors + edges.source(v) * b.unsqueeze(1)
        return edges.sum(a), edges.sum(vectors)

    def _filters(self, distance: Tensor, edge_attr: Tensor | None) -> Tensor:
        """Compute W, ``(E, 1)`` distances to ``(E, 3 C)``."""
        n = torch.arange(1, self.basis + 1, dtype=distance.dtype, device=distance.device)
        waves = torch.sinc(n * (distance / self.cutoff))  # finite at distance 0
        x = n * (math.pi / self.cutoff) * waves
        if edge_attr is not None:
            x = torch.cat([x, edge_attr], 1)
        return cosine_cutoff(distance, self.cutoff) * self.filter(x)

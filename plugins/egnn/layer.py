"""E(n)-equivariant graph neural network layer (Satorras et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from protgraph.data.graph import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn import GraphLayer, activation
from protgraph.ops import Edges, map_edge_blocks

__all__ = ["EGNN"]
ENTRY_POINTS = {"protgraph.layers": {"egnn": "EGNN"}}


class EGNN(GraphLayer):
    """E(n)-equivariant layer that updates features and positions.

    ``h'_i = h_i + φ_h(h_i, Σ_j m_ij)``, ``x'_i = x_i + C Σ_j (x_i - x_j) φ_x(m_ij)``, with
    ``m_ij = φ_e(h_i, h_j, |x_i - x_j|², e_ij)``; φ_e, φ_x and φ_h are perceptrons of two linear maps with SiLU.

    Parameters
    ----------
    dim : int, optional
        Width of the output; None: width of h.
    hidden : int, optional
        Width of the messages; None: dim.
    residual : bool
        Add h_i; requires h of width dim.
    attention : bool
        Multiply messages by ``σ(w · m_ij + b)``, eq. 8.
    normalize : bool
        Divide ``x_i - x_j`` by its length, without a gradient through the length.
    tanh : bool
        Limit φ_x to ±1.
    reduce : {"mean", "sum"}
        C: 1 / number of neighbors, or 1.
    scale : float
        Unit of distance in φ_e, Å. Residues are about 10 Å apart; squares in Å would dominate h.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``pos`` ``(N, 3)`` point, Å; ``edges``. Optional: ``edge_attr`` ``(E, D)`` scalars.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``; ``pos`` ``(N, 3)``, point; ``motion`` ``(N, 3)``, ``1x1o``, Å: the new pos
    minus the old one, without the rounding error of a difference.

    Both updates use the input h and pos. Later layers must be wired to the written pos; ``edge_vec`` of a featurizer
    belongs to the input pos.

    Equal to E_GCL of the authors' code, with its parameter names. The first matrix of φ_e is split, and its parts for
    h_i and h_j act on nodes. Deviations from the paper, as in that code: C is a mean over neighbors, not over all other
    nodes; normalize and tanh; no velocities. Deviation from the code: with normalize, coincident nodes have gradient 0
    (there it is multiplied by 1e8).

    References
    ----------
    Satorras, Hoogeboom & Welling 2021, arXiv:2102.09844, eqs. 3–6 and 8.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "pos", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h", "pos", "motion")

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int | None = None,
        hidden: int | None = None,
        residual: bool = True,
        attention: bool = False,
        normalize: bool = False,
        tanh: bool = False,
        reduce: Literal["mean", "sum"] = "mean",
        scale: float = 1.0,
    ) -> None:
        super().__init__(fields)
        width, edge_width = self.scalar_width("h"), self.scalar_width("edge_attr")
        dim = dim or width
        hidden = hidden or dim
        if residual and width != dim:
            raise WiringError(f"egnn with residual=True needs dim={width}, the width of h, not {dim}.")
        self.residual, self.normalize, self.scale = residual, normalize, scale
        self.reduce = reduce
        self.widths = [width, width, 1 + edge_width]
        act = activation("silu")
        self.edge_mlp = nn.Sequential(nn.Linear(sum(self.widths), hidden), act, nn.Linear(hidden, hidden), act)
        self.node_mlp = nn.Sequential(nn.Linear(width + hidden, hidden), act, nn.Linear(hidden, dim))
        last = nn.Linear(hidden, 1, bias=False)
        nn.init.xavier_uniform_(last.weight, gain=0.001)  # as in the authors' code: hardly any motion at first
        self.coord_mlp = nn.Sequential(nn.Linear(hidden, hidden), act, last, nn.Tanh() if tanh else nn.Identity())
        self.att_mlp = nn.Sequential(nn.Linear(hidden, 1), nn.Sigmoid()) if attention else None
        self.declare(h=f"{dim}x0e", pos=fields["pos"], motion=FieldSpec("motion", "node", "1x1o", unit="Å"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` and, if it is written, ``pos (N, 3)`` by eqs. 3 to 6."""
        h, pos, edges = f["h"], f["pos"], f["edges"]
        of_target, of_source, _ = self._first_parts()
        bias = cast(nn.Linear, self.edge_mlp[0]).bias
        motion, total = map_edge_blocks(
            self._reduced_messages,
            edges,
            pairs=[(linear(h, of_target, bias), linear(h, of_source)), (pos, -pos)],
            edge_values=[f.get("edge_attr")],
        )
        update = self.node_mlp(torch.cat([h, total], 1))  # eqs. 5, 6
        return {"h": h + update if self.residual else update, "pos": pos + motion, "motion": motion}

    def _first_parts(self) -> tuple[Tensor, ...]:
        """Return the first matrix of φ_e as parts for h_i, h_j, and the distance with e_ij."""
        return cast(nn.Linear, self.edge_mlp[0]).weight.split(self.widths, 1)

    def _reduced_messages(self, edges: Edges, z: Tensor, d: Tensor, e: Tensor | None) -> tuple[Tensor, Tensor]:
        """Compute motions ``(N, 3)`` and sums of messages ``(N, hidden)`` from W_i h_i + W_j h_j + b and x_i - x_j."""
        square = d.square().sum(1, keepdim=True)  # (E, 1)
        m = self._message(z, square / self.scale**2, e)  # (E, hidden)
        if self.normalize:
            length = square.detach().sqrt()
            d = d * torch.where(length > 0, 1 / (length + 1e-8), 0)
        step = d * self.coord_mlp(m)  # (E, 3)
        return edges.mean(step) if self.reduce == "mean" else edges.sum(step), edges.sum(m)  # eq. 4

    def _message(self, z: Tensor, square: Tensor, e: Tensor | None) -> Tensor:
        """Compute eq. 3 from ``W_i h_i + W_j h_j + b``."""
        of_edge = self._first_parts()[2]
        m = self.edge_mlp[1:](torch.addmm(z, square if e is None else torch.cat([square, e], 1), of_edge.t()))
        return m if self.att_mlp is None else m * self.att_mlp(m)

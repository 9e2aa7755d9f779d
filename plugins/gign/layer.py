"""One edge type of the heterogeneous interaction layer of GIGN (Yang et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from torch import Tensor, nn
from torch.nn.functional import leaky_relu, silu

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.nn import RowBatchNorm

__all__ = ["GIGN"]
ENTRY_POINTS = {"protgraph.layers": {"gign": "GIGN"}}

_LEAKY = Conformity(expected_failures={"no_leak": "batch normalization in training, as in the authors' program"})


class GIGN(GraphLayer):
    """Sum of neighbors, filtered by a learned function of the distance, for the edges of one type.

    ``h'_i = norm(σ(dropout(W (h_i + Σ_j h_j ∘ φ_ij) + b)))`` with ``φ_ij = silu(A e_ij + c)``, where e_ij are radial
    basis functions of the distance, and σ is a leaky ReLU.

    The heterogeneous interaction layer of GIGN is the sum of two of these with their own weights: one along covalent
    bonds, one along the edges between a protein and its ligand.

    Parameters
    ----------
    dim : int
        Width of the output.
    dropout : float
        Dropout probability before σ.
    norm : {"layer", "batch"}
        Normalization of the channels of each node, or of each channel over the nodes of a batch, as in the paper.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``; ``edge_attr`` ``(E, D)`` scalars.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    In training, batch normalization couples the proteins of a batch.

    References
    ----------
    Yang et al. 2023, J. Phys. Chem. Lett. 14, 2020, doi:10.1021/acs.jpclett.2c03906; widths, activations and order of
    the parts as in the authors' program (guaguabujianle/GIGN, ``HIL.py``).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        dropout: float = 0.1,
        norm: Literal["layer", "batch"] = "layer",
    ) -> None:
        super().__init__(fields)
        if norm == "batch":
            self.conformity = _LEAKY
        width = self.scalar_width("h")
        self.filter = nn.Linear(self.scalar_width("edge_attr"), width)
        self.linear = nn.Linear(width, dim)
        self.dropout = nn.Dropout(dropout)
        self.norm = RowBatchNorm(dim) if norm == "batch" else nn.LayerNorm(dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: filtered neighbors are added to each node, then a dense layer."""
        h, edges = f["h"], f["edges"]
        weight = silu(self.filter(f["edge_attr"]))  # (E, C)
        summed = h + edges.sum(weight * edges.source(h))  # (N, C)
        update = leaky_relu(self.dropout(self.linear(summed)))  # (N, dim)
        return {"h": self.norm(update)}

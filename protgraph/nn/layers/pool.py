"""Pooling along edges: from the nodes of one level to those of another, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.module import GraphLayer

__all__ = ["PoolSources"]
ENTRY_POINTS = {"protgraph.layers": {"pool": "PoolSources"}}


class PoolSources(GraphLayer):
    """Pool the sources of the edges of each node: ``h_i = mean_j h_j``, their sum, or their maximum.

    Between levels, the edges lead from one node set to another: ``component("pool", edges="to_residues")`` makes
    ``residues_h`` of the ``h`` of the atoms of each residue, and ``component("pool", edges="from_residues")`` gives
    each atom the ``residues_h`` of its residue.

    Parameters
    ----------
    reduce : {"mean", "sum", "max"}
        Of vectors and higher irreps, mean and sum.

    Notes
    -----
    Reads: ``source_h`` ``(M, C)`` of the sources, and ``edges``. Writes: ``h`` ``(N, C)`` of the targets, of the same
    irreps; 0 for nodes without incoming edges.
    """

    reads: ClassVar[tuple[str, ...]] = ("source_h", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, reduce: Literal["mean", "sum", "max"] = "mean") -> None:
        super().__init__(fields)
        spec = fields["source_h"]
        if reduce == "max" and not spec.is_scalar:
            raise WiringError(
                f"pool: reduce='max' of {spec.name!r}, which is {spec.irreps}: the maximum of vector components breaks "
                "rotation equivariance. Allowed: 'mean', 'sum'."
            )
        self.reduce = reduce
        self.declare(h=FieldSpec("h", "node", spec.irreps, chiral=spec.chiral))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)`` of the targets of the edges."""
        edges, h = f["edges"], f["source_h"].flatten(1)
        if self.reduce == "max":
            return {"h": edges.max(edges.source(h))}
        total = edges.gather_sum(h)
        if self.reduce == "sum":
            return {"h": total}
        return {"h": total / edges.count.clamp(min=1).to(h.dtype).unsqueeze(1)}

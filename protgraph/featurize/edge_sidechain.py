"""Relative position and orientation of the side chains of two residues, computed on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import TensorFeaturizer
from protgraph.featurize.option_checks import check_integer, check_number

__all__ = ["EdgeSidechain"]
ENTRY_POINTS = {"protgraph.featurizers": {"edge_sidechain": "EdgeSidechain"}}

_SMALLEST = 1e-6  # Å, shorter vectors have direction 0

register_field(
    FieldSpec(
        "edge_sidechain",
        "edge",
        "21x0e",
        chiral=True,
        doc="distance of side-chain centers in Gaussians, angles of both side chains, direction in the frame of i",
    )
)


class EdgeSidechain(TensorFeaturizer):
    """Distance between the centers of two side chains, and their mutual orientation.

    Parameters
    ----------
    bins : int
        Number of Gaussian functions of the distance.
    high : float
        Center of the last one, Å; the first is at 0, and their width is high / bins.

    Reads
    -----
    sidechain_point : (N, 3), Å
    frame : (N, 3, 3)
    pos : (N, 3), point, Å
    edges : the edges j → i

    Writes
    ------
    edge_sidechain : (E, bins + 9), 0e under rotations (chiral), dimensionless
        Gaussian functions of the distance between centers; the unit vector from center i to center j in the frame of i
        (3 columns), and from CA j to CA i in the frame of j (3); cosines between both side chains, between side chain i
        and the direction to j, and between side chain j and the direction to i (3).
    """

    reads: ClassVar[tuple[str, ...]] = ("sidechain_point", "frame", "pos", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_sidechain",)

    def __init__(self, *, bins: int = 12, high: float = 20.0) -> None:
        super().__init__()
        self.bins = check_integer("edge_sidechain", "bins", bins, minimum=2)
        self.high = check_number("edge_sidechain", "high", high, unit="Å")
        self.declare(edge_sidechain=f"{bins + 9}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        pos, side, frame, edges = f["pos"], f["sidechain_point"].to(f["pos"].dtype), f["frame"], f["edges"]
        back = edges.target(pos) - edges.source(pos)  # (E, 3) from CA j to CA i
        between = edges.source(side) - edges.target(side) - back  # from center i to center j
        distance = between.square().sum(1).clamp(min=_SMALLEST**2).sqrt()
        direction, side = between / distance[:, None], _unit(side)
        mine, other = edges.target(side), edges.source(side)
        centers = torch.linspace(0.0, self.high, self.bins, dtype=pos.dtype, device=pos.device)
        basis = torch.exp(-(((distance[:, None] - centers) * (self.bins / self.high)) ** 2))
        local = torch.einsum("ekx,ex->ek", edges.target(frame), direction)
        reverse = torch.einsum("ekx,ex->ek", edges.source(frame), _unit(back))
        angles = torch.stack([(mine * other).sum(1), (mine * direction).sum(1), -(other * direction).sum(1)], 1)
        return {"edge_sidechain": torch.cat([basis, local, reverse, angles], 1)}


def _unit(v: Tensor) -> Tensor:
    """Return ``v / |v|`` along the last axis; 0 for vectors shorter than 1e-6 Å."""
    return v / v.square().sum(-1, keepdim=True).clamp(min=_SMALLEST**2).sqrt()

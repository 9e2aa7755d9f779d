"""Spherical harmonics of edge directions, per edge and averaged over the neighbors of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from e3nn import o3
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import TensorFeaturizer

__all__ = ["EdgeHarmonics", "NeighborHarmonics"]
ENTRY_POINTS = {"protgraph.featurizers": {"edge_harmonics": "EdgeHarmonics", "neighbor_harmonics": "NeighborHarmonics"}}

register_field(FieldSpec("edge_harmonics", "edge", "1x0e+1x1o+1x2e", doc="spherical harmonics of the edge's direction"))
register_field(
    FieldSpec(
        "neighbor_harmonics", "node", "1x1o+1x2e+1x3o", doc="mean spherical harmonics of the directions to neighbors"
    )
)


class EdgeHarmonics(TensorFeaturizer):
    """``Y_l((x_j - x_i) / |x_j - x_i|)`` for l = 0 … degree, with component normalization.

    Parameters
    ----------
    degree : int
        Largest l, 1 to 8.

    Reads
    -----
    pos : (N, 3), point, Å
    edges : the edges j → i

    Writes
    ------
    edge_harmonics : (E, (degree + 1)²), 1x0e+1x1o+1x2e+…, dimensionless
        For coincident nodes, 0 except for l = 0.

    References
    ----------
    e3nn's real spherical harmonics with ``normalization="component"``: Geiger & Smidt 2022, arXiv:2207.09453.
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_harmonics",)

    def __init__(self, *, degree: Annotated[int, Ge(1), Le(8)] = 2) -> None:
        super().__init__()
        self.degrees = list(range(degree + 1))
        self.declare(edge_harmonics=str(o3.Irreps.spherical_harmonics(degree)))

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"edge_harmonics": _harmonics(f, self.degrees)}


class NeighborHarmonics(TensorFeaturizer):
    """``mean_j Y_l((x_j - x_i) / |x_j - x_i|)`` over the neighbors j of i, for l = 1 … degree.

    l = 1 is the mean direction of the neighbors; l = 2 distinguishes linear from planar arrangements.

    Parameters
    ----------
    degree : int
        Largest l, 1 to 8.

    Reads
    -----
    pos : (N, 3), point, Å
    edges : the edges j → i

    Writes
    ------
    neighbor_harmonics : (N, (degree + 1)² - 1), 1x1o+1x2e+…, dimensionless
        0 for nodes without neighbors.

    References
    ----------
    Steinhardt, Nelson & Ronchetti 1983, doi:10.1103/PhysRevB.28.784, eq. 1.3 (bond-orientational order).
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges")
    writes: ClassVar[tuple[str, ...]] = ("neighbor_harmonics",)

    def __init__(self, *, degree: Annotated[int, Ge(1), Le(8)] = 3) -> None:
        super().__init__()
        self.degrees = list(range(1, degree + 1))
        self.declare(neighbor_harmonics=str(o3.Irreps.spherical_harmonics(degree)[1:]))

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"neighbor_harmonics": f["edges"].mean(_harmonics(f, self.degrees))}


def _harmonics(f: Mapping[str, Any], degrees: list[int]) -> Tensor:
    vector = f["edges"].source(f["pos"]) - f["edges"].target(f["pos"])
    return o3.spherical_harmonics(degrees, vector, normalize=True, normalization="component")

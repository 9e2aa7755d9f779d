"""Featurizers of surface points: the node set ``sas``, and the geometry of edges between its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Ge, Gt
from protgraph_plugins.surface.points import (
    CHEMISTRY,
    CHEMISTRY_RANGES,
    SHAPE,
    point_chemistry,
    point_shape,
    surface_points,
)
from torch import Tensor

from protgraph import FieldSpec, NodeFeaturizer, NodeList, Residues, TensorFeaturizer, register_field
from protgraph.data import Conformity
from protgraph.ops import unit_or_zero

__all__ = ["EdgePoint", "SurfacePointNodes"]
ENTRY_POINTS = {"protgraph.featurizers": {"edge_point": "EdgePoint", "sas": "SurfacePointNodes"}}

_CHEMISTRY_WIDTH = len(CHEMISTRY) * len(CHEMISTRY_RANGES)

for _spec in (
    FieldSpec("sas", "node", "object", doc="node set: points on the solvent-accessible surface"),
    FieldSpec("point_weight", "node", "1x0e", doc="0 at the rim of the accessible part of an atom's sphere, 1 inside"),
    FieldSpec("point_normal", "node", "1x1o", doc="unit vector from the atom to the point"),
    FieldSpec("point_chemistry", "node", f"{_CHEMISTRY_WIDTH}x0e", doc="weighted sums of atom properties around"),
    FieldSpec("point_shape", "node", f"{len(SHAPE)}x0e", doc="burial, concavity and cavity volume around"),
    FieldSpec("edge_point", "edge", "11x0e", doc="distance of two points in Gaussians, angles of their normals"),
):
    register_field(_spec)


class SurfacePointNodes(NodeFeaturizer):
    """Points on the solvent-accessible surface as a node set: about four per residue of a folded chain.

    Parameters
    ----------
    probe : float
        Radius of the solvent molecule, Å.

    Writes
    ------
    sas : the node set; its positions are ``sas_pos``
        Each point belongs to the residue of the atom whose sphere it is on: ``to_sas`` joins residues to their points,
        ``from_sas`` points to their residue.
    point_weight : (M, 1) float32, 0 to 1
        Layers weight points with it, so that points may appear and disappear without a jump.
    point_normal : (M, 3) float32, 1x1o
    point_chemistry : (M, 22) float32
        :func:`protgraph_plugins.surface.points.point_chemistry`.
    point_shape : (M, 14) float32
        :func:`protgraph_plugins.surface.points.point_shape`.

    Notes
    -----
    All chains count; ligands, waters and nucleic acids are ignored. If side chains are hidden, the surface is that of
    the backbone.
    """

    writes: ClassVar[tuple[str, ...]] = ("sas", "point_weight", "point_normal", "point_chemistry", "point_shape")
    conformity: ClassVar[Conformity] = Conformity(tolerance=5e-3, proteins="packed")  # of alpha spheres, as cavity

    def __init__(self, *, probe: Annotated[float, Gt(0)] = 1.4) -> None:
        super().__init__()
        self.probe = probe

    def __call__(self, residues: Residues) -> NodeList:
        points = surface_points(residues, probe=self.probe)
        fields = {
            "point_weight": points.weight[:, None],
            "point_normal": points.normal,
            "point_chemistry": point_chemistry(residues, points.pos),
            "point_shape": point_shape(residues, points),
        }
        fields = {name: value.astype(np.float32) for name, value in fields.items()}
        return NodeList(points.pos.astype(np.float32), residues.atom_residue[points.atom], fields)


class EdgePoint(TensorFeaturizer):
    """Distance of two surface points in Gaussians, and the angles of their normals.

    Parameters
    ----------
    bins : int
        Number of Gaussian functions of the distance.
    high : float
        Center of the last one, Å; the first is at 0, and their width is high / bins.

    Reads
    -----
    pos : (M, 3), point, Å
    point_normal : (M, 3)
    edges : the edges j → i between points

    Writes
    ------
    edge_point : (E, bins + 3), dimensionless
        Gaussian functions of the distance; cosines between both normals, between normal i and the direction to j, and
        between normal j and the direction to i: both negative on a convex, positive on a concave part.

    References
    ----------
    Drost et al. 2010, doi:10.1109/CVPR.2010.5540108 (point pair features: distance and angles of normals).
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "point_normal", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_point",)

    def __init__(self, *, bins: Annotated[int, Ge(2)] = 8, high: Annotated[float, Gt(0)] = 7.0) -> None:
        super().__init__()
        self.bins = bins
        self.high = high
        self.declare(edge_point=f"{bins + 3}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        pos, edges = f["pos"], f["edges"]
        normal = f["point_normal"].to(pos.dtype)
        vector = edges.source(pos) - edges.target(pos)  # (E, 3) from i to j
        squared = vector.square().sum(1, keepdim=True)
        is_zero = squared == 0  # their length is computed from 1, for a finite derivative
        distance = squared.masked_fill(is_zero, 1.0).sqrt().masked_fill(is_zero, 0.0)
        direction = unit_or_zero(vector)
        center = torch.linspace(0.0, self.high, self.bins, dtype=pos.dtype, device=pos.device)
        basis = torch.exp(-(((distance - center) * (self.bins / self.high)) ** 2))  # (E, bins)
        normal_i, normal_j = edges.target(normal), edges.source(normal)
        cosines = [
            (normal_i * normal_j).sum(1),
            (normal_i * direction).sum(1),
            -(normal_j * direction).sum(1),
        ]
        return {"edge_point": torch.cat([basis, torch.stack(cosines, 1)], 1)}

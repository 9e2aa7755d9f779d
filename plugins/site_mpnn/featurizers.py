"""Featurizers of binding sites: charges, composition and shape around residues, geometry of pairs of side chains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Ge, Gt
from protgraph_plugins.site_mpnn.descriptors import (
    charge_sums,
    local_centers,
    probe_occupancy,
    probe_points,
    residue_classes,
    screened_potential,
    shell_composition,
    sidechain_points,
)
from torch import Tensor

from protgraph.data.graph import Conformity, FieldSpec, register_field
from protgraph.featurize import StructureFeaturizer, TensorFeaturizer
from protgraph.structure.descriptors import (
    MAX_SASA,
    atom_sasa,
    cb_direction,
    contact_number,
    half_sphere_exposure,
    residue_sasa,
)
from protgraph.structure.residues import BACKBONE, Residues

__all__ = [
    "EdgeSidechain",
    "Electrostatics",
    "ProteinComposition",
    "ShellComposition",
    "SidechainPoint",
    "SurfaceShape",
]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "edge_sidechain": "EdgeSidechain",
        "electrostatics": "Electrostatics",
        "protein_composition": "ProteinComposition",
        "shell_composition": "ShellComposition",
        "sidechain_point": "SidechainPoint",
        "surface_shape": "SurfaceShape",
    }
}


_POINTS = 100  # test points per atom of accessible areas; error 2.5 Å² per residue
_SCREENING = (4.0, 10.0, 30.0)  # Å
_OCCUPANCY_RADII = (4.5, 6.0, 10.0)  # Å; not 4: the only side-chain atom of Ala is 4 Å from a probe
_CONTACT_RADII = (8.0, 12.0, 16.0, 24.0)  # Å
_HALF_SPHERE_RADII = (8.0, 13.0, 18.0)  # Å
_CENTER_RADII = (10.0, 16.0, 24.0)  # Å

for _spec in (
    FieldSpec(
        "electrostatics",
        "node",
        "30x0e",
        unit="elementary charges per nm",
        chiral=True,
        doc="screened Coulomb sums at six points around the side chain, then sums of positive and negative charges",
    ),
    FieldSpec("shell_composition", "node", "84x0e", chiral=True, doc="residue classes in shells around the side chain"),
    FieldSpec(
        "surface_shape", "node", "32x0e", chiral=True, doc="accessible areas, burial and shape at several scales"
    ),
    FieldSpec("protein_composition", "node", "28x0e", doc="residue classes, size and shape of the whole protein"),
    FieldSpec("sidechain_point", "node", "1x1o", unit="Å", chiral=True, doc="from CA to the center of the side chain"),
):
    register_field(_spec)


class Electrostatics(StructureFeaturizer):
    """Screened Coulomb potential of charged side chains at six points around each residue.

    Writes
    ------
    electrostatics : (N, 30) float32, 0e under rotations (chiral), elementary charges per nm
        For each of the points :data:`~protgraph_plugins.site_mpnn.descriptors.PROBES` the sums with screening
        lengths 4, 10 and 30 Å (18 columns); then for each point the sums of positive and of negative charges with
        Gaussian weights of 10 Å (12 columns, elementary charges). The residue's own charge is not included.

    Notes
    -----
    Charges are those of residue types at pH 7, at the atoms of the file; if these are missing, at the center of the
    side chain. Without residue types all columns are 0.

    References
    ----------
    See :func:`protgraph_plugins.site_mpnn.descriptors.screened_potential`.
    """

    writes: ClassVar[tuple[str, ...]] = ("electrostatics",)
    conformity = Conformity(tolerance=1e-3)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        points = probe_points(residues)
        sums = screened_potential(residues, points, lengths=_SCREENING), charge_sums(residues, points)
        return {"electrostatics": np.concatenate([x.reshape(len(residues), -1) for x in sums], 1).astype(np.float32)}


class ShellComposition(StructureFeaturizer):
    """Numbers of residues of twelve classes in Gaussian shells around the side chain of each residue.

    Parameters
    ----------
    points : int
        Test points per atom of the relative accessibility, which weights the neighbors.

    Writes
    ------
    shell_composition : (N, 84) float32, 0e under rotations (chiral), dimensionless
        Seven groups of twelve columns; see
        :func:`protgraph_plugins.site_mpnn.descriptors.shell_composition`.

    Notes
    -----
    Chiral because glycine has a virtual CB. Without residue types all columns are 0.
    """

    writes: ClassVar[tuple[str, ...]] = ("shell_composition",)
    conformity = Conformity(tolerance=5e-3)  # of accessible areas

    def __init__(self, *, points: Annotated[int, Ge(1)] = _POINTS) -> None:
        super().__init__()
        self.points = points

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        exposure = residue_sasa(residues, points=self.points) / MAX_SASA[residues.aatype]
        counts = shell_composition(residues, exposure.clip(0.0, 1.0))
        return {"shell_composition": counts.reshape(len(residues), -1).astype(np.float32)}


class SurfaceShape(StructureFeaturizer):
    """Accessible areas, neighbor counts, convexity and free space outside the surface, at several scales.

    Parameters
    ----------
    points : int
        Test points per atom of the accessible areas.

    Writes
    ------
    surface_shape : (N, 32) float32, 0e under rotations (chiral)
        Accessible area of side chain, backbone, and N and O of the side chain (3 columns, Å²); CA within 8, 12, 16 and
        24 Å (4); half-sphere exposure HSEβ within 8, 13 and 18 Å, up and down (6); distance from the local mean of CA
        within 10, 16 and 24 Å, and its angle to the side chain (6); heavy atoms within 4.5, 6 and 10 Å of the four
        points outside the side chain (12); distance from the center of the protein over its radius of gyration (1).

    References
    ----------
    See :func:`protgraph_plugins.site_mpnn.descriptors.local_centers` and
    :func:`protgraph_plugins.site_mpnn.descriptors.probe_occupancy`.
    """

    writes: ClassVar[tuple[str, ...]] = ("surface_shape",)
    conformity = Conformity(tolerance=1e-2)  # rounding of coordinates moves single atoms across a sphere

    def __init__(self, *, points: Annotated[int, Ge(1)] = _POINTS) -> None:
        super().__init__()
        self.points = points

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        n, side = len(residues), cb_direction(residues)
        counts = [contact_number(residues, radius=r)[:, None] for r in _CONTACT_RADII]
        halves = [
            half_sphere_exposure(residues, side, radius=r) * side.any(1, keepdims=True) for r in _HALF_SPHERE_RADII
        ]
        outside = probe_occupancy(residues, probe_points(residues)[:, 2:], radii=_OCCUPANCY_RADII)
        centers = local_centers(residues, radii=_CENTER_RADII)
        ca = residues.pos.astype(np.float64)
        distance = np.linalg.norm(ca - ca.mean(0), axis=1)
        gyration = np.sqrt((distance**2).mean())
        columns = [self._areas(residues), *counts, *halves, centers.reshape(n, -1), outside.reshape(n, -1)]
        columns.append((distance / max(gyration, 1e-6))[:, None])
        return {"surface_shape": np.concatenate(columns, 1).astype(np.float32)}

    def _areas(self, residues: Residues) -> np.ndarray:
        """Return the accessible area of side chain, backbone and polar side-chain atoms, ``(N, 3)`` Å²."""
        area, n = atom_sasa(residues, points=self.points), len(residues)
        is_side = ~np.isin(residues.atom_name, (*BACKBONE, "OXT"))
        is_polar = is_side & np.isin(residues.atom_element, ("N", "O"))
        parts = (is_side, ~is_side, is_polar)
        return np.stack([np.bincount(residues.atom_residue[p], area[p], n) for p in parts], 1)


class ProteinComposition(StructureFeaturizer):
    """Composition, size and shape of the whole protein, equal for all its residues.

    Parameters
    ----------
    points : int
        Test points per atom of the relative accessibility.

    Writes
    ------
    protein_composition : (N, 28) float32, 28x0e
        Fractions of twelve residue classes among all residues, and weighted by relative accessibility (24 columns);
        logarithm of the number of residues; square roots of the eigenvalues of the covariance of the CA, ascending (Å).
    """

    writes: ClassVar[tuple[str, ...]] = ("protein_composition",)
    conformity = Conformity(tolerance=5e-3)  # of accessible areas

    def __init__(self, *, points: Annotated[int, Ge(1)] = _POINTS) -> None:
        super().__init__()
        self.points = points

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        kind, ca = residue_classes(residues.aatype), residues.pos.astype(np.float64)
        exposure = (residue_sasa(residues, points=self.points) / MAX_SASA[residues.aatype]).clip(0.0, 1.0)
        exposed = (kind * exposure[:, None]).sum(0) / max(exposure.sum(), 1.0)
        centered = ca - ca.mean(0)
        extent = np.linalg.eigvalsh(centered.T @ centered / len(ca)).clip(0.0) ** 0.5
        row = np.concatenate([kind.mean(0), exposed, [np.log(len(ca))], extent])
        return {"protein_composition": np.repeat(row[None], len(ca), 0).astype(np.float32)}


class SidechainPoint(StructureFeaturizer):
    """Vector from CA to the center of the side chain; without side-chain atoms, to CB or the virtual CB.

    Writes
    ------
    sidechain_point : (N, 3) float32, 1x1o under rotations (chiral), Å
        0 where neither side chain nor a complete backbone exists.

    See Also
    --------
    protgraph.featurize.backbone.SidechainCentroid : 0 for glycine, hence not chiral.
    """

    writes: ClassVar[tuple[str, ...]] = ("sidechain_point",)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        offset = sidechain_points(residues).center - residues.pos
        return {"sidechain_point": offset.astype(np.float32)}


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

    def __init__(self, *, bins: Annotated[int, Ge(2)] = 12, high: Annotated[float, Gt(0)] = 20.0) -> None:
        super().__init__()
        self.bins = bins
        self.high = high
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

"""Surroundings of residues that mark binding sites: charges, composition and shape outside the surface."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.featurize.option_checks import check_integer
from protgraph.structure.descriptors.electrostatics import charge_sums, screened_potential
from protgraph.structure.descriptors.sasa import MAX_SASA, atom_sasa, residue_sasa
from protgraph.structure.descriptors.sidechain_points import probe_points, sidechain_points
from protgraph.structure.descriptors.solvent_exposure import cb_direction, contact_number, half_sphere_exposure
from protgraph.structure.descriptors.surroundings import (
    local_centers,
    probe_occupancy,
    residue_classes,
    shell_composition,
)
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["Electrostatics", "ProteinComposition", "ShellComposition", "SidechainPoint", "SurfaceShape"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "electrostatics": "Electrostatics",
        "protein_composition": "ProteinComposition",
        "shell_composition": "ShellComposition",
        "sidechain_point": "SidechainPoint",
        "surface_shape": "SurfaceShape",
    },
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
        For each of the points :data:`~protgraph.structure.descriptors.sidechain_points.PROBES` the sums with screening
        lengths 4, 10 and 30 Å (18 columns); then for each point the sums of positive and of negative charges with
        Gaussian weights of 10 Å (12 columns, elementary charges). The residue's own charge is not included.

    Notes
    -----
    Charges are those of residue types at pH 7, at the atoms of the file; if these are missing, at the center of the
    side chain. Without residue types all columns are 0.

    References
    ----------
    See :func:`protgraph.structure.descriptors.electrostatics.screened_potential`.
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
        :func:`protgraph.structure.descriptors.surroundings.shell_composition`.

    Notes
    -----
    Chiral because glycine has a virtual CB. Without residue types all columns are 0.
    """

    writes: ClassVar[tuple[str, ...]] = ("shell_composition",)
    conformity = Conformity(tolerance=5e-3)  # of accessible areas

    def __init__(self, *, points: int = _POINTS) -> None:
        super().__init__()
        self.points = check_integer("shell_composition", "points", points, minimum=1)

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
    See :func:`protgraph.structure.descriptors.surroundings.local_centers` and
    :func:`protgraph.structure.descriptors.surroundings.probe_occupancy`.
    """

    writes: ClassVar[tuple[str, ...]] = ("surface_shape",)
    conformity = Conformity(tolerance=1e-2)  # rounding of coordinates moves single atoms across a sphere

    def __init__(self, *, points: int = _POINTS) -> None:
        super().__init__()
        self.points = check_integer("surface_shape", "points", points, minimum=1)

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

    def __init__(self, *, points: int = _POINTS) -> None:
        super().__init__()
        self.points = check_integer("protein_composition", "points", points, minimum=1)

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
    protgraph.featurize.sidechain.SidechainCentroid : 0 for glycine, hence not chiral.
    """

    writes: ClassVar[tuple[str, ...]] = ("sidechain_point",)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        offset = sidechain_points(residues).center - residues.pos
        return {"sidechain_point": offset.astype(np.float32)}

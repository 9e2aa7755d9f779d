"""Burial of residues by neighbor counts: contact number, half-sphere exposure, protrusion."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.descriptors.ca_trace import sidechain_direction
from protgraph.structure.descriptors.solvent_exposure import (
    cb_direction,
    contact_number,
    half_sphere_exposure,
    protrusion,
)
from protgraph.structure.residues.residues import Residues

__all__ = ["ContactNumber", "HalfSphereExposure", "Protrusion"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "contact_number": "ContactNumber",
        "half_sphere_exposure": "HalfSphereExposure",
        "protrusion": "Protrusion",
    },
}

for _spec in (
    FieldSpec("contact_number", "node", "1x0e", unit="CA atoms", doc="CA within 10 Å"),
    FieldSpec("half_sphere_ca", "node", "2x0e", unit="CA atoms", doc="half-sphere exposure HSE-alpha, up and down"),
    FieldSpec("half_sphere_ca_mask", "node", "1x0e", "bool", doc="True if both neighbors in the chain are present"),
    FieldSpec(
        "half_sphere_cb",
        "node",
        "2x0e",
        unit="CA atoms",
        chiral=True,
        doc="half-sphere exposure HSE-beta, up and down (chiral where CB is a virtual one)",
    ),
    FieldSpec("half_sphere_cb_mask", "node", "1x0e", "bool", doc="True if CB, or both N and C, are present"),
    FieldSpec("protrusion", "node", "2x0e", doc="index CX of the residue's heavy atoms, mean and maximum"),
):
    register_field(_spec)


class ContactNumber(StructureFeaturizer):
    """Number of other CA atoms within a radius of the CA of each residue.

    Parameters
    ----------
    radius : float
        Å, inclusive.

    Writes
    ------
    contact_number : (N, 1) float32, 1x0e, CA atoms
        All chains of the structure count.

    References
    ----------
    See :func:`protgraph.structure.descriptors.solvent_exposure.contact_number`.
    """

    writes: ClassVar[tuple[str, ...]] = ("contact_number",)
    zero_gradient: ClassVar[bool] = True

    def __init__(self, *, radius: Annotated[float, Gt(0)] = 10.0) -> None:
        super().__init__()
        self.radius = radius

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {"contact_number": contact_number(residues, radius=self.radius)[:, None].astype(np.float32)}


class HalfSphereExposure(StructureFeaturizer):
    """Half-sphere exposure: numbers of CA atoms on the side of the side chain and on the opposite side.

    Parameters
    ----------
    radius : float
        Å, inclusive.

    Writes
    ------
    half_sphere_ca : (N, 2) float32, 2x0e, CA atoms
        HSEα, up and down: the side chain's direction from the CA before and after. 0 where one is missing.
    half_sphere_ca_mask : (N, 1) bool
    half_sphere_cb : (N, 2) float32, 2x0e under rotations (chiral), CA atoms
        HSEβ, up and down: from CA to CB, or to the virtual CB (glycine, hidden side chains). 0 where neither
        exists.
    half_sphere_cb_mask : (N, 1) bool

    References
    ----------
    See :func:`protgraph.structure.descriptors.solvent_exposure.half_sphere_exposure`.
    """

    writes: ClassVar[tuple[str, ...]] = (
        *("half_sphere_ca", "half_sphere_ca_mask"),
        *("half_sphere_cb", "half_sphere_cb_mask"),
    )
    zero_gradient: ClassVar[bool] = True

    def __init__(self, *, radius: Annotated[float, Gt(0)] = 13.0) -> None:
        super().__init__()
        self.radius = radius

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        written = {}
        sides = {"half_sphere_ca": sidechain_direction(residues), "half_sphere_cb": cb_direction(residues)}
        for name, side in sides.items():
            mask = side.any(1, keepdims=True)
            written[name] = (half_sphere_exposure(residues, side, radius=self.radius) * mask).astype(np.float32)
            written[f"{name}_mask"] = mask
        return written


class Protrusion(StructureFeaturizer):
    """Protrusion index CX: free over occupied volume around the heavy atoms of a residue.

    Parameters
    ----------
    radius : float
        Of the sphere about each atom, Å.

    Writes
    ------
    protrusion : (N, 2) float32, 2x0e, dimensionless
        Mean and maximum CX over the heavy atoms of the residue; about 0 to 1 inside, up to 15 at protruding ends. If
        side chains are hidden, only backbone atoms count and fill the spheres.

    References
    ----------
    See :func:`protgraph.structure.descriptors.solvent_exposure.protrusion`.
    """

    writes: ClassVar[tuple[str, ...]] = ("protrusion",)
    conformity = Conformity(tolerance=1e-2)  # rounding of coordinates moves single atoms across the sphere

    def __init__(self, *, radius: Annotated[float, Gt(0)] = 10.0) -> None:
        super().__init__()
        self.radius = radius

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        index, owner = protrusion(residues, radius=self.radius), residues.atom_residue
        mean = np.bincount(owner, index, len(residues)) / np.maximum(np.bincount(owner, minlength=len(residues)), 1)
        greatest = np.full(len(residues), -np.inf)
        np.maximum.at(greatest, owner, index)
        greatest[np.isinf(greatest)] = 0.0  # a residue without atoms
        return {"protrusion": np.stack([mean, greatest], 1).astype(np.float32)}

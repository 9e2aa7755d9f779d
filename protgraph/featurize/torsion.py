"""Internal coordinates: side-chain dihedrals, bond geometry, virtual angles of the CA trace.

Angles are written as cosine and sine; undefined values are 0 and marked in a mask field.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.descriptors.ca_trace import trace_angles
from protgraph.structure.descriptors.internal_coordinates import (
    SYMMETRIC_CHI,
    bond_angles,
    bond_lengths,
    sidechain_dihedrals,
)
from protgraph.structure.residues.residues import Residues

__all__ = ["BondGeometry", "SidechainDihedral", "TraceAngle"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "bond_geometry": "BondGeometry",
        "sidechain_dihedral": "SidechainDihedral",
        "trace_angle": "TraceAngle",
    },
}

for _spec in (
    FieldSpec("chi", "node", "4x0e+4x0o", doc="cosines then sines of chi 1 to 4 (of 2 chi for equivalent atoms)"),
    FieldSpec("chi_mask", "node", "4x0e", "bool", doc="which of chi 1 to 4 are defined"),
    FieldSpec("trace_angle", "node", "3x0e+1x0o", doc="cos kappa, sin kappa, cos alpha, sin alpha of the CA trace"),
    FieldSpec("trace_angle_mask", "node", "2x0e", "bool", doc="which of kappa, alpha are defined"),
    FieldSpec("bond_length", "node", "4x0e", unit="Å", doc="N–CA, CA–C, C–O, C–N of the next residue"),
    FieldSpec("bond_length_mask", "node", "4x0e", "bool", doc="which bond lengths are defined"),
    FieldSpec("bond_angle", "node", "4x0e", unit="radians", doc="N–CA–C, CA–C–O, CA–C–N, C–N–CA; N, CA of the next"),
    FieldSpec("bond_angle_mask", "node", "4x0e", "bool", doc="which bond angles are defined"),
):
    register_field(_spec)


class SidechainDihedral(StructureFeaturizer):
    """Side-chain dihedral angles as ``[cos χ1 … cos χ4, sin χ1 … sin χ4]``.

    Writes
    ------
    chi : (N, 8) float32, 4x0e+4x0o, dimensionless
        Both are 0 where the residue lacks the angle or an atom. χ2 of Asp, Phe and Tyr and χ3 of Glu are defined up to
        π, because two atoms are equivalent; they are written as ``cos 2χ`` and ``sin 2χ``, independent of atom naming.
    chi_mask : (N, 4) bool

    References
    ----------
    See :func:`protgraph.structure.descriptors.internal_coordinates.sidechain_dihedrals`; symmetric angles: Jumper et
    al. 2021, doi:10.1038/s41586-021-03819-2, supplement, table 2.
    """

    writes: ClassVar[tuple[str, ...]] = ("chi", "chi_mask")
    conformity = Conformity(tolerance=1e-4)  # coordinates of 300 Å are rounded to 1.5e-5 Å

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        angles = sidechain_dihedrals(residues)
        on_circle, mask = _on_circle(np.where(SYMMETRIC_CHI[residues.aatype], 2 * angles, angles))
        return {"chi": on_circle.astype(residues.pos.dtype), "chi_mask": mask}


class TraceAngle(StructureFeaturizer):
    """Virtual angles of the CA trace: ``[cos κ, sin κ, cos α, sin α]``.

    Writes
    ------
    trace_angle : (N, 4) float32, 3x0e+1x0o, dimensionless
        κ is the bend angle between residues −2, 0, 2, α the dihedral angle of residues −1, 0, 1, 2; 0 where the chain
        ends.
    trace_angle_mask : (N, 2) bool

    References
    ----------
    See :func:`protgraph.structure.descriptors.ca_trace.trace_angles`.
    """

    writes: ClassVar[tuple[str, ...]] = ("trace_angle", "trace_angle_mask")
    conformity = Conformity(tolerance=1e-4)  # coordinates of 300 Å are rounded to 1.5e-5 Å

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        on_circle, mask = _on_circle(trace_angles(residues))
        in_order = on_circle[:, [0, 2, 1, 3]]
        return {"trace_angle": in_order.astype(residues.pos.dtype), "trace_angle_mask": mask}


class BondGeometry(StructureFeaturizer):
    """Backbone bond lengths and bond angles.

    Writes
    ------
    bond_length : (N, 4) float32, 4x0e, Å
        N–CA, CA–C, C–O, C–N′; 0 where undefined.
    bond_length_mask : (N, 4) bool
    bond_angle : (N, 4) float32, 4x0e, radians
        N–CA–C, CA–C–O, CA–C–N′, C–N′–CA′; 0 where undefined. Primed atoms belong to the next residue.
    bond_angle_mask : (N, 4) bool

    References
    ----------
    Engh & Huber 1991, doi:10.1107/S0108767391001071 (ideal values: 1.458, 1.525, 1.231, 1.329 Å; 111.2°, 120.8°,
    116.2°, 121.7°).
    """

    writes: ClassVar[tuple[str, ...]] = ("bond_length", "bond_length_mask", "bond_angle", "bond_angle_mask")
    conformity = Conformity(tolerance=1e-4)  # coordinates of 300 Å are rounded to 1.5e-5 Å

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        written = {}
        for name, values in (("bond_length", bond_lengths(residues)), ("bond_angle", bond_angles(residues))):
            written[name] = np.nan_to_num(values).astype(residues.pos.dtype)
            written[f"{name}_mask"] = ~np.isnan(values)
        return written


def _on_circle(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines, then sines, ``(N, 2 K)`` of ``(N, K)`` angles, 0 where undefined; and the mask."""
    return np.nan_to_num(np.concatenate([np.cos(angles), np.sin(angles)], axis=1)), ~np.isnan(angles)

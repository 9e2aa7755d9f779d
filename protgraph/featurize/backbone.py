"""Backbone and side chain: dihedral angles, directions, bond geometry, secondary structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.linalg import cross, vector_norm
from torch.nn.functional import normalize

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import StructureFeaturizer
from protgraph.featurize.coordinate_gradient import linked_rows
from protgraph.structure.descriptors.backbone_geometry import CB_C, CB_CROSS, CB_N, backbone_dihedrals, virtual_cb
from protgraph.structure.descriptors.ca_trace import p_sea, trace_angles
from protgraph.structure.descriptors.dssp import DSSP_STATES, dssp, three_states
from protgraph.structure.descriptors.internal_coordinates import (
    SYMMETRIC_CHI,
    bond_angles,
    bond_lengths,
    sidechain_dihedrals,
)
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import BACKBONE, Residues
from protgraph.structure.vectors import unit

__all__ = [
    "BondGeometry",
    "Dihedral",
    "Dssp",
    "Orientation",
    "PSea",
    "SidechainCentroid",
    "SidechainDihedral",
    "SidechainDirection",
    "TraceAngle",
]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "bond_geometry": "BondGeometry",
        "dihedral": "Dihedral",
        "dssp": "Dssp",
        "orientation": "Orientation",
        "p_sea": "PSea",
        "sidechain_centroid": "SidechainCentroid",
        "sidechain_dihedral": "SidechainDihedral",
        "sidechain_direction": "SidechainDirection",
        "trace_angle": "TraceAngle",
    }
}


class Dihedral(StructureFeaturizer):
    """Backbone dihedral angles on the circle: ``[cos φ, cos ψ, cos ω, sin φ, sin ψ, sin ω]``.

    Writes
    ------
    dihedral : (N, 6) float32, 3x0e+3x0o, dimensionless
        Both are 0 where an angle is undefined, i.e. where an atom is missing or the chain ends or has a gap.
        Reflection keeps the cosines and changes the sign of the sines.
    dihedral_mask : (N, 3) bool
        Which of φ, ψ, ω are defined.

    References
    ----------
    See :func:`protgraph.structure.descriptors.backbone_geometry.backbone_dihedrals`; as node features in Ingraham et
    al. 2019, "Generative models for graph-based protein design", NeurIPS 32.
    """

    writes: ClassVar[tuple[str, ...]] = ("dihedral", "dihedral_mask")
    conformity = Conformity(tolerance=1e-4)  # coordinates of 300 Å are rounded to 1.5e-5 Å

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        angles = backbone_dihedrals(residues)  # (N, 3)
        defined = ~np.isnan(angles)
        on_circle = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)  # (N, 6)
        on_circle[~np.concatenate([defined, defined], axis=1)] = 0.0
        return {"dihedral": on_circle.astype(residues.pos.dtype), "dihedral_mask": defined}

    def differentiable(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute the cosines and sines ``(N, 6)`` of the dihedral angles that are defined, in torch."""
        n, ca, c = f["backbone"][:, :3].unbind(1)  # (N, 3)
        mask = f["dihedral_mask"]
        phi, psi, omega = (mask[:, column].nonzero().flatten() for column in range(3))  # residues with the angle
        quadruples = (
            (phi, (c[phi - 1], n[phi], ca[phi], c[phi])),
            (psi, (n[psi], ca[psi], c[psi], n[psi + 1])),
            (omega, (ca[omega], c[omega], n[omega + 1], ca[omega + 1])),
        )
        cosines = torch.zeros(mask.shape, dtype=n.dtype, device=n.device)
        sines = torch.zeros_like(cosines)
        for column, (rows, atoms) in enumerate(quadruples):
            cosine, sine = _dihedral_on_circle(*atoms)
            place = rows, torch.full_like(rows, column)
            cosines, sines = cosines.index_put(place, cosine), sines.index_put(place, sine)
        return {"dihedral": torch.cat([cosines, sines], 1), "dihedral_mask": mask}


class Orientation(StructureFeaturizer):
    """Unit vectors to the next and to the previous CA along the chain.

    Writes
    ------
    orientation : (N, 2, 3) float32, 2x1o, dimensionless
        Row 0 ``(CA_{i+1} - CA_i) / |…|``, row 1 ``(CA_{i-1} - CA_i) / |…|``; 0 at chain ends and gaps.

    References
    ----------
    Jing et al. 2021, arXiv:2009.01411 (node features: "forward and reverse unit vectors").
    """

    writes: ClassVar[tuple[str, ...]] = ("orientation",)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        step = np.diff(residues.pos.astype(np.float64), axis=0)  # (N - 1, 3)
        step = unit(step) * linked_to_next(residues)[:-1, None]
        orientation = np.zeros((len(residues), 2, 3), residues.pos.dtype)
        orientation[:-1, 0] = step
        orientation[1:, 1] = -step
        return {"orientation": orientation}

    def differentiable(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute the unit vectors ``(N, 2, 3)`` between bonded residues, in torch."""
        pos, rows = f["pos"], linked_rows(f)
        step = normalize(pos[rows + 1] - pos[rows], dim=1)
        zero = torch.zeros_like(pos)
        return {"orientation": torch.stack([zero.index_put((rows,), step), zero.index_put((rows + 1,), -step)], 1)}


class SidechainDirection(StructureFeaturizer):
    """Unit vector from CA to the virtual CB, computed from N, CA and C, also for glycine.

    Writes
    ------
    sidechain_direction : (N, 3) float32, 1x1o under rotations (chiral), dimensionless
        0 where N or C is missing, or N, CA, C coincide.

    Notes
    -----
    The formula contains a cross product. For a mirror image it gives the CB of the L form, not the mirrored CB;
    the field is therefore marked chiral.

    References
    ----------
    See :func:`protgraph.structure.descriptors.backbone_geometry.virtual_cb`.
    """

    writes: ClassVar[tuple[str, ...]] = ("sidechain_direction",)
    conformity = Conformity(tolerance=1e-4)  # coordinates of 300 Å are rounded to 1.5e-5 Å

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        cb = virtual_cb(residues.backbone)
        return {"sidechain_direction": unit(cb - residues.backbone[:, 1]).astype(residues.pos.dtype)}

    def differentiable(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute the unit vectors ``(N, 3)`` to the virtual CB, in torch."""
        rows = f["backbone_mask"][:, :3].all(1).nonzero().flatten()
        n, ca, c = f["backbone"][rows, :3].unbind(1)
        first, second = ca - n, c - ca
        to_cb = CB_CROSS * cross(first, second, dim=1) + CB_N * first + CB_C * second
        return {"sidechain_direction": torch.zeros_like(f["pos"]).index_put((rows,), normalize(to_cb, dim=1))}


def _dihedral_on_circle(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosine and sine ``(R,)`` of the dihedral angles of four atoms, ``(R, 3)`` each, not on a line."""
    b1, b2, b3 = b - a, c - b, d - c
    n1, n2 = cross(b1, b2, dim=1), cross(b2, b3, dim=1)
    y = vector_norm(b2, dim=1) * (b1 * n2).sum(1)
    x = (n1 * n2).sum(1)
    radius = torch.hypot(x, y)
    return x / radius, y / radius


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


register_field(
    FieldSpec(
        "dssp",
        "node",
        "0e",
        "int64",
        shape=(),
        classes=len(DSSP_STATES) + 1,
        doc=f"secondary structure by DSSP, {DSSP_STATES} (or, of three states, HEC); last: a backbone atom is missing",
    )
)
register_field(
    FieldSpec(
        "p_sea",
        "node",
        "0e",
        "int64",
        shape=(),
        classes=3,
        chiral=True,
        doc="secondary structure by P-SEA, helix, strand, coil",
    )
)


class Dssp(StructureFeaturizer):
    """Secondary structure by backbone hydrogen bonds, DSSP (Kabsch & Sander 1983).

    Parameters
    ----------
    states : int
        8 (HBEGITSC: α-helix, isolated bridge, strand, 3₁₀-helix, π-helix, turn, bend, coil) or 3 (HEC: helix H, G,
        I; strand E, B; coil T, S, C).
    prefer_pi : bool
        Assign π-helix in preference to α-helix, as the DSSP program does since 2012; False follows the 1983 paper.

    Writes
    ------
    dssp : (N,) int64, category of ``states`` + 1 classes
        Index into HBEGITSC or HEC; the last class marks residues without N, CA, C or O (all residues of a CA trace).

    Notes
    -----
    Strands pair across all chains of the structure. The task ``secondary_structure`` rejects this feature, since it
    is the label.

    References
    ----------
    See :func:`protgraph.structure.descriptors.dssp.dssp`.
    """

    writes: ClassVar[tuple[str, ...]] = ("dssp",)
    zero_gradient: ClassVar[bool] = True
    conformity = Conformity(options={"prefer_pi": True})  # the test proteins have no pi helix

    def __init__(self, *, states: int = 8, prefer_pi: bool = True) -> None:
        super().__init__()
        if states not in (3, 8):
            raise OptionError(f"dssp: invalid states={states!r}. Use 3 or 8.")
        self.letters = np.array(list((DSSP_STATES if states == 8 else "HEC") + "-"))
        self.prefer_pi = prefer_pi
        self.out["dssp"] = self.out["dssp"].as_("dssp", classes=states + 1)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        assigned = dssp(residues, prefer_pi=self.prefer_pi)
        if len(self.letters) == 4:
            assigned = three_states(assigned)
        return {"dssp": (assigned[:, None] == self.letters).argmax(1)}


class PSea(StructureFeaturizer):
    """Secondary structure from the CA trace, P-SEA as implemented in biotite's ``annotate_sse``.

    Writes
    ------
    p_sea : (N,) int64, category of 3 classes
        0 helix, 1 strand, 2 coil. Chiral, because the criteria include the sign of dihedral angles.

    References
    ----------
    See :func:`protgraph.structure.descriptors.ca_trace.p_sea`.
    """

    writes: ClassVar[tuple[str, ...]] = ("p_sea",)
    zero_gradient: ClassVar[bool] = True

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {"p_sea": p_sea(residues)}


register_field(FieldSpec("sidechain_centroid", "node", "1x1o", unit="Å", doc="from CA to the side chain's centroid"))
register_field(FieldSpec("sidechain_centroid_mask", "node", "1x0e", "bool", doc="True if the side chain has an atom"))


class SidechainCentroid(StructureFeaturizer):
    """Vector from CA to the mean position of the side chain's heavy atoms.

    Writes
    ------
    sidechain_centroid : (N, 3), 1x1o, Å, dtype of the coordinates
        0 without side-chain atoms: glycine, or hidden side chains.
    sidechain_centroid_mask : (N, 1) bool
    """

    writes: ClassVar[tuple[str, ...]] = ("sidechain_centroid", "sidechain_centroid_mask")

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        side = ~np.isin(residues.atom_name, (*BACKBONE, "OXT"))
        owner, n = residues.atom_residue[side], len(residues)
        offset = residues.atom_pos[side].astype(np.float64) - residues.pos[owner]
        count = np.bincount(owner, minlength=n)[:, None]
        total = np.stack([np.bincount(owner, offset[:, k], minlength=n) for k in range(3)], 1)
        return {
            "sidechain_centroid": (total / np.maximum(count, 1)).astype(residues.pos.dtype),
            "sidechain_centroid_mask": count > 0,
        }

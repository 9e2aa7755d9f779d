"""Backbone features: dihedral angles and directions at each residue.

The dtype is that of the coordinates: float32 for files, float64 in exact tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.linalg import cross, vector_norm
from torch.nn.functional import normalize

from protgraph.data.graph.conformity import Conformity
from protgraph.featurize.base import StructureFeaturizer
from protgraph.featurize.coordinate_gradient import linked_rows
from protgraph.structure.descriptors.backbone_geometry import CB_C, CB_CROSS, CB_N, backbone_dihedrals, virtual_cb
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["Dihedral", "Orientation", "SidechainDirection"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "dihedral": "Dihedral",
        "orientation": "Orientation",
        "sidechain_direction": "SidechainDirection",
    },
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

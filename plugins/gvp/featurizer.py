"""Node features of GVP-GNN as published: six scalars and three vectors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph import Conformity, FieldSpec, register_field
from protgraph.featurize import Orientation, StructureFeaturizer
from protgraph.structure import unit
from protgraph.structure.descriptors import backbone_dihedrals
from protgraph.structure.residues import Residues

__all__ = ["GvpFeatures"]
ENTRY_POINTS = {"protgraph.featurizers": {"gvp_features": "GvpFeatures"}}

register_field(
    FieldSpec("gvp_scalars", "node", "3x0e+3x0o", doc="cosines then sines of phi, psi, omega; 1 and 0 if undefined")
)
register_field(
    FieldSpec(
        "gvp_vectors",
        "node",
        "3x1o",
        shape=(3, 3),
        chiral=True,
        doc="unit vectors to the next and the previous CA, and to the side chain (chiral by its formula)",
    )
)


class GvpFeatures(StructureFeaturizer):
    """GVP-GNN node features: dihedral angles, and unit vectors along the chain and toward the side chain.

    Scalars ``[cos φ, cos ψ, cos ω, sin φ, sin ψ, sin ω]``; vectors to CA_{i+1} and CA_{i−1}, and
    ``−√(1/3) b − √(2/3) p``, where ``b = unit(c + n)`` and ``p = unit(c × n)`` with c and n the unit vectors from CA to
    C and to N.

    Writes
    ------
    gvp_scalars : (N, 6), 3x0e+3x0o, dimensionless, dtype of the coordinates
        An undefined angle counts as 0: cosine 1, sine 0.
    gvp_vectors : (N, 3, 3), 3x1o under rotations (chiral), dimensionless
        0 at chain ends and gaps, and for the side chain where N or C is missing.

    Notes
    -----
    The published program ignores chains and gaps; here no feature is computed across them. ``dihedral``,
    ``orientation`` and ``sidechain_direction`` are the same features with masks and with the side-chain direction from
    the virtual CB.

    References
    ----------
    Jing et al. 2021, arXiv:2009.01411, section 3.2, and gvp-pytorch.
    """

    writes: ClassVar[tuple[str, ...]] = ("gvp_scalars", "gvp_vectors")
    conformity = Conformity(tolerance=1e-4)  # coordinates of 300 Å are rounded to 1.5e-5 Å

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        angles = np.nan_to_num(backbone_dihedrals(residues))
        n, ca, c = (residues.backbone[:, k].astype(np.float64) for k in range(3))
        c, n = unit(c - ca), unit(n - ca)
        side = -np.sqrt(1 / 3) * unit(c + n) - np.sqrt(2 / 3) * unit(np.cross(c, n))
        side[~(c.any(1) & n.any(1))] = 0.0
        along = Orientation()(residues)["orientation"]
        return {
            "gvp_scalars": np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(residues.pos.dtype),
            "gvp_vectors": np.concatenate([along, side[:, None].astype(along.dtype)], 1),
        }

"""Solvent-accessible surface area per residue, absolute and relative."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.descriptors.sasa import MAX_SASA, PROBE, residue_sasa
from protgraph.structure.residues.residues import Residues

__all__ = ["Sasa"]
ENTRY_POINTS = {"protgraph.featurizers": {"sasa": "Sasa"}}

register_field(FieldSpec("sasa", "node", "1x0e", unit="Å²", doc="solvent-accessible surface area of the residue"))
register_field(FieldSpec("relative_sasa", "node", "1x0e", doc="sasa over the maximum of the residue type, Tien 2013"))


class Sasa(StructureFeaturizer):
    """Solvent-accessible surface area (Shrake & Rupley 1973) with the ProtOr radii of Tsai et al. 1999.

    Parameters
    ----------
    points : int
        Test points per atom; the root-mean-square error per residue is 0.4 Å² with 1000 and 2.5 Å² with 100.
    probe : float
        Radius of the solvent molecule, Å.

    Writes
    ------
    sasa : (N, 1) float32, 1x0e, Å²
        All chains of the structure shield each other; ligands, waters and nucleic acids are ignored. If side chains are
        hidden, the area is that of the bare backbone.
    relative_sasa : (N, 1) float32, 1x0e, dimensionless
        Relative to the theoretical maximum of the residue type in Gly-X-Gly; for X, to the mean over types. Values at
        chain ends and gaps can exceed 1.

    Notes
    -----
    Rounding of float32 coordinates can move single test points across a sphere surface.

    References
    ----------
    Shrake & Rupley 1973, doi:10.1016/0022-2836(73)90011-9; Tsai et al. 1999, doi:10.1006/jmbi.1999.2829; Tien et al.
    2013, doi:10.1371/journal.pone.0080635.
    """

    writes: ClassVar[tuple[str, ...]] = ("sasa", "relative_sasa")
    conformity = Conformity(tolerance=5e-3)  # rounding of coordinates moves a few of thousands of points

    def __init__(self, *, points: Annotated[int, Ge(1)] = 1000, probe: Annotated[float, Ge(0)] = PROBE) -> None:
        super().__init__()
        self.points, self.probe = points, probe

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        area = residue_sasa(residues, points=self.points, probe=self.probe)
        relative = area / MAX_SASA[residues.aatype]
        return {"sasa": area[:, None].astype(np.float32), "relative_sasa": relative[:, None].astype(np.float32)}

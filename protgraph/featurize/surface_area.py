"""What of a residue water can touch: solvent-accessible surface area, absolute and relative."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.descriptors.sasa import MAX_SASA, PROBE, residue_sasa
from protgraph.structure.residues.residues import Residues

__all__ = ["Sasa"]
ENTRY_POINTS = {"protgraph.featurizers": {"sasa": "Sasa"}}

register_field(FieldSpec("sasa", "node", "1x0e", unit="Å²", doc="solvent-accessible surface area of the residue"))
register_field(FieldSpec("relative_sasa", "node", "1x0e", doc="sasa over the largest of the residue type, Tien 2013"))


class Sasa(StructureFeaturizer):
    """Solvent-accessible surface area by Shrake & Rupley's test points, with the ProtOr radii of Tsai et al.

    Parameters
    ----------
    points : int
        Test points of each atom: with 1000, residues are off by 0.4 Å² (root mean square), with 100 by 2.5 Å².
    probe : float
        Radius of the solvent molecule, Å.

    Writes
    ------
    sasa : (N, 1) float32, 1x0e, Å²
        All chains that are there shield each other; ligands, waters and nucleic acids do not. Where side chains are
        hidden, it is the area of the bare backbone.
    relative_sasa : (N, 1) float32, 1x0e, dimensionless
        By the theoretical largest area of the residue type in Gly-X-Gly; for X, of the mean type. Chain ends, and
        residues whose neighbors are missing, can be above 1.

    Notes
    -----
    Points on the edge of a sphere make the area of float32 coordinates off the origin uncertain to one point.

    References
    ----------
    Shrake & Rupley 1973, doi:10.1016/0022-2836(73)90011-9; Tsai et al. 1999, doi:10.1006/jmbi.1999.2829; Tien et al.
    2013, doi:10.1371/journal.pone.0080635.
    """

    writes: ClassVar[tuple[str, ...]] = ("sasa", "relative_sasa")
    conformity = Conformity(tolerance=5e-3)  # a few of a residue's thousands of points, where coordinates are rounded

    def __init__(self, *, points: int = 1000, probe: float = PROBE) -> None:
        super().__init__()
        if not (isinstance(points, int) and points >= 1):
            raise OptionError(f"sasa takes a whole number of points of at least 1, got {points!r}")
        if not (isinstance(probe, int | float) and probe >= 0):
            raise OptionError(f"sasa takes a probe radius of at least 0 Å, got {probe!r}")
        self.points, self.probe = points, probe

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        area = residue_sasa(residues, points=self.points, probe=self.probe)
        relative = area / MAX_SASA[residues.aatype]
        return {"sasa": area[:, None].astype(np.float32), "relative_sasa": relative[:, None].astype(np.float32)}

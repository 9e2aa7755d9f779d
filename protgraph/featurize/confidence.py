"""Confidence per residue: pLDDT of predicted structures, occupancy of experimental ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.residues.residues import Residues

__all__ = ["Occupancy", "Plddt"]
ENTRY_POINTS = {"protgraph.featurizers": {"occupancy": "Occupancy", "plddt": "Plddt"}}

_FULL = 100.0  # pLDDT is written as a percentage

register_field(
    FieldSpec("plddt", "node", "1x0e", doc="confidence of a prediction, pLDDT / 100; 0 for other structures")
)
register_field(FieldSpec("plddt_mask", "node", "1x0e", "bool", doc="True if the file is a prediction with pLDDT"))
register_field(FieldSpec("occupancy", "node", "1x0e", doc="occupancy of CA"))


class Plddt(StructureFeaturizer):
    """Predicted lDDT (pLDDT) of each residue, which AlphaFold files store in the B-factor column.

    Parameters
    ----------
    always : bool
        Interpret B factors as pLDDT (0 to 100) in every file, for programs whose files do not declare it (ESMFold,
        ColabFold).

    Writes
    ------
    plddt : (N, 1) float32, 1x0e, dimensionless
        pLDDT / 100; 0 where the file is not known to be a prediction.
    plddt_mask : (N, 1) bool
        The file declares it: ``ma_qa_metric`` with a metric named pLDDT (mmCIF and BinaryCIF of AlphaFold and its
        database, and any ModelCIF), or the TITLE of the AlphaFold database's PDB files. The values themselves are
        not used to decide, since B factors have the same range.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2; Vallat et al. 2023, doi:10.1016/j.jmb.2023.168021 (ModelCIF).
    """

    writes: ClassVar[tuple[str, ...]] = ("plddt", "plddt_mask")
    zero_gradient: ClassVar[bool] = True

    def __init__(self, *, always: bool = False) -> None:
        super().__init__()
        self.always = always

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        mask = np.full((len(residues), 1), self.always or residues.predicted)
        return {"plddt": (residues.b_factor[:, None] / _FULL * mask).astype(np.float32), "plddt_mask": mask}


class Occupancy(StructureFeaturizer):
    """Occupancy of the CA atom of each residue, in the selected conformation.

    Writes
    ------
    occupancy : (N, 1) float32, 1x0e, dimensionless
        Value of the file; 1 if the file has none or B factors are hidden.
    """

    writes: ClassVar[tuple[str, ...]] = ("occupancy",)
    zero_gradient: ClassVar[bool] = True

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        occupancy = np.ones(len(residues)) if residues.occupancy is None else residues.occupancy
        return {"occupancy": occupancy[:, None].astype(np.float32)}

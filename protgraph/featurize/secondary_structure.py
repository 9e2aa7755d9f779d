"""Secondary structure by hydrogen bonds (DSSP) or from the CA trace (P-SEA).

The two agree for about three of four residues (``docs/descriptors.md``), so each has a separate field.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.descriptors.ca_trace import p_sea
from protgraph.structure.descriptors.dssp import DSSP_STATES, dssp, three_states
from protgraph.structure.residues.residues import Residues

__all__ = ["Dssp", "PSea"]
ENTRY_POINTS = {"protgraph.featurizers": {"dssp": "Dssp", "p_sea": "PSea"}}

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

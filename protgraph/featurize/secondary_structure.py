"""Secondary structure of residues: by hydrogen bonds (DSSP), or by the CA trace alone (P-SEA).

The two agree on some three residues of four only (``docs/descriptors.md``), so each has a field of its own.
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
    """Secondary structure by the hydrogen bonds of the backbone: the dictionary of Kabsch & Sander.

    Parameters
    ----------
    states : int
        8 (HBEGITSC: α-helix, lone bridge, strand, 3₁₀-helix, π-helix, turn, bend, none of these) or 3 (HEC: helix H, G,
        I; strand E, B; coil T, S, C).
    prefer_pi : bool
        Whether a π-helix takes residues from an α-helix, as in the program since 2012, or not, as published in 1983.

    Writes
    ------
    dssp : (N,) int64, category of ``states`` + 1 classes
        Place in HBEGITSC or HEC; the last class where an atom of N, CA, C, O is missing (all residues of a CA trace).

    Notes
    -----
    All chains that are there count: strands pair across chains. For a model of the task ``secondary_structure`` this is
    the answer, not a feature.

    References
    ----------
    See :func:`protgraph.structure.descriptors.dssp.dssp`.
    """

    writes: ClassVar[tuple[str, ...]] = ("dssp",)

    def __init__(self, *, states: int = 8, prefer_pi: bool = True) -> None:
        super().__init__()
        if states not in (3, 8):
            raise OptionError(f"dssp tells 3 or 8 states apart, not {states!r}")
        self.letters = np.array(list((DSSP_STATES if states == 8 else "HEC") + "-"))
        self.prefer_pi = prefer_pi
        self.out["dssp"] = self.out["dssp"].as_("dssp", classes=states + 1)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        found = dssp(residues, prefer_pi=self.prefer_pi)
        if len(self.letters) == 4:
            found = three_states(found)
        return {"dssp": (found[:, None] == self.letters).argmax(1)}


class PSea(StructureFeaturizer):
    """Secondary structure from distances and angles of the CA trace: P-SEA, as biotite's ``annotate_sse`` has it.

    Writes
    ------
    p_sea : (N,) int64, category of 3 classes
        0 helix, 1 strand, 2 coil. Chiral: the sign of dihedral angles is one of its criteria.

    References
    ----------
    See :func:`protgraph.structure.descriptors.ca_trace.p_sea`.
    """

    writes: ClassVar[tuple[str, ...]] = ("p_sea",)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {"p_sea": p_sea(residues)}

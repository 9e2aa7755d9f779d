"""Distance of each residue from the chain termini."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.residues.residues import Residues

__all__ = ["TerminusDistance"]
ENTRY_POINTS = {"protgraph.featurizers": {"terminus_distance": "TerminusDistance"}}

register_field(
    FieldSpec("terminus_distance", "node", "2x0e", doc="distance along the chain from its N- and C-terminus")
)


class TerminusDistance(StructureFeaturizer):
    """Sequence distance from the first and from the last resolved residue of the chain.

    Parameters
    ----------
    relative : bool
        Divide by the chain length − 1, so that the two columns add up to 1. False: number of residues.

    Writes
    ------
    terminus_distance : (N, 2) float32, 2x0e, dimensionless
        From the N-terminus and from the C-terminus, by ``seq_pos``, which includes unresolved residues. 0 and 0 for a
        chain of one residue.
    """

    needs_coordinates: ClassVar[bool] = False
    writes: ClassVar[tuple[str, ...]] = ("terminus_distance",)

    def __init__(self, *, relative: bool = True) -> None:
        super().__init__()
        self.relative = relative

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        position, chain = residues.seq_pos, residues.chain_number
        first, last = np.full(chain.max() + 1, position.max()), np.full(chain.max() + 1, position.min())
        np.minimum.at(first, chain, position)
        np.maximum.at(last, chain, position)
        distance = np.stack([position - first[chain], last[chain] - position], 1).astype(np.float32)
        if self.relative:
            distance /= np.maximum(last - first, 1)[chain, None]
        return {"terminus_distance": distance}

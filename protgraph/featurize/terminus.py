"""Where in its chain a residue is: how far from either end."""

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
    """Residues between a residue and the first, and the last, of its chain that are resolved.

    Parameters
    ----------
    relative : bool
        True: over the length of the chain less 1, so that the two columns add up to 1. False: a number of residues.

    Writes
    ------
    terminus_distance : (N, 2) float32, 2x0e, dimensionless
        From the N-terminus, from the C-terminus; by ``seq_pos``, which counts unresolved gaps. A chain of one residue
        has 0 and 0.
    """

    needs_coordinates: ClassVar[bool] = False
    writes: ClassVar[tuple[str, ...]] = ("terminus_distance",)

    def __init__(self, *, relative: bool = True) -> None:
        super().__init__()
        self.relative = relative

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        place, chain = residues.seq_pos, residues.chain_number
        first, last = np.full(chain.max() + 1, place.max()), np.full(chain.max() + 1, place.min())
        np.minimum.at(first, chain, place)
        np.maximum.at(last, chain, place)
        distance = np.stack([place - first[chain], last[chain] - place], 1).astype(np.float32)
        if self.relative:
            distance /= np.maximum(last - first, 1)[chain, None]
        return {"terminus_distance": distance}

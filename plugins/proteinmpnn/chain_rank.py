"""Order of the chains of a protein as the published program reads them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from protgraph_plugins.proteinmpnn.fields import CHAIN_RANK

from protgraph import Residues, StructureFeaturizer
from protgraph.data import Conformity

__all__ = ["ChainRank"]
ENTRY_POINTS = {"protgraph.featurizers": {"chain_rank": "ChainRank"}}


class ChainRank(StructureFeaturizer):
    """Rank of the name of each residue's chain among the names of the protein's chains, by character code.

    Writes
    ------
    chain_rank : (N,) int64
        0 for the first name in alphabetical order. The published program concatenates chains in this order.
    """

    needs_coordinates: ClassVar[bool] = False
    writes: ClassVar[tuple[str, ...]] = (CHAIN_RANK.name,)
    conformity: ClassVar[Conformity] = Conformity(
        expected_failures={
            "non_trivial": "the names of chains determine it, not the structure",
            "numbering": "the published program orders chains by their names",
        }
    )

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {CHAIN_RANK.name: np.unique(residues.chain, return_inverse=True)[1].astype(np.int64)}

"""Side-chain centroid relative to CA."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["SidechainCentroid"]
ENTRY_POINTS = {"protgraph.featurizers": {"sidechain_centroid": "SidechainCentroid"}}

register_field(FieldSpec("sidechain_centroid", "node", "1x1o", unit="Å", doc="from CA to the side chain's centroid"))
register_field(FieldSpec("sidechain_centroid_mask", "node", "1x0e", "bool", doc="True if the side chain has an atom"))


class SidechainCentroid(StructureFeaturizer):
    """Vector from CA to the mean position of the side chain's heavy atoms.

    Writes
    ------
    sidechain_centroid : (N, 3), 1x1o, Å, dtype of the coordinates
        0 without side-chain atoms: glycine, or hidden side chains.
    sidechain_centroid_mask : (N, 1) bool
    """

    writes: ClassVar[tuple[str, ...]] = ("sidechain_centroid", "sidechain_centroid_mask")

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        side = ~np.isin(residues.atom_name, (*BACKBONE, "OXT"))
        owner, n = residues.atom_residue[side], len(residues)
        offset = residues.atom_pos[side].astype(np.float64) - residues.pos[owner]
        count = np.bincount(owner, minlength=n)[:, None]
        total = np.stack([np.bincount(owner, offset[:, k], minlength=n) for k in range(3)], 1)
        return {
            "sidechain_centroid": (total / np.maximum(count, 1)).astype(residues.pos.dtype),
            "sidechain_centroid_mask": count > 0,
        }

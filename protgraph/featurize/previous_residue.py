"""What a causal model reads: the residue before each one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import field
from protgraph.featurize.base import TensorFeaturizer

__all__ = ["PreviousResidue"]
ENTRY_POINTS = {"protgraph.featurizers": {"previous_residue": "PreviousResidue"}}


class PreviousResidue(TensorFeaturizer):
    """The type of the residue before, ``previous[i] = aatype[i - 1]``, and a class of its own at a chain's start.

    With it and causal layers, what a model says of residue i depends on the residues before i alone.

    Reads
    -----
    aatype : (N,) int64
    chain : (N,) int64
    proteins

    Writes
    ------
    previous : (N,) int64, 22 classes
        ACDEFGHIKLMNPQRSTVWYX, then the start of a chain.

    Notes
    -----
    "Before" is in the order of nodes, as it is for causal attention: whatever that order, none sees what comes later.
    An unresolved gap is passed over.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype", "chain", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("previous",)
    conformity = Conformity(expected_failures={"node_order": "the residue before is the node before"})

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        aatype, chain, protein = f["aatype"], f["chain"], f["proteins"].batch
        start = field("aatype").classes
        previous = torch.full_like(aatype, start)
        same = (chain[1:] == chain[:-1]) & (protein[1:] == protein[:-1])
        previous[1:] = torch.where(same, aatype[:-1], start)
        return {"previous": previous}

"""Type of the preceding residue, the input of causal models."""

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
    """Type of the preceding residue, ``previous[i] = aatype[i - 1]``, with an extra class at the start of a chain.

    With this input and causal layers, the prediction for residue i depends only on the residues before i.

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
    The order is that of the nodes, as for causal attention, so no residue depends on later nodes. Unresolved gaps are
    ignored.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype", "chain", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("previous",)
    conformity = Conformity(expected_failures={"node_order": "the preceding residue is defined by node order"})

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        aatype, chain, protein = f["aatype"], f["chain"], f["proteins"].batch
        start = field("aatype").classes
        previous = torch.full_like(aatype, start)
        same = (chain[1:] == chain[:-1]) & (protein[1:] == protein[:-1])
        previous[1:] = torch.where(same, aatype[:-1], start)
        return {"previous": previous}

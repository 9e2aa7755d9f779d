"""Rank of each residue in the decoding order of autoregressive models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.featurize.base import TensorFeaturizer
from protgraph.structure.residues.alphabet import UNKNOWN

__all__ = ["DecodingRank"]
ENTRY_POINTS = {"protgraph.featurizers": {"decoding_rank": "DecodingRank"}}


class DecodingRank(TensorFeaturizer):
    """Rank of each residue in the decoding order.

    Parameters
    ----------
    order : {"forward", "none"}
        "forward": every chain from N to C terminus, all chains in parallel, residues of unknown type last. "none": 0
        for all, so that no residue depends on the type of another.

    Reads
    -----
    seq_pos, aatype : (N,) int64
    decoding_rank : (N,) int64, if the graph has one, it is kept

    Writes
    ------
    decoding_rank : (N,) int64

    Notes
    -----
    If all types are hidden, all residues share the last rank and are predicted from the structure alone. Training
    uses random ranks (:func:`protgraph.task.with_random_order`); :mod:`protgraph.design` sets its own orders.
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos", "aatype")
    optional: ClassVar[tuple[str, ...]] = ("decoding_rank",)
    writes: ClassVar[tuple[str, ...]] = ("decoding_rank",)

    def __init__(self, *, order: str = "forward") -> None:
        super().__init__()
        if order not in ("forward", "none"):
            raise OptionError(f"decoding_rank: invalid order={order!r}. Use 'forward' or 'none'.")
        self.order = order

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if "decoding_rank" in f:
            return {"decoding_rank": f["decoding_rank"]}
        seq_pos = f["seq_pos"]
        if self.order == "none":
            return {"decoding_rank": torch.zeros_like(seq_pos)}
        return {"decoding_rank": seq_pos.masked_fill(f["aatype"] == UNKNOWN, torch.iinfo(seq_pos.dtype).max)}

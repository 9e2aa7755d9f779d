"""In which order residues are decoded, for models that tell types one after the other: ``decoding_rank``."""

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
    """The place of each residue in the order of decoding.

    Parameters
    ----------
    order : {"forward", "none"}
        Every chain from N to C terminus, all chains at once, and residues of unknown type after all others; or 0 for
        all, so that no residue is shown another's type.

    Reads
    -----
    seq_pos, aatype : (N,) int64
    decoding_rank : (N,) int64, where the graph has one: it stays

    Writes
    ------
    decoding_rank : (N,) int64

    Notes
    -----
    Where all types are hidden, all come last together: each is told from the structure alone. Training brings random
    ranks (:func:`protgraph.task.with_random_order`), and :mod:`protgraph.design` decodes in orders of its own.
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos", "aatype")
    optional: ClassVar[tuple[str, ...]] = ("decoding_rank",)
    writes: ClassVar[tuple[str, ...]] = ("decoding_rank",)

    def __init__(self, *, order: str = "forward") -> None:
        super().__init__()
        if order not in ("forward", "none"):
            raise OptionError(f"decoding_rank: order={order!r} is none of 'forward', 'none'")
        self.order = order

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if "decoding_rank" in f:
            return {"decoding_rank": f["decoding_rank"]}
        seq_pos = f["seq_pos"]
        if self.order == "none":
            return {"decoding_rank": torch.zeros_like(seq_pos)}
        return {"decoding_rank": seq_pos.masked_fill(f["aatype"] == UNKNOWN, torch.iinfo(seq_pos.dtype).max)}

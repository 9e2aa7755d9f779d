"""In which order residues are decoded, for models that tell types one after the other: ``decoding_rank``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.featurize.base import TensorFeaturizer

__all__ = ["DecodingRank"]


class DecodingRank(TensorFeaturizer):
    """The place of each residue in the order of decoding.

    Parameters
    ----------
    order : {"forward", "none"}
        Every chain from N to C terminus, all chains at once; or 0 for all, so that no residue is shown another's type.

    Reads
    -----
    seq_pos : (N,) int64

    Writes
    ------
    decoding_rank : (N,) int64

    Notes
    -----
    :mod:`protgraph.design` decodes in orders of its own.
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos",)
    writes: ClassVar[tuple[str, ...]] = ("decoding_rank",)

    def __init__(self, *, order: str = "forward") -> None:
        super().__init__()
        if order not in ("forward", "none"):
            raise OptionError(f"decoding_rank: order={order!r} is none of 'forward', 'none'")
        self.order = order

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        seq_pos = f["seq_pos"]
        return {"decoding_rank": seq_pos.clone() if self.order == "forward" else torch.zeros_like(seq_pos)}

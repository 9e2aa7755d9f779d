"""Positional encoding added to features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.module import GraphLayer
from protgraph.nn.positional_encoding import CHAINS_IN_ORDER, LearnedPositions, PositionCode, position_index, sinusoid

__all__ = ["Position"]
ENTRY_POINTS = {"protgraph.layers": {"position": "Position"}}


class Position(GraphLayer):
    """Positional encoding added to features: ``h_i ← h_i + P[p_i]``, p the position of residue i along the sequence.

    Parameters
    ----------
    kind : {"learned", "sinusoidal"}
        A learned vector per position, or its sines and cosines.
    max_len : int
        Number of learned positions.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``seq_pos`` ``(N,)`` int64, which counts unresolved residues; ``proteins``.
    Optional: ``chain`` ``(N,)``: chains follow each other with :data:`~protgraph.nn.positional_encoding.CHAIN_GAP`
    positions between them.
    Writes: ``h`` ``(N, C)``, ``C x 0e``.

    Rotary positions and offset biases are options of the attention layers.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.5 (sinusoidal); Devlin et al. 2019, arXiv:1810.04805 (learned).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "seq_pos", "proteins")
    optional: ClassVar[tuple[str, ...]] = ("chain",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        kind: Literal["learned", "sinusoidal"] = "learned",
        max_len: int = 4096,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        learned = kind == "learned"
        self.table = LearnedPositions(max_len, width) if learned else None
        self.declare(h=f"{width}x0e")
        if "chain" in fields:
            self.conformity = Conformity(expected_failures=CHAINS_IN_ORDER)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Add the code of the position in the chain to ``h (N, C)``."""
        h = f["h"]
        index = position_index(f["seq_pos"], f["proteins"], f.get("chain"))
        code = sinusoid(index, h.size(1), h.dtype) if self.table is None else self.table(index)
        return {"h": h + code}

    def position_code(self, length: int) -> PositionCode | None:
        """Return the sinusoids; learned positions return their own code."""
        if self.table is not None:
            return None
        width = self.scalar_width("h")
        return PositionCode("sinusoidal", sinusoid(torch.arange(length), width, torch.float64))

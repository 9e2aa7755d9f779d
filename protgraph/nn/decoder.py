"""What a layer is that tells residue types one after the other: :class:`Decoder`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from protgraph.nn.module import GraphLayer

__all__ = ["Decoder", "DecoderState"]


class DecoderState:
    """What a decoder keeps while it goes from residue to residue; each decoder has its own."""

    #: How many sequences are decoded at a time on the same structures.
    copies: int
    #: N.
    num_nodes: int


class Decoder(GraphLayer):
    """A layer whose row i depends on the types of the residues decoded before i, and of no others.

    ``aatype`` are the types, ``decoding_rank`` says who comes before whom: i sees the type of j where the rank of j is
    the lower one. :meth:`forward` works out all rows at once for types that are known (teacher forcing). To *choose*
    types, rows are worked out one after the other: :meth:`start` keeps what no type can change, :meth:`step` works out
    one row a copy, :meth:`tell` lets the later rows see what was chosen. Both ways give the same numbers.

    Rows of a state are numbered ``copy · N + node``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_attr", "aatype", "decoding_rank")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    @abstractmethod
    def start(self, f: Mapping[str, Any], *, copies: int = 1) -> DecoderState:
        """Everything that does not depend on residue types, worked out once; no residue is decoded yet.

        Without copies, only :meth:`teach` can use it.
        """

    @abstractmethod
    def teach(self, state: DecoderState, aatype: Tensor, rank: Tensor, *, copy: int = 0) -> Tensor:
        """All rows ``(N, C)`` of known types ``(N,)`` and ranks ``(N,)``; the copy has then decoded all of them."""

    @abstractmethod
    def forget(self, state: DecoderState, rows: Tensor) -> None:
        """Take rows ``(R,)`` for not yet decoded."""

    @abstractmethod
    def step(self, state: DecoderState, rows: Tensor) -> Tensor:
        """Rows ``(R, C)`` as they follow from what is decoded; others see from now on where they stand, not their type.

        No row may be another's neighbor.
        """

    @abstractmethod
    def tell(self, state: DecoderState, rows: Tensor, types: Tensor) -> None:
        """Let others see the types ``(R,)`` of rows ``(R,)`` that were stepped."""

"""Autoregressive decoders of residue types."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph.nn.module import GraphLayer

__all__ = ["Decoder", "DecoderState"]


class DecoderState:
    """State of a decoder between residues; each decoder has its own subclass.

    ``copies``: number of sequences decoded in parallel on the same structures. ``num_nodes``: N.
    """

    copies: int
    num_nodes: int


class Decoder(GraphLayer):
    """A layer whose row i depends on the types of the residues decoded before i only.

    ``aatype`` holds the types. ``decoding_rank`` gives the order: row i depends on the type of j if the rank of j is
    lower. :meth:`forward` computes all rows at once from known types (teacher forcing). To sample types, compute rows
    one by one: :meth:`start` computes what no type changes, :meth:`decode_step` computes one row per copy, and
    :meth:`commit` makes the sampled types visible to later rows. Both ways give the same numbers.

    Rows of a state are numbered ``copy · N + node``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_attr", "aatype", "decoding_rank")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    @abstractmethod
    def start(self, f: Mapping[str, Any], *, copies: int = 1) -> DecoderState:
        """Compute everything that does not depend on residue types; no residue is decoded yet.

        With ``copies=0`` the state only supports :meth:`teacher_force`.
        """

    @abstractmethod
    def teacher_force(self, state: DecoderState, aatype: Tensor, rank: Tensor, *, copy: int = 0) -> Tensor:
        """Compute all rows ``(N, C)`` from ``aatype (N,)`` and ``rank (N,)``; marks the copy as fully decoded."""

    def masked_rows(self, state: DecoderState, aatype: Tensor, rank: Tensor, sites: Sequence[Tensor]) -> Tensor:
        """Compute the rows of sets of residues, each set decoded after all others and masked for itself.

        Decoders may override this pass over all rows per set with a faster one.

        ``aatype``, ``rank``: ``(N,)`` int64; the ranks are those of the other residues. ``sites``: ``(M,)`` int64 each.
        Returns ``(R, C)``, set after set.
        """
        last = len(rank)
        rows = [self.teacher_force(state, aatype, rank.index_fill(0, s, last))[s] for s in sites]
        return torch.cat(rows)

    @abstractmethod
    def reset(self, state: DecoderState, rows: Tensor) -> None:
        """Mark rows ``(R,)`` as not decoded."""

    @abstractmethod
    def decode_step(self, state: DecoderState, rows: Tensor) -> Tensor:
        """Compute ``(R, C)``, the values of ``rows (R,)``, from what is decoded so far.

        Marks the rows as visited: neighbors may use their features, not yet their types. The rows must not be
        neighbors of each other.
        """

    @abstractmethod
    def commit(self, state: DecoderState, rows: Tensor, types: Tensor) -> None:
        """Make the types ``(R,)`` of the visited rows ``(R,)`` visible to other rows."""

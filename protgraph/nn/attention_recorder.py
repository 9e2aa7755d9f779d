"""Recording of attention weights during a forward pass; free when no recorder is active."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType

import torch
from torch import Tensor, nn

from protgraph.ops import Proteins

__all__ = ["AttentionMixin", "AttentionRecorder", "AttentionWeights", "EdgeWeights", "PairWeights"]


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Attention weights of all pairs of nodes of each protein.

    ``maps``: ``(H, L, M)`` per protein: the weight of node j (column) in the sum of node i (row). Rows sum to 1.
    ``visible``: ``(L, M)`` bool per protein: whether i may attend to j. None: all pairs.
    """

    maps: Sequence[Tensor]
    visible: Sequence[Tensor] | None = None

    def dense(self, proteins: Proteins) -> list[tuple[Tensor, Tensor | None]]:
        """Return ``(H, L, M)`` weights and the ``(L, M)`` visibility of each protein."""
        visible: Sequence[Tensor | None] = self.visible or [None] * len(self.maps)
        return list(zip(self.maps, visible, strict=True))


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """Attention weights of the edges j → i.

    ``index``: ``(2, E)`` int64, j in row 0, i in row 1. ``weight``: ``(E, H)``. ``self_weight``: ``(N, H)``, the weight
    of each node in its own sum.
    """

    index: Tensor
    weight: Tensor
    self_weight: Tensor | None = None

    def dense(self, proteins: Proteins) -> list[tuple[Tensor, Tensor | None]]:
        """Return ``(H, L, L)`` weights, 0 without an edge, and ``(L, L)`` bool edges of each protein."""
        pair_rows = proteins.pair_index(self.index[1], self.index[0])  # (E,)
        values = self.weight.new_zeros(proteins.num_pairs, self.weight.size(1)).index_copy(0, pair_rows, self.weight)
        edges = torch.zeros(proteins.num_pairs, dtype=torch.bool, device=values.device).index_fill(0, pair_rows, True)
        if self.self_weight is not None:
            node = torch.arange(len(self.self_weight), device=values.device)
            pair_rows = proteins.pair_index(node, node)
            values, edges = values.index_copy(0, pair_rows, self.self_weight), edges.index_fill(0, pair_rows, True)
        pairs = zip(proteins.split_pairs(values), proteins.split_pairs(edges), strict=True)
        return [(w.permute(2, 0, 1), edge) for w, edge in pairs]


AttentionWeights = PairWeights | EdgeWeights


class AttentionMixin(nn.Module):
    """A module whose attention weights can be recorded.

    ``forward`` passes the weights that it sums with to :meth:`record_attention`. If they cost extra to compute, it
    checks :attr:`is_recording` first.
    """

    _record: partial[None] | None = None

    @property
    def is_recording(self) -> bool:
        """Whether an :class:`AttentionRecorder` is active on this module."""
        return self._record is not None

    def record_attention(self, weights: AttentionWeights) -> None:
        """Pass weights to the active recorder, if any."""
        if self._record is not None:
            self._record(weights)


class AttentionRecorder:
    """Collect the attention weights of a module's forward passes; a context manager.

    ``module``: the module to record, with all its submodules. ``weights``: one :class:`PairWeights` or
    :class:`EdgeWeights` per forward pass, by the submodule's path as in ``named_modules``.

    Examples
    --------
    >>> from protgraph.nn.dot_product_attention import DotProductAttention
    >>> attention, x = DotProductAttention(), torch.zeros(2, 1, 4)
    >>> with AttentionRecorder(attention) as recorder:
    ...     _ = attention(x, x, x, Proteins(torch.tensor([0, 0]), (2,)))
    >>> recorder.weights[""][0].maps[0].tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """

    def __init__(self, module: nn.Module) -> None:
        self.weights: dict[str, list[AttentionWeights]] = {}
        self._parts = [(path, part) for path, part in module.named_modules() if isinstance(part, AttentionMixin)]

    def __enter__(self) -> AttentionRecorder:
        for path, part in self._parts:
            part._record = partial(self.record, path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for _, part in self._parts:
            part._record = None

    def record(self, path: str, weights: AttentionWeights) -> None:
        """Append the weights of one forward pass of the submodule at ``path``."""
        self.weights.setdefault(path, []).append(weights)

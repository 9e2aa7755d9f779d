"""Attention weights on request: layers tell them to whoever listens, and compute nothing for it where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protgraph.ops.edges import Proteins

__all__ = ["Attends", "EdgeWeights", "PairWeights", "Weights", "record"]


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Weights of all pairs of a protein's nodes.

    Parameters
    ----------
    proteins : sequence of Tensor
        ``(H, L, M)`` of each protein: how much node i (rows) takes from node j (columns); rows sum to 1.
    sees : sequence of Tensor, optional
        ``(L, M)`` bool of each protein, which j can be seen from i at all; None: all.
    """

    proteins: Sequence[Tensor]
    sees: Sequence[Tensor] | None = None

    def dense(self, proteins: Proteins) -> list[tuple[Tensor, Tensor | None]]:
        """Weights and what is seen, of each protein."""
        seen = self.sees or [None] * len(self.proteins)
        return list(zip(self.proteins, seen, strict=True))


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """Weights of edges j → i.

    Parameters
    ----------
    index : Tensor
        ``(2, E)`` int64, j in row 0, i in row 1.
    weight : Tensor
        ``(E, H)``.
    own : Tensor, optional
        ``(N, H)``, what each node takes from itself.
    """

    index: Tensor
    weight: Tensor
    own: Tensor | None = None

    def dense(self, proteins: Proteins) -> list[tuple[Tensor, Tensor | None]]:
        """``(H, L, L)`` of each protein, 0 where there is no edge, and ``(L, L)`` bool, where there is one."""
        place = proteins.pair(self.index[1], self.index[0])  # (E,)
        values = self.weight.new_zeros(proteins.num_pairs, self.weight.size(1)).index_copy(0, place, self.weight)
        sees = torch.zeros(proteins.num_pairs, dtype=torch.bool, device=values.device).index_fill(0, place, True)
        if self.own is not None:
            node = torch.arange(len(self.own), device=values.device)
            place = proteins.pair(node, node)
            values, sees = values.index_copy(0, place, self.own), sees.index_fill(0, place, True)
        pairs = zip(proteins.split_pairs(values), proteins.split_pairs(sees), strict=True)
        return [(w.permute(2, 0, 1), seen) for w, seen in pairs]


Weights = PairWeights | EdgeWeights


class Attends(nn.Module):
    """A module that sums with attention weights and tells them, where somebody listens.

    ``forward`` calls :meth:`tell` with the weights that it sums with; to find them it may ask :attr:`is_heard` first.
    """

    _listener: Callable[[Weights], None] | None = None

    @property
    def is_heard(self) -> bool:
        """Whether :func:`record` is listening."""
        return self._listener is not None

    def tell(self, weights: Weights) -> None:
        """Hand weights to the listener, if there is one."""
        if self._listener is not None:
            self._listener(weights)


@contextmanager
def record(module: nn.Module) -> Iterator[dict[str, list[Weights]]]:
    """Collect what the modules inside tell in forward passes, by path as of ``named_modules``, in order of the calls.

    Listeners hang on the module's own parts and are taken away at the end; other modules notice nothing.
    """
    parts = [(path, part) for path, part in module.named_modules() if isinstance(part, Attends)]
    told: dict[str, list[Weights]] = {}
    try:
        for path, part in parts:
            part._listener = lambda weights, path=path: told.setdefault(path, []).append(weights)
        yield told
    finally:
        for _, part in parts:
            part._listener = None

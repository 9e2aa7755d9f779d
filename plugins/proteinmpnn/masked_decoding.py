"""Rows of ``proteinmpnn_decoder`` with residues masked: only the states that differ are computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from protgraph_plugins.proteinmpnn.decoder_cache import DecoderCache
from torch import Tensor

__all__ = ["MaskedDecoding"]

_CELLS = 1 << 21  # sets × residues × neighbors of one batch of masks
_PAIRS = 128  # states whose messages are computed together; 3 MB of messages fit the cache of a core


@dataclass
class MaskedDecoding:
    """Decoder with all types visible in one order, from which masks are computed as differences.

    Parameters
    ----------
    layers : sequence of Module
        L layers of the decoder.
    state : DecoderCache
    aatype, rank : Tensor
        ``(N,)`` int64, types and decoding order.
    hidden : list of Tensor
        ``(N, C)`` before each layer, with teacher forcing in this order.
    decoded : list of Tensor
        ``(N, C)``, contribution of each residue to the messages of each layer after it is decoded.

    Notes
    -----
    With one masked residue of a protein of 300, about 75 of the 900 states of three layers are computed: in the first
    layer half of the residues that have it as a neighbor, in the second its neighbors, in the third itself.
    """

    layers: Sequence[Any]
    state: DecoderCache
    aatype: Tensor
    rank: Tensor
    hidden: list[Tensor]
    decoded: list[Tensor]

    def rows(self, sites: Sequence[Tensor]) -> Tensor:
        """Compute the rows ``(R, C)`` of sets of residues ``(M,)``; each set is decoded last and masked for itself."""
        if not len(sites):
            return self.hidden[0][:0]
        shape = self.state.neighbor.shape
        edges = [layer.edge(self.state.edge).view(*shape, -1) for layer in self.layers]
        cells = max(self.state.neighbor.numel(), 1)
        size = max(1, _CELLS // cells)
        rows = [self._batch(sites[start : start + size], edges) for start in range(0, len(sites), size)]
        return torch.cat(rows)

    def _batch(self, sites: Sequence[Tensor], edges: Sequence[Tensor]) -> Tensor:
        nodes = torch.arange(self.state.num_nodes, device=self.rank.device)
        masked = torch.zeros(len(sites), len(nodes), dtype=torch.bool, device=self.rank.device)
        for number, members in enumerate(sites):
            masked[number, members] = True
        slot = nodes.repeat(len(sites), 1)  # (V, N) row of the state of a residue in a set: below N if not changed
        changed, node = self.hidden[0][:0], nodes[:0]  # states (P, C) from row N, and their residues
        for number, pairs in enumerate(self._pairs(masked)):
            changed = self._layer(number, pairs, masked, slot, (changed, node), edges[number])
            node = pairs[1]
            slot = nodes.repeat(len(sites), 1)
            slot[pairs] = len(nodes) + torch.arange(len(node), device=nodes.device)
        rows = [slot[number, members] for number, members in enumerate(sites)]
        return changed[torch.cat(rows) - len(nodes)]

    def _pairs(self, masked: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the sets and residues, ``(P,)`` each, whose states after each layer are changed and needed."""
        neighbor, there = self.state.neighbor, self.state.there
        earlier = self.rank[neighbor] < self.rank[:, None]  # (N, K)
        if there is not None:
            earlier &= there[..., 0] > 0

        # Forward: a state changes with those of earlier neighbors, layer by layer.
        changed = masked
        changed_after = []
        for _ in self.layers:
            changed = masked | (changed[:, neighbor] & earlier).any(-1)  # (V, N)
            changed_after.append(changed)

        # Backward: the last layer needs the masked residues, each layer before it their neighbors too.
        needed = masked
        pairs_of_layers = []
        for changed in reversed(changed_after):
            sets, nodes = (needed & changed).nonzero(as_tuple=True)
            pairs_of_layers.append((sets, nodes))
            needed = masked.clone()
            needed[sets, nodes] = True
            needed[sets[:, None], neighbor[nodes]] = True
        return pairs_of_layers[::-1]

    def _layer(
        self,
        number: int,
        pairs: tuple[Tensor, Tensor],
        masked: Tensor,
        slot: Tensor,
        before: tuple[Tensor, Tensor],
        of_edge: Tensor,
    ) -> Tensor:
        """Return the states ``(P, C)`` of pairs after a layer, from ``slot`` and the changed states before it."""
        layer, state = self.layers[number], self.state
        changed, node = before
        types = state.table[number][self.aatype[node]]
        h = torch.cat([self.hidden[number], changed])  # (N + P', C)
        of_target = layer.target(h)

        # Contributions of sources: decoded, decoded with a changed state, and not decoded.
        sources = torch.cat([self.decoded[number], layer.source(changed) + types, state.undecoded[number]])

        updated = [changed[:0]]
        all_sets, all_nodes = pairs
        for sets, nodes in zip(all_sets.split(_PAIRS), all_nodes.split(_PAIRS), strict=True):
            around = state.neighbor[nodes]  # (P, K)
            slots = slot[sets, nodes]  # (P,)

            # A masked residue is decoded last and sees all others; no residue sees a masked one.
            is_earlier = self.rank[around] < self.rank[nodes][:, None]
            visible = is_earlier | masked[sets, nodes][:, None]
            visible &= ~masked[sets[:, None], around]
            row = torch.where(visible, slot[sets[:, None], around], len(h) + around)

            z = sources.index_select(0, row.flatten()).view(*around.shape, -1)  # (P, K, C)
            z.add_(of_edge.index_select(0, nodes))
            z.add_(of_target[slots][:, None])
            message = layer.inner(z)
            if state.there is not None:
                message = message * state.there[nodes]
            row_update = layer.update(h[slots], message.sum(1), state.count[nodes])
            updated.append(state.mask(row_update, nodes))
        return torch.cat(updated)

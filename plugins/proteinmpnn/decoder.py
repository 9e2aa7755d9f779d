"""Autoregressive decoder of ProteinMPNN: ``proteinmpnn_decoder``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from annotated_types import Ge
from protgraph_plugins.proteinmpnn.blocks import EdgeBlock, map_blocks, split_edges
from protgraph_plugins.proteinmpnn.decoder_cache import DecoderCache, padded_features, padded_neighbors
from protgraph_plugins.proteinmpnn.layers import NodeUpdate, PairMLP
from protgraph_plugins.proteinmpnn.masked_decoding import MaskedDecoding
from torch import Tensor, nn

from protgraph import Edges, FieldSpec
from protgraph.errors import WiringError
from protgraph.nn import Decoder

__all__ = ["ProteinMPNNDecoder"]
ENTRY_POINTS = {"protgraph.layers": {"proteinmpnn_decoder": "ProteinMPNNDecoder"}}


class _Layer(PairMLP):
    """One round of messages ``W₃ g(W₂ g(A h_i + B e_ij + C h_j + D s_j + b₁) + b₂) + b₃`` and the node's update."""

    def __init__(self, dim: int, edge: int, scale: float, dropout: float) -> None:
        super().__init__(dim, edge, dim)
        self.of_type = nn.Linear(dim, dim, bias=False)
        self.update = NodeUpdate(dim, scale, dropout)


class ProteinMPNNDecoder(Decoder):
    """Autoregressive decoder: i uses types and states of residues decoded before it, and the encoding of the others.

    With s the embedding of types and h⁰ the encoding: ``h_i ← norm(h_i + 1/30 Σ_j m_ij)``, where ``m_ij`` is
    ``MLP[h_i, e_ij, s_j, h_j]`` for j decoded before i and ``MLP[h_i, e_ij, 0, h⁰_j]`` for the others, then
    ``h_i ← norm(h_i + FFN(h_i))``; ``depth`` times. The output of a residue does not depend on its type.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    depth : int
        Rounds.
    scale : float
        Constant divisor of the sum of messages (not the number of neighbors).
    dropout : float
        Probability.
    unresolved : bool
        True, as in the program: residues without incoming edges send messages of their types alone; their h is 0.

    Notes
    -----
    Reads: h ``(N, C)`` and edge_attr ``(E, D)`` scalars, edges, aatype ``(N,)``, decoding_rank ``(N,)``.
    Writes: h ``(N, C)``.

    Linear maps of h and s in the first layer of a message are computed on nodes. During sampling, those of e are
    computed once, before decoding.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement, algorithm 3.
    """

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        depth: Annotated[int, Ge(1)] = 3,
        scale: float = 30.0,
        dropout: float = 0.1,
        unresolved: bool = False,
    ) -> None:
        super().__init__(fields)
        types = fields["aatype"].classes
        if types is None:
            raise WiringError(f"aatype of proteinmpnn_decoder is not a category: {fields['aatype'].name!r}.")
        dim = self.scalar_width("h")
        edge = self.scalar_width("edge_attr")
        self.embed = nn.Embedding(types, dim)
        self.unresolved = unresolved
        self.layers = nn.ModuleList(_Layer(dim, edge, scale, dropout) for _ in range(depth))
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)`` with the native types of the residues decoded earlier (teacher forcing)."""
        return {"h": self.teacher_force(self.start(f, copies=0), f["aatype"], f["decoding_rank"])}

    def start(self, f: Mapping[str, Any], *, copies: int = 1) -> DecoderCache:
        """Compute what all steps share, for ``copies`` sequences of the same backbones; 0 for teacher forcing only."""
        h, edges, e = f["h"], f["edges"], f["edge_attr"]
        undecoded = [layer.source(h) for layer in self.layers]
        neighbor, there = padded_neighbors(edges)
        edge = padded_features(e, there)
        return DecoderCache(
            h=h,
            edge=edge,
            copies=copies,
            num_nodes=edges.num_nodes,
            of_edge=[layer.edge(edge).view(*neighbor.shape, h.size(1)) for layer in self.layers] if copies else [],
            neighbor=neighbor,
            there=None if there is None else there[..., None].to(h.dtype),
            count=edges.count[:, None].to(h.dtype),
            resolved=(edges.count > 0)[:, None].to(h.dtype) if self.unresolved else None,
            undecoded=undecoded,
            of_source=[part.repeat(copies, 1) for part in undecoded] if copies else [],
            table=[layer.of_type(self.embed.weight) for layer in self.layers],
        )

    def teacher_force(self, state: DecoderCache, aatype: Tensor, rank: Tensor, *, copy: int = 0) -> Tensor:
        """Compute all states ``(N, C)`` at once for ``aatype (N,)`` and ``rank (N,)`` in the decoding order."""
        return self._all_states(state, aatype, rank, copy=copy)[-1][0]

    def masked_rows(self, state: DecoderCache, aatype: Tensor, rank: Tensor, sites: Sequence[Tensor]) -> Tensor:
        """Compute the rows ``(R, C)`` of sets of residues, each decoded last and masked for itself.

        ``aatype (N,)`` and ``rank (N,)`` are of all residues, ``sites`` ``(M,)`` of each set.
        """
        hidden, decoded = zip(*self._all_states(state, aatype, rank)[:-1], strict=True)
        return MaskedDecoding(self.layers, state, aatype, rank, list(hidden), list(decoded)).rows(sites)

    def _all_states(
        self, state: DecoderCache, aatype: Tensor, rank: Tensor, *, copy: int = 0
    ) -> list[tuple[Tensor, Tensor]]:
        """Return h before each layer with the contribution of decoded residues to its messages, then the last h."""
        n = state.num_nodes
        h = state.h

        # Rows of sources: the first N are decoded, the last N, those of later residues, are not.
        is_later = rank[state.neighbor] >= rank[:, None]  # (N, K)
        edges = _from(state.neighbor + n * is_later, 2 * n)
        blocks = split_edges(edges, h, max(h.size(1), state.edge.size(1)))

        states = []
        for number, layer in enumerate(self.layers):
            sources = layer.source(h) + state.table[number][aatype]
            states.append((h, sources))
            nodes = (layer.of_target(h), torch.cat([sources, state.undecoded[number]]))

            def total(block: EdgeBlock, layer: _Layer = layer, nodes: tuple[Tensor, Tensor] = nodes) -> Tensor:
                message = layer(state.edge[block.rows], nodes, block)
                by_node = message.view(*state.neighbor[block.nodes].shape, message.size(1))
                return self._total(by_node, state, block.nodes)

            h = state.mask(layer.update(h, map_blocks(blocks, total, n), state.count))
            if state.copies:
                state.of_source[number][copy * n : (copy + 1) * n] = sources
        return [*states, (h, h)]

    def reset(self, state: DecoderCache, rows: Tensor) -> None:
        """Return rows ``(R,)`` to their state before decoding, in place."""
        for now, before in zip(state.of_source, state.undecoded, strict=True):
            now[rows] = before[rows % state.num_nodes]

    def decode_step(self, state: DecoderCache, rows: Tensor) -> Tensor:
        """Compute the states ``(R, C)`` of the next rows ``(R,)``, given the types committed so far."""
        node = rows % state.num_nodes
        around = state.neighbor.index_select(0, node) + (rows - node)[:, None]  # (R, K)
        h = state.h.index_select(0, node)
        for layer, of_edge, of_source in zip(self.layers, state.of_edge, state.of_source, strict=True):
            z = of_source.index_select(0, around.flatten()).view(*around.shape, of_source.size(1))  # (R, K, C)
            z.add_(of_edge.index_select(0, node))
            z.add_(layer.target(h)[:, None])
            source = layer.source(h)
            total = self._total(layer.inner(z), state, node)
            h = state.mask(layer.update(h, total, state.count[node]), node)
            of_source.index_copy_(0, rows, source)
        return h

    def commit(self, state: DecoderCache, rows: Tensor, types: Tensor) -> None:
        """Add the embeddings of the chosen types ``(R,)`` to the decoded rows, in place."""
        for of_source, table in zip(state.of_source, state.table, strict=True):
            of_source.index_add_(0, rows, table.index_select(0, types))

    @staticmethod
    def _total(m: Tensor, state: DecoderCache, node: Tensor | slice) -> Tensor:
        """Sum the messages ``(R, K, C)`` of nodes to ``(R, C)``, without padding."""
        if state.there is not None:
            m = m * state.there[node]
        return m.sum(1)


def _from(source_rows: Tensor, sources: int) -> Edges:
    """Return edges to N nodes from rows ``(N, K)`` of a table of ``sources`` rows."""
    n, k = source_rows.shape
    target = torch.arange(n, device=source_rows.device).repeat_interleave(k)
    return Edges(torch.stack([source_rows.flatten(), target]), n, degree=k, num_sources=sources)

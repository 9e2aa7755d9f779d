"""Non-autoregressive (one-shot) prediction of residue types, with the interface of a decoder."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.target import Target
from protgraph.model.build import ProteinModel
from protgraph.nn.decoder import DecoderState
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN

__all__ = ["OneShotDecoder", "predict_logits", "predicts_residue_types"]


@dataclass
class _OneShotState(DecoderState):
    h: Tensor
    copies: int
    num_nodes: int


class OneShotDecoder:
    """Decoder whose rows do not depend on types: ``p(types | backbone) = Π_i p(type of i | backbone)``.

    It has the methods of :class:`protgraph.nn.decoder.Decoder`. Its rows are the logits.
    """

    def start(self, f: Mapping[str, Any], *, copies: int = 1) -> _OneShotState:
        """Return the state, which holds the logits ``h`` ``(N, types)``."""
        return _OneShotState(f["h"], copies, len(f["h"]))

    def teacher_force(self, state: _OneShotState, aatype: Tensor, rank: Tensor, *, copy: int = 0) -> Tensor:
        """Return the logits ``(N, types)``; ``aatype (N,)`` and ``rank (N,)`` have no effect."""
        return state.h

    def masked_rows(self, state: _OneShotState, aatype: Tensor, rank: Tensor, sites: Sequence[Tensor]) -> Tensor:
        """Return the logits ``(R, types)`` of the residues of all sets.

        ``sites`` are ``(M,)`` residues of each set; ``aatype (N,)`` and ``rank (N,)`` have no effect.
        """
        return state.h[torch.cat(list(sites))]

    def reset(self, state: _OneShotState, rows: Tensor) -> None:
        """Do nothing: ``rows (R,)`` do not depend on decoded residues."""

    def decode_step(self, state: _OneShotState, rows: Tensor) -> Tensor:
        """Return the logits ``(R, types)`` of ``rows (R,)``, ``copy · N + node``."""
        return state.h.index_select(0, rows % state.num_nodes)

    def commit(self, state: _OneShotState, rows: Tensor, types: Tensor) -> None:
        """Do nothing: ``rows (R,)`` do not depend on the sampled ``types (R,)``."""


def predicts_residue_types(target: Target) -> bool:
    """Return True if a target is the type of each residue, out of 20 or out of 20 and X."""
    names = tuple(ALPHABET)
    return target.level == "node" and target.kind == "classification" and target.names in (names, names[:UNKNOWN])


def predict_logits(model: ProteinModel, batch: Data) -> dict[str, Tensor]:
    """Return ``{"h": logits (N, types)}`` of a graph or batch with hidden residue types."""
    hidden = copy.copy(batch)
    hidden.aatype = torch.full_like(batch.aatype, UNKNOWN)
    return {"h": model(hidden)["logits"]}

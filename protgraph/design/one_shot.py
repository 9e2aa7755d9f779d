"""Models that tell all residue types at once, in the place where others have a decoder."""

from __future__ import annotations

import copy
from collections.abc import Mapping
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
class _Told(DecoderState):
    h: Tensor
    copies: int
    num_nodes: int


class OneShotDecoder:
    """Rows that no type changes: ``p(types | backbone) = Π_i p(type of i | backbone)``.

    The methods of :class:`protgraph.nn.decoder.Decoder`; its rows are the logits themselves.
    """

    def start(self, f: Mapping[str, Any], *, copies: int = 1) -> _Told:
        return _Told(f["h"], copies, len(f["h"]))

    def teacher_force(self, state: _Told, aatype: Tensor, rank: Tensor, *, copy: int = 0) -> Tensor:
        return state.h

    def reset(self, state: _Told, rows: Tensor) -> None:
        """Do nothing: predictions do not depend on sampled types."""

    def step(self, state: _Told, rows: Tensor) -> Tensor:
        return state.h.index_select(0, rows % state.num_nodes)

    def commit(self, state: _Told, rows: Tensor, types: Tensor) -> None:
        """Do nothing: predictions do not depend on sampled types."""


def predicts_residue_types(target: Target) -> bool:
    """Whether a target is the 20 residue types, or those and X, of each residue."""
    names = tuple(ALPHABET)
    return target.level == "node" and target.kind == "classification" and target.names in (names, names[:UNKNOWN])


def predict_logits(model: ProteinModel, batch: Data) -> dict[str, Tensor]:
    """``{"h": logits (N, types)}`` of a graph or batch whose types are hidden."""
    blind = copy.copy(batch)
    blind.aatype = torch.full_like(batch.aatype, UNKNOWN)
    return {"h": model(blind)["logits"]}

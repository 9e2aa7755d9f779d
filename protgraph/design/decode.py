"""A model up to its decoder, worked out once, and log-probabilities of residue types from there.

Three questions, all answered as ``(N, types)`` log-probabilities: *forced*, each residue from the true types of those
before it in an order; *conditional*, each from all others; *unconditional*, from the backbone alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.design.one_shot import OneShotDecoder, predict_logits, predicts_residue_types
from protgraph.errors import WiringError
from protgraph.featurize.plan import inputs
from protgraph.model.build import ProteinModel
from protgraph.nn.decoder import Decoder, DecoderState
from protgraph.ops import Proteins

__all__ = ["Decoding", "check_design_model", "conditional_log_probs", "teacher_forced_log_probs", "unconditional_log_probs"]


@dataclass(frozen=True, eq=False)
class Decoding:
    """Proteins that are encoded and ready to be decoded.

    Parameters
    ----------
    decoder : Decoder or OneShotDecoder
    head : callable
        Rows ``(R, C)`` of the decoder to logits ``(R, types)``.
    f : mapping
        What the decoder reads, by its local names.
    proteins : Proteins
    aatype : Tensor
        ``(N,)`` types in the structures.
    known : Tensor
        ``(N,)`` bool, which residues have neighbors, that is, a backbone to be decoded from; all without a decoder.
    """

    decoder: Decoder | OneShotDecoder
    head: Callable[[Tensor], Tensor]
    f: Mapping[str, Any]
    proteins: Proteins
    aatype: Tensor
    known: Tensor

    @classmethod
    def of(cls, model: ProteinModel, batch: Data) -> Decoding:
        """Encode a graph or batch; call it without gradients where none are needed.

        Raises
        ------
        WiringError
            See :func:`check_design_model`.
        """
        check_design_model(model)
        if model.decoder is None:
            told, given = predict_logits(model, batch), inputs(batch)
            return cls(
                decoder=OneShotDecoder(),
                head=lambda h: h,
                f=told,
                proteins=given["proteins"],
                aatype=given["aatype"],
                known=torch.ones_like(given["aatype"], dtype=torch.bool),
            )
        last = model.wires[-1]
        local = next(iter(model.head_reads))
        f = model.fields_of(batch)
        for w, layer in zip(model.wires[:-1], model.layers[:-1], strict=True):
            made = layer({here: f[field] for here, field in w.reads.items()})
            f |= {field: made[here] for here, field in w.writes.items()}
        return cls(
            decoder=model.decoder,
            head=lambda h: model.head({local: h})["logits"],
            f={here: f[field] for here, field in last.reads.items()},
            proteins=f["proteins"],
            aatype=f["aatype"],
            known=f[last.reads["edges"]].count > 0,
        )

    def start(self, copies: int = 1) -> DecoderState:
        """A state to decode ``copies`` sequences of every protein from."""
        return self.decoder.start(self.f, copies=copies)


def check_design_model(model: ProteinModel) -> None:
    """That a model tells residue types, by a decoder or all at once.

    Raises
    ------
    WiringError
        It predicts something else, or its head reads more than its decoder's result.
    """
    name = model.spec.name
    if not predicts_residue_types(model.target):
        raise WiringError(
            f"model {name!r} predicts {model.target.name!r}, not the types of residues: it designs nothing"
        )
    if model.decoder is None and len(model.layers) and isinstance(model.layers[-1], Decoder):
        raise WiringError(f"model {name!r}: its head reads {model.head_reads}, not the decoder alone")


def teacher_forced_log_probs(decoding: Decoding, rank: Tensor, aatype: Tensor | None = None) -> Tensor:
    """``log p(type of i | types before i)`` of every residue.

    Parameters
    ----------
    decoding : Decoding
    rank : Tensor
        ``(N,)`` int64 or ``(S, N)`` for several orders.
    aatype : Tensor, optional
        ``(N,)`` or ``(S, N)``; the structures' own by default.

    Returns
    -------
    Tensor
        ``(N, types)`` or ``(S, N, types)``.
    """
    aatype = decoding.aatype if aatype is None else aatype
    several = rank.dim() == 2 or aatype.dim() == 2
    copies = max(len(x) for x in (rank, aatype) if x.dim() == 2) if several else 1
    state = decoding.start(copies=0)
    rank, aatype = rank.expand(copies, -1), aatype.expand(copies, -1)
    each = [
        decoding.head(decoding.decoder.teacher_force(state, a, r)).log_softmax(-1) for a, r in zip(aatype, rank, strict=True)
    ]
    return torch.stack(each) if several else each[0]


def unconditional_log_probs(decoding: Decoding) -> Tensor:
    """``log p(type of i | backbone)``, ``(N, types)``: nobody sees a type."""
    return teacher_forced_log_probs(decoding, torch.zeros_like(decoding.aatype))


def conditional_log_probs(
    decoding: Decoding, rank: Tensor, aatype: Tensor | None = None, *, rows: Tensor | None = None
) -> Tensor:
    """``log p(type of i | backbone, types of all others)``: each residue comes last, others by ``rank``.

    Parameters
    ----------
    decoding : Decoding
    rank : Tensor
        ``(N,)`` int64.
    aatype : Tensor, optional
        ``(N,)``; the structures' own by default.
    rows : Tensor, optional
        ``(R,)`` int64, which residues; all by default. The k-th of every protein are done in one pass.

    Returns
    -------
    Tensor
        ``(R, types)``.
    """
    aatype = decoding.aatype if aatype is None else aatype
    rows = torch.arange(len(aatype), device=aatype.device) if rows is None else rows
    state, batch = decoding.start(copies=0), decoding.proteins.batch
    h = decoding.f["h"].new_empty(len(rows), decoding.f["h"].size(1))
    for chosen in _one_a_protein(batch[rows]):
        last = rank.index_fill(0, rows[chosen], len(rank))
        h[chosen] = decoding.decoder.teacher_force(state, aatype, last)[rows[chosen]]
    return decoding.head(h).log_softmax(-1)


def _one_a_protein(batch: Tensor) -> list[Tensor]:
    """``(R,)`` proteins of rows, ascending or not, to groups of rows with at most one of each protein."""
    order = batch.argsort(stable=True)
    ordered = batch[order]
    first = torch.searchsorted(ordered, ordered)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device) - first
    return [(place == k).nonzero().flatten() for k in range(int(place.max()) + 1 if len(place) else 0)]

"""Encode proteins once up to a model's decoder, and compute log-probabilities of residue types.

Log-probabilities ``(N, types)`` are teacher-forced (given the native types of the residues before each one in a
decoding order), conditional (given the types of all other residues) or unconditional (given the backbone only).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

__all__ = [
    "Decoding",
    "check_design_model",
    "conditional_log_probs",
    "masked_log_probs",
    "teacher_forced_log_probs",
    "unconditional_log_probs",
]


@dataclass(frozen=True, eq=False)
class Decoding:
    """Encoded proteins, ready for decoding.

    Parameters
    ----------
    decoder : Decoder or OneShotDecoder
    head : callable
        Maps rows ``(R, C)`` of the decoder to logits ``(R, types)``.
    fields : mapping
        Fields that the decoder reads, by local name.
    proteins : Proteins
    aatype : Tensor
        ``(N,)`` types in the structures.
    decodable : Tensor
        ``(N,)`` bool, residues with neighbors, i.e. with a complete backbone; all for models without a decoder.
    """

    decoder: Decoder | OneShotDecoder
    head: Callable[[Tensor], Tensor]
    fields: Mapping[str, Any]
    proteins: Proteins
    aatype: Tensor
    decodable: Tensor

    @classmethod
    def of(cls, model: ProteinModel, batch: Data) -> Decoding:
        """Encode a graph or batch; use ``torch.no_grad`` where no gradients are needed.

        Raises
        ------
        WiringError
            See :func:`check_design_model`.
        """
        check_design_model(model)
        if model.decoder is None:
            features = inputs(batch)
            return cls(
                decoder=OneShotDecoder(),
                head=lambda h: h,
                fields=predict_logits(model, batch),
                proteins=features["proteins"],
                aatype=features["aatype"],
                decodable=torch.ones_like(features["aatype"], dtype=torch.bool),
            )
        last = model.wires[-1]
        local = next(iter(model.head_reads))
        f = model.fields_of(batch)
        for w, layer in zip(model.wires[:-1], model.layers[:-1], strict=True):
            out = layer({name: f[field] for name, field in w.reads.items()})
            f |= {field: out[name] for name, field in w.writes.items()}
        return cls(
            decoder=model.decoder,
            head=lambda h: model.head({local: h})["logits"],
            fields={name: f[field] for name, field in last.reads.items()},
            proteins=f["proteins"],
            aatype=f["aatype"],
            decodable=f[last.reads["edges"]].count > 0,
        )

    def start(self, copies: int = 1) -> DecoderState:
        """Return the decoder state for ``copies`` sequences of every protein."""
        return self.decoder.start(self.fields, copies=copies)


def check_design_model(model: ProteinModel) -> None:
    """Check that a model predicts residue types, with a decoder or in one shot.

    Raises
    ------
    WiringError
        The model predicts another target, or its head reads more than the decoder's output.
    """
    name = model.spec.name
    if not predicts_residue_types(model.target):
        raise WiringError(
            f"model {name!r} predicts {model.target.name!r}. Design requires a model that predicts residue types."
        )
    if model.decoder is None and len(model.layers) and isinstance(model.layers[-1], Decoder):
        raise WiringError(
            f"head of model {name!r} reads {model.head_reads}. Design requires a head that reads the decoder only."
        )


def teacher_forced_log_probs(decoding: Decoding, rank: Tensor, aatype: Tensor | None = None) -> Tensor:
    """Compute ``log p(type of i | types before i)`` of every residue (teacher forcing).

    Parameters
    ----------
    decoding : Decoding
    rank : Tensor
        ``(N,)`` int64 or ``(S, N)`` for several orders.
    aatype : Tensor, optional
        ``(N,)`` or ``(S, N)``; the native types by default.

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
    rows = [decoding.decoder.teacher_force(state, a, r) for a, r in zip(aatype, rank, strict=True)]
    log_probs = [decoding.head(h).log_softmax(-1) for h in rows]
    return torch.stack(log_probs) if several else log_probs[0]


def unconditional_log_probs(decoding: Decoding) -> Tensor:
    """Compute ``log p(type of i | backbone)``, ``(N, types)``."""
    return teacher_forced_log_probs(decoding, torch.zeros_like(decoding.aatype))


def conditional_log_probs(
    decoding: Decoding, rank: Tensor, aatype: Tensor | None = None, *, rows: Tensor | None = None
) -> Tensor:
    """Compute ``log p(type of i | backbone, types of all others)``: each residue is decoded last, others by ``rank``.

    Parameters
    ----------
    decoding : Decoding
    rank : Tensor
        ``(N,)`` int64.
    aatype : Tensor, optional
        ``(N,)``; the native types by default.
    rows : Tensor, optional
        ``(R,)`` int64, residues to compute; all by default.

    Returns
    -------
    Tensor
        ``(R, types)``.
    """
    rows = torch.arange(len(decoding.aatype), device=decoding.aatype.device) if rows is None else rows
    return masked_log_probs(decoding, rank, rows.split(1), aatype)


def masked_log_probs(decoding: Decoding, rank: Tensor, sites: Sequence[Tensor], aatype: Tensor | None = None) -> Tensor:
    """Compute ``log p(type of i | backbone, types of all residues outside of the set of i)``.

    Parameters
    ----------
    decoding : Decoding
    rank : Tensor
        ``(N,)`` int64, decoding order of the residues outside of a set.
    sites : sequence of Tensor
        ``(M,)`` int64 each, sets of residues that are masked together.
    aatype : Tensor, optional
        ``(N,)``; the native types by default.

    Returns
    -------
    Tensor
        ``(R, types)``, set after set.
    """
    aatype = decoding.aatype if aatype is None else aatype
    if not len(sites):
        return decoding.head(decoding.fields["h"][:0]).log_softmax(-1)
    h = decoding.decoder.masked_rows(decoding.start(copies=0), aatype, rank, sites)
    return decoding.head(h).log_softmax(-1)

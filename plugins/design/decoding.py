"""Encode proteins up to a model's decoder, order their residues, and compute log-probabilities of residue types.

Log-probabilities ``(N, types)`` are teacher-forced (given the native types of the residues before each one in a
decoding order), conditional (given the types of all other residues) or unconditional (given the backbone only). In a
decoding order, fixed residues come first, then designed ones at random, from N to C terminus, or in tied groups.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data import Target, collate
from protgraph.errors import OptionError, WiringError
from protgraph.model import ProteinModel
from protgraph.nn import Decoder, DecoderState
from protgraph.ops import Proteins
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.residues import UNKNOWN
from protgraph.task import BACKBONE_ALONE

__all__ = [
    "Decoding",
    "OneShotDecoder",
    "check_design_model",
    "conditional_log_probs",
    "decoding_ranks",
    "encode",
    "encoded_graphs",
    "forward_order",
    "masked_log_probs",
    "noisy_copies",
    "predicts_residue_types",
    "random_decoding_order",
    "random_deviates",
    "teacher_forced_log_probs",
    "tie_order",
    "unconditional_log_probs",
]

_SEEDS = 2**63  # number of seeds of torch.Generator


@dataclass
class _OneShotState(DecoderState):
    h: Tensor
    copies: int
    num_nodes: int


class OneShotDecoder:
    """Decoder whose rows do not depend on types: ``p(types | backbone) = Π_i p(type of i | backbone)``.

    It has the methods of :class:`protgraph.nn.Decoder`. Its rows are the logits.
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
            hidden = copy.copy(batch)
            hidden.aatype = torch.full_like(batch.aatype, UNKNOWN)
            return cls(
                decoder=OneShotDecoder(),
                head=lambda h: h,
                fields={"h": model(hidden)["logits"]},  # (N, types)
                proteins=Proteins.from_graph(batch),
                aatype=batch.aatype,
                decodable=torch.ones_like(batch.aatype, dtype=torch.bool),
            )
        last = model.wires[-1]
        local = next(iter(model.head_reads))
        f = model.fields_of(batch)
        for w, layer in model.steps[:-1]:
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


@torch.no_grad()
def encode(model: ProteinModel, proteins: Sequence[Residues], *, known: Sequence[np.ndarray] = ()) -> Decoding:
    """Featurize proteins with backbone atoms only, and run the model up to its decoder.

    Featurizers also use the side chains of the residues in the masks ``known`` ``(N,)``, one per protein, if given.
    """
    return Decoding.of(model, encoded_graphs(model, proteins, known=known))


def encoded_graphs(model: ProteinModel, proteins: Sequence[Residues], *, known: Sequence[np.ndarray] = ()) -> Data:
    """Return the batch of graphs that :func:`encode` runs the model on; ``known`` has a mask ``(N,)`` per protein."""
    device = next(model.parameters()).device
    visible = [r.hide(BACKBONE_ALONE) for r in proteins]
    if known:
        with_sidechains = [r.hide(BACKBONE_ALONE - {"sidechain"}) for r in proteins]
        visible = [r.without_sidechains(~rows) for r, rows in zip(with_sidechains, known, strict=True)]
    graphs = [model.plan.precompute(v, aatype=r.aatype) for v, r in zip(visible, proteins, strict=True)]
    return collate(graphs).to(device)


def noisy_copies(proteins: Sequence[Residues], noise: float, seed: int, copy: int = 0) -> list[Residues]:
    """Return proteins with Gaussian coordinate noise (standard deviation, Å), drawn for each seed and copy."""
    if not noise:
        return list(proteins)
    return [r.with_noise(noise, seed=seed * 1_000_003 + copy) for r in proteins]


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


def random_deviates(sizes: Sequence[int], copies: Iterable[int], *, seed: int) -> tuple[Tensor, Tensor]:
    """Return normal deviates for orders and uniform deviates for types, both ``(S, N)`` float64, on the CPU.

    ``copies`` are sequence numbers. The deviates of a sequence of a protein do not depend on what else is decoded.
    """
    normal, uniform = [], []
    for number in copies:
        per_protein = []
        for size in sizes:
            generator = torch.Generator().manual_seed((seed * 1_000_003 + number) % _SEEDS)
            noise = torch.randn(size, generator=generator, dtype=torch.float64)
            per_protein.append((noise, torch.rand(size, generator=generator, dtype=torch.float64)))
        normal.append(torch.cat([a for a, _ in per_protein]))
        uniform.append(torch.cat([b for _, b in per_protein]))
    return torch.stack(normal), torch.stack(uniform)


def random_decoding_order(designed: Tensor, proteins: Proteins, noise: Tensor) -> Tensor:
    """Return nodes in decoding order: in every protein fixed ones by ``|noise|``, then designed ones by ``|noise|``.

    Parameters
    ----------
    designed : Tensor
        ``(N,)`` bool, designed nodes.
    proteins : Proteins
    noise : Tensor
        ``(N,)`` or ``(S, N)`` normal deviates.

    Returns
    -------
    Tensor
        Shape of ``noise``, int64: protein after protein, the nodes of each in decoding order.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187 (random decoding order).

    Notes
    -----
    The reference program sorts by ``(designed + 1e-4) |noise|``. The orders differ only if a designed residue has a
    deviate near 0: there it comes before fixed ones.
    """
    return _fixed_first(noise.abs().argsort(dim=-1, stable=True), designed, proteins)


def forward_order(designed: Tensor, proteins: Proteins, copies: int = 1) -> Tensor:
    """Return ``(copies, N)`` int64: fixed nodes first, then designed ones, both in node order."""
    nodes = torch.arange(len(designed), device=designed.device)
    return _fixed_first(nodes, designed, proteins).expand(copies, -1)


def decoding_ranks(order: Tensor, proteins: Proteins) -> Tensor:
    """Return the position of each node in its protein's decoding order, ``(S, N)`` or ``(N,)`` like ``order``."""
    position = torch.arange(order.size(-1), device=order.device) - proteins.ptr[:-1][proteins.batch]
    return torch.empty_like(order).scatter_(-1, order, position.expand_as(order).contiguous())


def tie_order(order: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
    """Return an order ``(N,)`` with the nodes of each group next to each other, at the position of the first of them.

    Groups are disjoint, with nodes in decoding order.
    """
    group_of = {}
    for group in groups:
        for node in group:
            if node in group_of:
                raise OptionError(f"node {node} is in two tied groups. Each residue can be in one.")
            group_of[node] = group
    tied: dict[int, None] = {}
    for node in order.tolist():
        tied |= dict.fromkeys(group_of.get(node, (node,)))
    return torch.tensor(list(tied), device=order.device)


def _fixed_first(order: Tensor, designed: Tensor, proteins: Proteins) -> Tensor:
    """Sort nodes ``(…, N)`` by protein, then fixed before designed; equal ones keep their order."""
    for key in (designed.long(), proteins.batch):
        order = order.gather(-1, key[order].argsort(dim=-1, stable=True))
    return order

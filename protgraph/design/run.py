"""Proteins in, sequences and scores out, several proteins at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph import collate
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding, conditional, forced, unconditional
from protgraph.design.order import random_order, ranks
from protgraph.design.sample import Sampled, deviates, sample
from protgraph.design.wish import Wish
from protgraph.errors import OptionError
from protgraph.model.build import GraphModel
from protgraph.structure import ALPHABET, Residues
from protgraph.task.builtin import BACKBONE_ALONE

__all__ = ["MODES", "Design", "Scores", "design", "letters_of", "score"]

#: How residues are scored, and what each one is told.
MODES = {
    "forced": "the backbone and the types before it, in random orders",
    "conditional": "the backbone and the types of all others",
    "unconditional": "the backbone alone",
}
BATCH_RESIDUES = 1024  # sequences × residues that are decoded at a time; 1 MB a residue while it is encoded


@dataclass(frozen=True, eq=False)
class Design:
    """S sequences for one protein.

    Parameters
    ----------
    residues : Residues
    designed : ndarray
        ``(N,)`` bool, which residues were chosen.
    aatype : ndarray
        ``(S, N)`` int64.
    log_probs : ndarray
        ``(S, N, types)``, what the model said of each residue from those before it.
    score, global_score : ndarray
        ``(S,)`` mean of ``-log p`` over the designed residues, and over all with a backbone.
    native_score, native_global_score : float
        The same of the sequence in the structure, in the order of the first design.
    """

    residues: Residues
    designed: np.ndarray
    aatype: np.ndarray
    log_probs: np.ndarray
    score: np.ndarray
    global_score: np.ndarray
    native_score: float
    native_global_score: float

    @property
    def recovery(self) -> np.ndarray:
        """``(S,)`` share of designed residues that have the type in the structure."""
        return (self.aatype == self.residues.aatype)[:, self.designed].mean(1)


@dataclass(frozen=True, eq=False)
class Scores:
    """How likely one sequence of one protein is.

    Parameters
    ----------
    residues : Residues
    aatype : ndarray
        ``(N,)`` int64, the types that are scored.
    log_probs : ndarray
        ``(N, types)``; NaN for residues without a whole backbone.
    name : str
        Of the sequence; "" for the structure's own.
    """

    residues: Residues
    aatype: np.ndarray
    log_probs: np.ndarray
    name: str = ""

    @property
    def each(self) -> np.ndarray:
        """``(N,)`` log-probability of each residue's type; NaN where there is none."""
        known = self.aatype < self.log_probs.shape[1]
        place = np.where(known, self.aatype, 0)[:, None]
        return np.where(known, np.take_along_axis(self.log_probs, place, 1)[:, 0], np.nan)

    @property
    def score(self) -> float:
        """Mean of ``-log p`` over the residues that have one."""
        return float(-np.nanmean(self.each))


def design(
    model: GraphModel,
    proteins: Iterable[Residues],
    wish: Wish | None = None,
    *,
    copies: int = 1,
    temperature: float = 0.1,
    seed: int = 0,
    noise: float = 0.0,
    batch_residues: int = BATCH_RESIDUES,
) -> Iterator[Design]:
    """Draw sequences for proteins.

    Parameters
    ----------
    model : GraphModel
        With a decoder; :func:`protgraph.model.pretrained` gives one.
    proteins : iterable of Residues
    wish : Wish, optional
    copies : int
        Sequences of each protein.
    temperature : float
        What logits are divided by; 0 takes the likeliest type.
    seed : int
        The same one gives the same sequences, however many proteins are decoded together.
    noise : float
        Å, standard deviation of what is added to every coordinate.
    batch_residues : int
        Sequences × residues that are decoded at a time.
    """
    wish = wish or Wish()
    for some in _grouped(proteins, max(batch_residues // copies, 1)):
        decoding = _encode(model, some, noise, seed)
        types = decoding.head(decoding.f["h"][:1]).size(1)
        constraints = _joined([wish.constraints(r, types) for r in some], types, decoding.aatype.device)
        made = sample(decoding, constraints, copies=copies, temperature=temperature, seed=seed)
        yield from _designs(some, decoding, constraints, made)


def _designs(
    some: Sequence[Residues], decoding: Decoding, constraints: Constraints, made: Sampled
) -> Iterator[Design]:
    proteins, known = decoding.proteins, decoding.known
    chosen = constraints.designed & known
    with torch.no_grad():
        native = forced(decoding, ranks(made.order[0], proteins))[None]
    own = Sampled(decoding.aatype[None], native, native, made.order[:1])
    scores = [m.score(mask, proteins).double().cpu().numpy() for m in (made, own) for mask in (chosen, known)]
    start = 0
    for b, residues in enumerate(some):
        rows = slice(start, start + len(residues))
        start += len(residues)
        yield Design(
            residues=residues,
            designed=chosen[rows].cpu().numpy(),
            aatype=made.aatype[:, rows].cpu().numpy(),
            log_probs=made.log_probs[:, rows].cpu().numpy(),
            score=scores[0][:, b],
            global_score=scores[1][:, b],
            native_score=float(scores[2][0, b]),
            native_global_score=float(scores[3][0, b]),
        )


def score(
    model: GraphModel,
    proteins: Iterable[Residues],
    *,
    mode: str = "forced",
    orders: int = 1,
    seed: int = 0,
    noise: float = 0.0,
    sequences: Sequence[tuple[str, np.ndarray]] = (),
    batch_residues: int = BATCH_RESIDUES,
) -> Iterator[Scores]:
    """Log-probabilities of the types of every residue.

    Parameters
    ----------
    model : GraphModel
        With a decoder.
    proteins : iterable of Residues
    mode : {"forced", "conditional", "unconditional"}
        What each residue is told; see :data:`MODES`.
    orders : int
        Random orders whose log-probabilities are averaged; of no use to "unconditional".
    seed : int
        Of the orders.
    noise : float
        Å, standard deviation of what is added to every coordinate.
    sequences : sequence of (str, ndarray)
        Names and types ``(N,)`` to score in place of those in the structures, which then all have N residues.
    batch_residues : int
        Residues that are encoded at a time.

    Raises
    ------
    OptionError
        An unknown mode, or a sequence of another length.
    """
    if mode not in MODES:
        raise OptionError(f"mode={mode!r} is none of {', '.join(MODES)}")
    if orders < 1:
        raise OptionError(f"orders={orders}: 1 order or more")
    for some in _grouped(proteins, batch_residues):
        decoding = _encode(model, some, noise, seed)
        everything = torch.ones_like(decoding.known)
        drawn = deviates(decoding.proteins, orders, seed=seed)[0].to(decoding.aatype.device)
        rank = ranks(random_order(everything, decoding.proteins, drawn), decoding.proteins)
        for name, given in [(n, _fitting(n, t, some)) for n, t in sequences] or [("", None)]:
            aatype = decoding.aatype if given is None else given.to(rank.device)
            log_probs = _log_probs(decoding, mode, rank, aatype).double()
            log_probs[~decoding.known] = torch.nan
            for residues, types, told in zip(
                some, decoding.proteins.split(aatype), decoding.proteins.split(log_probs), strict=True
            ):
                yield Scores(residues, types.cpu().numpy(), told.cpu().numpy(), name)


@torch.no_grad()
def _log_probs(decoding: Decoding, mode: str, rank: Tensor, aatype: Tensor) -> Tensor:
    if mode == "unconditional":
        return unconditional(decoding)
    one = forced if mode == "forced" else conditional
    return sum(one(decoding, r, aatype) for r in rank) / len(rank)


def _fitting(name: str, types: np.ndarray, some: Sequence[Residues]) -> Tensor:
    for residues in some:
        if len(types) != len(residues):
            raise OptionError(
                f"sequence {name!r} has {len(types)} residues; {residues.name} has {len(residues)} with a CA: "
                f"{residues.sequence[:30]}…"
            )
    return torch.from_numpy(np.concatenate([types] * len(some)))


@torch.no_grad()
def _encode(model: GraphModel, some: Sequence[Residues], noise: float, seed: int) -> Decoding:
    seen = [r.with_noise(noise, seed=seed) if noise else r for r in some]
    device = next(model.parameters()).device
    graphs = [model.plan.stored(r.hide(BACKBONE_ALONE), aatype=r.aatype) for r in seen]
    return Decoding.of(model, collate(graphs).to(device))


def _grouped(proteins: Iterable[Residues], most: int) -> Iterator[list[Residues]]:
    """In groups of at most so many residues, in order; a larger one goes alone."""
    held: list[Residues] = []
    for residues in proteins:
        if held and sum(map(len, held)) + len(residues) > most:
            yield held
            held = []
        held.append(residues)
    if held:
        yield held


def _joined(each: Sequence[Constraints], types: int, device: torch.device) -> Constraints:
    """The constraints of several proteins as those of one batch."""
    sizes = [len(c.designed) for c in each]

    def tables(name: str) -> Tensor | None:
        given = [getattr(c, name) for c in each]
        if all(g is None for g in given):
            return None
        like = next(g for g in given if g is not None)
        blank = [like.new_zeros(types) if g is None else g for g in given]
        return torch.cat([g.expand(n, -1) for g, n in zip(blank, sizes, strict=True)]).to(device)

    weights = [c.pssm_weight for c in each]
    starts = np.cumsum([0, *sizes])
    return Constraints(
        designed=torch.cat([c.designed for c in each]).to(device),
        omit=tables("omit"),
        bias=tables("bias"),
        pssm=tables("pssm"),
        pssm_weight=None if weights[0] is None else torch.cat(weights).to(device),
        groups=[[node + int(start) for node in g] for c, start in zip(each, starts, strict=False) for g in c.groups],
    )


def letters_of(aatype: np.ndarray) -> str:
    """One-letter codes."""
    return "".join(ALPHABET[t] for t in aatype)

"""Proteins in batches: encoded together, with the constraints of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import accumulate
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.protein_graph import collate
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding
from protgraph.model.build import ProteinModel
from protgraph.structure import Residues
from protgraph.task.builtin import BACKBONE_ALONE

__all__ = ["encode", "grouped", "merge_constraints", "noisy"]

T = TypeVar("T")


@torch.no_grad()
def encode(model: ProteinModel, some: Sequence[Residues], *, known: Sequence[np.ndarray] = ()) -> Decoding:
    """Proteins up to the decoder; featurizers see of each what is known before its sequence is.

    Where ``known`` ``(N,)`` bool is given for each, side chains of these residues are seen too.
    """
    device = next(model.parameters()).device
    seen = [r.hide(BACKBONE_ALONE) for r in some]
    if known:
        shown = [r.hide(BACKBONE_ALONE - {"sidechain"}) for r in some]
        seen = [r.without_sidechains(~rows) for r, rows in zip(shown, known, strict=True)]
    graphs = [model.plan.precompute(shows, aatype=r.aatype) for shows, r in zip(seen, some, strict=True)]
    return Decoding.of(model, collate(graphs).to(device))


def noisy(some: Sequence[Residues], noise: float, seed: int, copy: int = 0) -> list[Residues]:
    """Proteins with noise of so many Å on every coordinate; each seed and each copy has its own."""
    return [r.with_noise(noise, seed=seed * 1_000_003 + copy) for r in some] if noise else list(some)


def grouped(items: Iterable[T], most: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """In groups of at most so many residues, in order; a larger one goes alone."""
    held: list[T] = []
    for item in items:
        if held and sum(map(size, held)) + size(item) > most:
            yield held
            held = []
        held.append(item)
    if held:
        yield held


def merge_constraints(each: Sequence[Constraints], device: torch.device) -> Constraints:
    """The constraints of several proteins as those of one batch."""
    sizes = [len(c.designed) for c in each]
    starts = list(accumulate(sizes, initial=0))
    wanted = {}
    for name in (f.name for f in fields(Constraints) if f.name not in ("groups", "designed")):
        given = [getattr(c, name) for c in each]
        like = next((g for g in given if g is not None), None)
        if like is not None:
            wanted[name] = torch.cat([_rows(name, g, n, like) for g, n in zip(given, sizes, strict=True)]).to(device)
    return Constraints(
        designed=torch.cat([c.designed for c in each]).to(device),
        groups=[[node + start for node in g] for c, start in zip(each, starts, strict=False) for g in c.groups],
        **wanted,
    )


def _rows(name: str, table: Tensor | None, n: int, like: Tensor) -> Tensor:
    """The rows of n residues; where a protein has no such wish, those that wish nothing."""
    if name in ("pssm_weight", "tie_weight"):
        return like.new_full((n,), float(name == "tie_weight")) if table is None else table
    return like.new_zeros(n, like.size(-1)) if table is None else table.expand(n, -1)

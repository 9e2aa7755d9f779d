"""Encode several proteins together, and merge their constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.graph.protein_graph import collate
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding
from protgraph.model.build import ProteinModel
from protgraph.structure import Residues
from protgraph.task.builtin import BACKBONE_ALONE

__all__ = ["encode", "encoded_graphs", "merge_constraints", "noisy_copies"]


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


def merge_constraints(each: Sequence[Constraints], device: torch.device) -> Constraints:
    """Return the constraints of a batch from those of its proteins."""
    sizes = [len(c.designed) for c in each]
    starts = list(accumulate(sizes, initial=0))
    merged = {}
    for name in (f.name for f in fields(Constraints) if f.name not in ("groups", "designed")):
        tables = [getattr(c, name) for c in each]
        like = next((table for table in tables if table is not None), None)
        if like is not None:
            merged[name] = torch.cat([_rows(name, t, n, like) for t, n in zip(tables, sizes, strict=True)]).to(device)
    return Constraints(
        designed=torch.cat([c.designed for c in each]).to(device),
        groups=[[node + start for node in g] for c, start in zip(each, starts, strict=False) for g in c.groups],
        **merged,
    )


def _rows(name: str, table: Tensor | None, n: int, like: Tensor) -> Tensor:
    """Return the rows of n residues of one protein, with neutral values where it has no such constraint."""
    if name in ("pssm_weight", "tie_weight"):
        return like.new_full((n,), float(name == "tie_weight")) if table is None else table
    return like.new_zeros(n, like.size(-1)) if table is None else table.expand(n, -1)

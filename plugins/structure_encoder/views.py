"""Corruption and loss of ``multiview_contrast``: two parts of each protein, whose vectors are to be alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from protgraph_plugins.structure_encoder.removed_edges import keep_edges
from torch import Generator, Tensor, nn
from torch_geometric.data import Data

from protgraph.data.graph import FieldSpec, register_field
from protgraph.errors import FieldError, OptionError
from protgraph.nn import Head, invariant_width, invariants, invariants_are_chiral
from protgraph.ops import Proteins
from protgraph.task import SplitPredictions, as_metric

if TYPE_CHECKING:
    from protgraph.data.datasets import Target

__all__ = ["TEMPERATURE", "VECTOR", "TwoViews", "ViewHead", "contrastive_loss", "retrieval"]
ENTRY_POINTS = {"protgraph.heads": {"two_views": "ViewHead"}, "protgraph.metrics": {"retrieval": "retrieval"}}

TEMPERATURE = 0.07
VECTOR = 128  # width of a projected view
_MARGIN = 0.3  # least part of a protein in a view
_EQUAL = 1e-9  # cosines that differ by less are equal

register_field(
    FieldSpec("second_view", "node", "0e", "bool", shape=(), doc="True for residues of the second view of a protein")
)


@dataclass(frozen=True)
class TwoViews:
    """Cut the sequence of each protein at a random place: the parts are its two views, without edges between them.

    Parameters
    ----------
    removed : float
        Probability that another edge is removed.

    Notes
    -----
    The task is for layers that pass messages along edges: attention between all residues would see both views.

    References
    ----------
    Zhang et al. 2022, arXiv:2203.06125, sec. 4.1 (subsequence cropping, random edge masking). There the views are drawn
    independently and may overlap; here they never do, so that common residues cannot be recognized.
    """

    removed: float = 0.15

    def __post_init__(self) -> None:
        if not 0 <= self.removed < 1:
            raise OptionError(f"TwoViews: removed = {self.removed}. Use a probability from 0, below 1.")

    def __call__(self, graph: Data, generator: Generator) -> tuple[Data, Tensor]:
        """Return the graph or batch with the field ``second_view (N,)``, and labels ``(B, 2 · VECTOR)``.

        The labels are one random vector per protein, twice: predicting them has the least loss, as any other vectors
        that are the same for both views.
        """
        if "edge_index" not in graph:
            raise FieldError("multiview_contrast: the graph has no edges. Use a model with edges, e.g. of 'knn'.")
        proteins = Proteins.from_graph(graph)
        device = graph.edge_index.device
        size = torch.tensor(proteins.sizes, device=device)
        chance = torch.rand(len(size), generator=generator, device=device)
        second = (size * (_MARGIN + (1 - 2 * _MARGIN) * chance)).long()  # (B,) first residue of the second view
        place = torch.arange(graph.num_nodes, device=device) - (size.cumsum(0) - size)[proteins.batch]
        view = place >= second[proteins.batch]

        def is_kept(index: Tensor) -> Tensor:
            source, target = index
            stays = torch.rand(len(source), generator=generator, device=device) >= self.removed
            return (view[source] == view[target]) & (stays | (source == target))

        shown = keep_edges(graph, is_kept)
        shown.second_view = view
        code = torch.randn(len(size), VECTOR, generator=generator, device=device)
        return shown, torch.cat([code, code], 1)


def contrastive_loss(logits: Tensor, y: Tensor) -> Tensor:
    """Compute the normalized temperature-scaled cross-entropy of two views of each protein, a scalar.

    ``−log(exp(s(a_p, b_p) / τ) / Σ_q exp(s(a_p, z_q) / τ))`` with the cosine s, mean over the views a of all proteins
    p; z_q are all other views of the batch. 0 for a single protein.

    Parameters
    ----------
    logits : Tensor
        ``(P, 2 · D)``, the vectors of the two views.
    y : Tensor
        ``(P, C)``, any; proteins with NaN are left out.

    References
    ----------
    Chen et al. 2020, arXiv:2002.05709, eq. 1.
    """
    logits = logits[~y.isnan().any(1)]
    if len(logits) < 2:
        return 0 * logits.sum()
    z = nn.functional.normalize(torch.cat(logits.chunk(2, 1)), dim=1)  # (2 P, D)
    similarity = z @ z.t() / TEMPERATURE
    similarity = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), -torch.inf)
    other = torch.arange(len(z), device=z.device).roll(len(logits))
    return nn.functional.cross_entropy(similarity, other)


@as_metric("max")
def retrieval(o: SplitPredictions) -> float:
    """Fraction of proteins whose second view is the nearest to the first among all second views, by cosine.

    Of several equally near ones each counts as the nearest with the same probability.
    """
    views = o.logits.double().view(len(o.logits), 2, -1)
    first, second = nn.functional.normalize(views, dim=2).unbind(1)
    cosine = first @ second.t()
    own = cosine.diagonal()[:, None]
    is_nearest = (cosine <= own + _EQUAL).all(1)
    equally_near = ((cosine - own).abs() <= _EQUAL).sum(1)
    return float((is_nearest / equally_near).mean())


class ViewHead(Head):
    """Projected mean vectors of the two views of a protein: ``W₂ g(W₁ mean(x) + b₁) + b₂`` of each.

    Parameters
    ----------
    target : Target
        Its size is twice the width of a projected vector.
    hidden : int
        Width of the hidden layer.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps, used through invariants; ``second_view`` ``(N,)`` bool, from the task;
    ``proteins``.
    Writes: ``logits`` ``(B, 2 · size)``, the vector of the first view, then that of the second.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "second_view", "proteins")
    level = "graph"
    task_fields: ClassVar[tuple[str, ...]] = ("second_view",)

    def __init__(self, fields: Mapping[str, FieldSpec], target: Target, *, hidden: int = 128) -> None:
        super().__init__(fields, target)
        width = invariant_width(fields["h"])
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, target.size // 2))
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "graph", f"{target.size}x0e", chiral=chiral))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits`` ``(B, 2 · size)``; see Notes."""
        x, proteins = invariants(f["h"], self.fields["h"]), f["proteins"]
        projected = []
        for is_member in (~f["second_view"], f["second_view"]):
            weight = is_member[:, None].to(x.dtype)
            mean = proteins.sum(x * weight) / proteins.sum(weight).clamp(min=1)
            projected.append(self.mlp(mean))
        return {"logits": torch.cat(projected, 1)}

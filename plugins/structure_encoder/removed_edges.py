"""Corruption of ``masked_geometry``: random walks along edges, which are removed, and their geometry."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Generator, Tensor, nn
from torch_geometric.data import Data

from protgraph.data.graph import FieldSpec, edge_set_of, field, node_sets_of, register_field
from protgraph.errors import FieldError, OptionError, WiringError
from protgraph.nn import Head, invariant_width, invariants, invariants_are_chiral

if TYPE_CHECKING:
    from protgraph.data.datasets import Target

__all__ = ["RemovedEdges", "WalkHead", "keep_edges", "remove_edges", "walk_geometry"]
ENTRY_POINTS = {"protgraph.heads": {"walk": "WalkHead"}}

register_field(
    FieldSpec(
        "walk", "node", "index", "int64", shape=(4,), doc="four residues, each a neighbor of the one before; own: none"
    )
)


@dataclass(frozen=True)
class RemovedEdges:
    """Choose residues, walk three edges from each, remove these edges, and return the geometry of the walks as labels.

    Parameters
    ----------
    fraction : float
        Probability that a walk starts at a residue.

    References
    ----------
    Zhang et al. 2022, arXiv:2203.06125, sec. 4.2 (prediction of distances, angles and dihedrals of removed edges).
    """

    fraction: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise OptionError(f"RemovedEdges: fraction = {self.fraction}. Use a number above 0, at most 1.")

    def __call__(self, graph: Data, generator: Generator) -> tuple[Data, Tensor]:
        """Return the graph or batch without the edges of the walks, and the labels ``(N, 4)`` float32.

        Labels are those of :func:`walk_geometry`, NaN at residues without a walk. The field ``walk`` ``(N, 4)`` has the
        residues of each walk, the residue itself four times where there is none.
        """
        if "edge_index" not in graph:
            raise FieldError("masked_geometry: the graph has no edges. Use a model with edges, e.g. of 'knn'.")
        nodes = torch.arange(graph.num_nodes, device=graph.edge_index.device)
        starts = torch.rand(len(nodes), generator=generator, device=nodes.device) < self.fraction
        steps = [nodes]
        for _ in range(3):
            steps.append(_random_neighbor(graph, steps[-1], generator))
        i, j, k, t = steps
        is_walk = starts & (j != i) & (k != j) & (t != k) & (k != i) & (t != j) & (t != i)
        walk = torch.where(is_walk[:, None], torch.stack(steps, 1), nodes[:, None])
        labels = walk_geometry(graph.pos, walk).masked_fill(~is_walk[:, None], torch.nan)
        ends = walk[is_walk]
        removed = torch.cat([ends[:, :2], ends[:, 1:3], ends[:, 2:]])  # (3 W, 2)
        shown = remove_edges(graph, removed)
        shown.walk = walk
        return shown, labels


def _random_neighbor(graph: Data, nodes: Tensor, generator: Generator) -> Tensor:
    """Return a random source of an edge to each node, other than the node itself; the node if there is none."""
    source, target = graph.edge_index
    is_loop = source == target
    source, target = source[~is_loop], target[~is_loop]
    count = torch.bincount(target, minlength=graph.num_nodes)
    first = count.cumsum(0) - count
    chance = torch.rand(len(nodes), generator=generator, device=nodes.device)
    place = first[nodes] + (chance * count[nodes]).long()
    return torch.where(count[nodes] > 0, source[place.clamp(max=max(len(source) - 1, 0))], nodes)


def remove_edges(graph: Data, pairs: Tensor) -> Data:
    """Return a graph or batch without the edges between pairs of nodes ``(P, 2)``, in both directions."""
    n = graph.num_nodes
    keys = torch.cat([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]])
    return keep_edges(graph, lambda index: ~torch.isin(index[0] * n + index[1], keys))


def keep_edges(graph: Data, is_kept: Callable[[Tensor], Tensor]) -> Data:
    """Return a graph or batch with some of the edges of each edge set, and with their fields.

    ``is_kept``: from the edges ``(2, E)`` of a set to a mask ``(E,)``.
    """
    if sets := node_sets_of(graph.keys()):
        raise WiringError(f"edges of {sets[0]!r} cannot be removed. Allowed: models without node sets.")
    index_names = {edge_set_of(name): name for name in graph.keys()}  # noqa: SIM118 - graphs are no dicts
    masks = {edges: is_kept(graph[name]) for edges, name in index_names.items() if edges is not None}
    reduced = copy.copy(graph)
    for name in list(graph.keys()):
        edges = edge_set_of(name)
        if edges is not None:
            reduced[name] = graph[name][:, masks[edges]]
        elif name != "y" and graph.is_edge_attr(name):
            reduced[name] = graph[name][masks[field(name).on or "edges"]]
    if "degree" in reduced:
        if "batch" in reduced:
            reduced.max_degree = reduced.degree  # a bound: counting would wait for the device
        del reduced.degree
    return reduced


def walk_geometry(pos: Tensor, walk: Tensor) -> Tensor:
    """Return distance, angle and dihedral of walks i, j, k, t.

    Parameters
    ----------
    pos : Tensor
        ``(N, 3)`` Å, positions of CA.
    walk : Tensor
        ``(N, 4)`` int64.

    Returns
    -------
    Tensor
        ``(N, 4)``: ``|x_i − x_j|`` in Å, cosine of the angle at j, and cosine and sine of the dihedral about j–k; 0 for
        those that are undefined.
    """
    i, j, k, t = (pos[walk[:, step]] for step in range(4))
    first, middle, last = i - j, k - j, t - k
    distance = torch.linalg.vector_norm(first, dim=1)
    length = torch.linalg.vector_norm(middle, dim=1)
    tiny = torch.finfo(pos.dtype).tiny
    cosine = (first * middle).sum(1) / (distance * length).clamp(min=tiny)
    normal = torch.linalg.cross(first, middle)
    other = torch.linalg.cross(last, middle)
    x = (normal * other).sum(1)
    y = (torch.linalg.cross(normal, other) * middle).sum(1) / length.clamp(min=tiny)
    radius = torch.hypot(x, y).clamp(min=tiny)
    return torch.stack([distance, cosine, x / radius, y / radius], 1)


class WalkHead(Head):
    """Geometry of four residues from their vectors: ``W₂ g(Σ_s A_s x_s + b)``, s is the place in the walk.

    Parameters
    ----------
    target : Target
        Its size C is the width of the logits.
    hidden : int
        Width of the hidden layer.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps, used through invariants; ``walk`` ``(N, 4)`` int64, from the task.
    Writes: ``logits`` ``(N, C)``, in the unit of the target.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "walk")
    level = "node"
    task_fields: ClassVar[tuple[str, ...]] = ("walk",)

    def __init__(self, fields: Mapping[str, FieldSpec], target: Target, *, hidden: int = 128) -> None:
        super().__init__(fields, target)
        self.register_buffer("scale", torch.ones(target.size))
        self.register_buffer("shift", torch.zeros(target.size))
        self.places = nn.Linear(invariant_width(fields["h"]), 4 * hidden)
        self.outer = nn.Linear(hidden, target.size)
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "node", f"{target.size}x0e", chiral=chiral))

    @property
    def last_linear(self) -> nn.Linear:
        """The map to the logits."""
        return self.outer

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits`` ``(N, C)``; see Notes."""
        x = self.places(invariants(f["h"], self.fields["h"]))
        parts = x.view(len(x), 4, -1)  # (N, place, hidden)
        total = sum(parts[f["walk"][:, place], place] for place in range(4))
        return {"logits": self.rescale(self.outer(nn.functional.gelu(total)))}

"""Candidates of model selection for graph classification: GIN and GraphSAGE with the grids of Errica et al. 2020."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from protgraph.errors import OptionError, suggest
from protgraph.model.spec import ModelSpec
from protgraph.registry.component import component
from protgraph.train.config import FitConfig

__all__ = ["GRIDS", "METHODS", "GraphCandidate", "graph_candidates"]

#: Model → name of the method in tables of published scores.
METHODS = {"gin": "GIN", "sage": "GraphSAGE"}
GRIDS = ("small", "full")
_POOLS = ("sum", "mean")


@dataclass(frozen=True)
class GraphCandidate:
    """A model and its training options.

    Parameters
    ----------
    name : str
        Options that differ within the grid, e.g. ``"dim 64, depth 4, pool sum"``.
    model : ModelSpec
    config : FitConfig
        Its seed is replaced in every run.
    """

    name: str
    model: ModelSpec
    config: FitConfig


def graph_candidates(
    model: str, width: int, *, nodes_per_graph: float, grid: str = "small", epochs: int | None = None
) -> list[GraphCandidate]:
    """Return the candidates of a grid.

    Parameters
    ----------
    model : {"gin", "sage"}
    width : int
        Columns of ``node_attributes``.
    nodes_per_graph : float
        Mean number of nodes: batches of the papers have a number of graphs, ours a number of nodes.
    grid : {"small", "full"}
        "small" has two candidates and 100 epochs; "full" is the grid of Errica et al. 2020, 1,000 epochs with
        patience 500, without its dropout (GIN) and without its second rule to stop early (loss instead of accuracy).
    epochs : int, optional
        Another number of epochs.

    Notes
    -----
    Differences from the program of the paper: attributes are standardized; the learning rate of GIN decays as a cosine
    instead of in steps; GraphSAGE has a ReLU in each layer, as Hamilton et al. 2017, and no dense layer before the
    maximum; the first layer of GIN is a dense layer without batch normalization.

    References
    ----------
    Errica et al. 2020, arXiv:1912.09893, tables 6 and 7; grids of github.com/diningphil/gnn-comparison.
    """
    if model not in METHODS:
        raise OptionError(f"model {model!r}.{suggest(model, METHODS)} Allowed: {', '.join(METHODS)}.")
    if grid not in GRIDS:
        raise OptionError(f"grid {grid!r}.{suggest(grid, GRIDS)} Allowed: {', '.join(GRIDS)}.")
    make = {"gin": _gin, "sage": _sage}[model]
    return [make(grid, width, nodes_per_graph, epochs, *options) for options in _GRIDS[model, grid]]


# GIN: graphs per batch, widths, learned ε, pooling. GraphSAGE: learning rate, width, layers, aggregation.
_GRIDS: dict[tuple[str, str], list[tuple[Any, ...]]] = {
    ("gin", "small"): list(product((128,), ((64,) * 4,), (False,), _POOLS)),
    ("gin", "full"): list(product((32, 128), ((64,) * 4, (32,) * 4, (64,), (32, 32)), (True, False), _POOLS)),
    ("sage", "small"): list(product((1e-3,), (64,), (3,), ("mean", "sum"))),
    ("sage", "full"): list(product((1e-4, 1e-2, 1e-3), (32, 64), (3, 5), ("sum", "max", "mean"))),
}


def _config(grid: str, epochs: int | None, graphs: int, nodes_per_graph: float, **options: Any) -> FitConfig:
    patience = 500 if grid == "full" else None
    epochs = epochs or (1000 if grid == "full" else 100)
    budget = round(graphs * nodes_per_graph)
    common = {"epochs": epochs, "patience": patience, "batch_residues": budget, "device": "cpu"}
    return FitConfig(**common, weight_decay=0.0, gradient_clip=None, **options)


def _spec(name: str, width: int, layers: list[Any], head: dict[str, Any]) -> ModelSpec:
    inputs = {"node_attributes": f"{width}x0e", "edge_index": "index"}
    return ModelSpec(name, layers=layers, heads={"graph_classifier": head}, inputs=inputs)


def _gin(
    grid: str, width: int, nodes: float, epochs: int | None, graphs: int, dims: tuple[int, ...], eps: bool, pool: str
) -> GraphCandidate:
    """Return GIN: the logits are a linear map of the pooled nodes of every layer, the first one included."""
    layers = [
        component("embed", reads=["node_attributes"], dim=dims[0]),
        component("mlp", dim=dims[0], hidden=dims[0], act="relu", writes={"h": "h0"}),
    ]
    for i, dim in enumerate(dims):
        names = {"reads": {"h": f"h{i}"}, "writes": {"h": f"h{i + 1}"}}
        layers.append(component("gin", dim=dim, norm="batch", learn_eps=eps, **names))
    layers.append(component("concat", reads=[f"h{i}" for i in range(len(dims) + 1)]))
    name = f"dim {dims[0]}, depth {len(dims)}, pool {pool}, {graphs} graphs per batch{', learned eps' if eps else ''}"
    config = _config(grid, epochs, graphs, nodes, lr=0.01, schedule="cosine")
    return GraphCandidate(name, _spec("gin", width, layers, {"pool": pool}), config)


def _sage(
    grid: str, width: int, nodes: float, epochs: int | None, lr: float, dim: int, depth: int, aggregate: str
) -> GraphCandidate:
    """Return GraphSAGE: the maximum over nodes of all layers, and a dense layer."""
    layers = [component("embed", reads=["node_attributes"], dim=dim, writes={"h": "h0"})]
    for i in range(depth):
        names = {"reads": {"h": f"h{i}"}, "writes": {"h": f"h{i + 1}"}}
        layers.append(component("sage", dim=dim, aggregate=aggregate, **names))
    layers.append(component("concat", reads=[f"h{i + 1}" for i in range(depth)]))
    name = f"dim {dim}, depth {depth}, aggregate {aggregate}, lr {lr:g}"
    config = _config(grid, epochs, 32, nodes, lr=lr, schedule="constant")
    return GraphCandidate(name, _spec("sage", width, layers, {"pool": "max", "hidden": [dim]}), config)

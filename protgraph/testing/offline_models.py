"""Models whose parts would be downloaded, with small ones in their place."""

from __future__ import annotations

from dataclasses import replace

from protgraph import registry
from protgraph.model import ModelSpec
from protgraph.registry import Registry
from protgraph.registry.component import ComponentSpec

__all__ = ["offline_models"]


def offline_models(graph: ModelSpec) -> ModelSpec:
    """The model graph with what its components state as :attr:`protgraph.testing.Conformity.offline`.

    A model without such components comes back as it is. Nothing is downloaded for it, and it knows nothing: what is
    tested is how it is built.
    """
    features = tuple(_offline(registry.featurizers, n) for n in graph.features)
    layers = tuple(_offline(registry.layers, n) for n in graph.layers)
    if (features, layers) == (graph.features, graph.layers):
        return graph
    return replace(graph, features=features, layers=layers)


def _offline(known: Registry, n: ComponentSpec) -> ComponentSpec:
    stated = getattr(known.get(n.name), "conformity", None)
    if stated is None or not stated.offline:
        return n
    return replace(n, options={**n.options, **stated.offline})

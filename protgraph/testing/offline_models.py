"""Model specs whose downloaded parts are replaced by small ones, so that they can be built without network."""

from __future__ import annotations

from dataclasses import replace

from protgraph import registry
from protgraph.model import ModelSpec
from protgraph.registry import Registry
from protgraph.registry.component import ComponentSpec

__all__ = ["offline_models"]


def offline_models(spec: ModelSpec) -> ModelSpec:
    """Apply the options that components state as :attr:`protgraph.testing.Conformity.offline`.

    A model without such components is returned unchanged. The replaced parts have random weights: checks test how the
    model is built, not what it predicts.
    """
    features = tuple(_offline(registry.featurizers, n) for n in spec.features)
    layers = tuple(_offline(registry.layers, n) for n in spec.layers)
    if (features, layers) == (spec.features, spec.layers):
        return spec
    return replace(spec, features=features, layers=layers)


def _offline(names: Registry, component: ComponentSpec) -> ComponentSpec:
    stated = getattr(names.get(component.name), "conformity", None)
    if stated is None or not stated.offline:
        return component
    return replace(component, options={**component.options, **stated.offline})

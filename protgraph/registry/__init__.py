"""Names → components, for the six kinds of component, over one entry-point group each.

Listing never imports a plugin; an object loads when it is first asked for, and one that cannot load hurts only
itself. Built-in components come through the same doors as a stranger's.
"""

from __future__ import annotations

from protgraph.registry.discovery import PluginProblem, Provider, RegistryEntry
from protgraph.registry.family import Family
from protgraph.registry.options import Option, options_of
from protgraph.registry.registries import datasets, featurizers, heads, layers, models, registries, tasks
from protgraph.registry.registry import Registry

__all__ = [
    "Provider",
    "RegistryEntry",
    "Family",
    "Option",
    "PluginProblem",
    "Registry",
    "datasets",
    "featurizers",
    "heads",
    "layers",
    "models",
    "options_of",
    "registries",
    "tasks",
]

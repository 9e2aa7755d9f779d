"""Registries: names to components, one registry and one entry-point group per kind of component.

Listing names reads distribution metadata and imports no plugin. A component is imported on first use; one that fails to
import does not affect the others. Built-in components are registered through the same entry-point groups as plugins.
"""

from __future__ import annotations

from protgraph.registry.component import ComponentSpec, Family, as_component, as_components, component
from protgraph.registry.discovery import BUILT_IN, distributions_with_components
from protgraph.registry.options import Option, component_options
from protgraph.registry.provider import PluginProblem, Provider, RegistryEntry, import_source
from protgraph.registry.registries import (
    commands,
    datasets,
    engines,
    evaluators,
    featurizers,
    functions,
    heads,
    hooks,
    layers,
    metrics,
    models,
    mutation_scorers,
    readers,
    registries,
    relatives,
    stores,
    tasks,
    trained_models,
    viewer_scripts,
)
from protgraph.registry.registry import Registry

__all__ = [
    "BUILT_IN",
    "ComponentSpec",
    "Family",
    "Option",
    "PluginProblem",
    "Provider",
    "Registry",
    "RegistryEntry",
    "as_component",
    "as_components",
    "commands",
    "component",
    "component_options",
    "datasets",
    "distributions_with_components",
    "engines",
    "evaluators",
    "featurizers",
    "functions",
    "heads",
    "hooks",
    "import_source",
    "layers",
    "metrics",
    "models",
    "readers",
    "registries",
    "relatives",
    "stores",
    "tasks",
    "mutation_scorers",
    "trained_models",
    "viewer_scripts",
]

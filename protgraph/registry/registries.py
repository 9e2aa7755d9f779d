"""The six registries of components.

Other module-level state that changes at run time: the field table (:mod:`protgraph.data.graph.fields`) and the table of
metrics (``protgraph.task.METRICS``).
"""

from __future__ import annotations

from protgraph.registry.registry import Registry

__all__ = ["datasets", "featurizers", "heads", "layers", "models", "registries", "tasks"]

featurizers = Registry(kind="featurizer", group="protgraph.featurizers")
layers = Registry(kind="layer", group="protgraph.layers")
heads = Registry(kind="head", group="protgraph.heads")
models = Registry(kind="model", group="protgraph.models")
tasks = Registry(kind="task", group="protgraph.tasks")
datasets = Registry(kind="dataset", group="protgraph.datasets")

registries: dict[str, Registry] = {
    "featurizers": featurizers,
    "layers": layers,
    "heads": heads,
    "models": models,
    "tasks": tasks,
    "datasets": datasets,
}

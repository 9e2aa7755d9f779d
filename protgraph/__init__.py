"""Plugin-based graph learning on protein structures: featurization, equivariant layers, benchmarks.

Public names are imported on first use (PEP 562): ``import protgraph`` takes milliseconds, and listing components
imports neither torch nor plugins. Functions of extensions, in the entry-point group ``protgraph.functions``, are
attributes too.

Examples
--------
>>> import protgraph as pg
>>> "gcn" in pg.layers
True
"""

from __future__ import annotations

__version__ = "0.1.0"

# Public name → module that exports it.
_HOME = {
    # registries
    "Family": "protgraph.registry",
    "commands": "protgraph.registry",
    "datasets": "protgraph.registry",
    "featurizers": "protgraph.registry",
    "heads": "protgraph.registry",
    "layers": "protgraph.registry",
    "metrics": "protgraph.registry",
    "models": "protgraph.registry",
    "tasks": "protgraph.registry",
    "trained_models": "protgraph.registry",
    "functions": "protgraph.registry",
    "mutation_scorers": "protgraph.registry",
    "readers": "protgraph.registry",
    # structures
    "ParsedFile": "protgraph.structure",
    "Reader": "protgraph.structure",
    "Residues": "protgraph.structure",
    "Structure": "protgraph.structure",
    "clean": "protgraph.structure",
    "fetch": "protgraph.structure",
    "from_atom_array": "protgraph.structure",
    "load_fasta": "protgraph.structure",
    "load_structure": "protgraph.structure",
    "to_atom_array": "protgraph.structure",
    # graphs and datasets
    "Dataset": "protgraph.data",
    "DatasetCard": "protgraph.data",
    "Example": "protgraph.data",
    "FolderDataset": "protgraph.data",
    "GraphStore": "protgraph.data",
    "ProteinGraph": "protgraph.data",
    "ProteinLabels": "protgraph.data",
    "ResidueLabels": "protgraph.data",
    "SplitCount": "protgraph.data",
    "Target": "protgraph.data",
    "TaskCard": "protgraph.data",
    "build_graph": "protgraph.featurize",
    "collate": "protgraph.data",
    "from_pyg": "protgraph.data",
    "iter_graphs": "protgraph.featurize",
    "inspect_dataset": "protgraph.labels",
    "load_dataset": "protgraph.labels",
    "to_networkx": "protgraph.data",
    "to_pyg": "protgraph.data",
    # models and tasks
    "ComponentSpec": "protgraph.model",
    "InputMasking": "protgraph.task",
    "Metric": "protgraph.task",
    "ModelSpec": "protgraph.model",
    "ProteinModel": "protgraph.model",
    "Task": "protgraph.task",
    "build_model": "protgraph.model",
    "component": "protgraph.model",
    "load_checkpoint": "protgraph.checkpoint",
    "pretrained": "protgraph.model",
    # training, prediction, comparison
    "TrainedModel": "protgraph.checkpoint",
    "BenchSpec": "protgraph.bench",
    "FitConfig": "protgraph.train",
    "embed": "protgraph.inference",
    "evaluate": "protgraph.evaluation",
    "cross_validate": "protgraph.train",
    "fit": "protgraph.train",
    "predict": "protgraph.inference",
    "run_bench": "protgraph.bench",
    "write_report": "protgraph.bench",
    # writing components
    "ComponentError": "protgraph.errors",
    "Conformity": "protgraph.data",
    "EdgeFeaturizer": "protgraph.featurize",
    "EdgeList": "protgraph.featurize",
    "Edges": "protgraph.ops",
    "FieldSpec": "protgraph.data",
    "GraphLayer": "protgraph.nn",
    "Head": "protgraph.nn",
    "NodeFeaturizer": "protgraph.featurize",
    "NodeList": "protgraph.featurize",
    "Proteins": "protgraph.ops",
    "ProtgraphError": "protgraph.errors",
    "StructureFeaturizer": "protgraph.featurize",
    "TensorFeaturizer": "protgraph.featurize",
    "field": "protgraph.data",
    "register_field": "protgraph.data",
}
# Packages that are attributes: ``pg.structure`` imports ``protgraph.structure``.
_PACKAGES = (
    "bench",
    "data",
    "errors",
    "featurize",
    "model",
    "nn",
    "ops",
    "registry",
    "structure",
    "task",
    "testing",
    "train",
)

__all__ = ["__version__", *_HOME, *_PACKAGES]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOME:
        value: object = getattr(import_module(_HOME[name]), name)
        globals()[name] = value  # __getattr__ is not called again for this name
        return value
    if name in _PACKAGES:
        return import_module(f"protgraph.{name}")
    extensions = _functions_of_extensions()
    if name in extensions:
        from protgraph.registry import functions

        return functions.get(name)
    from protgraph.errors import suggest

    names = [*__all__, *extensions]
    hint = suggest(name, names) or f" It has {', '.join(sorted(names))}."
    raise AttributeError(f"protgraph has no {name!r}.{hint}", name=name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_functions_of_extensions()])


def _functions_of_extensions() -> list[str]:
    """Return the names in the entry-point group ``protgraph.functions`` that are attributes; nothing is imported."""
    from protgraph.registry import functions

    return [name for name in functions.names() if name.isidentifier() and not functions.is_reserved(name)]

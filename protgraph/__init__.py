"""protgraph: structure files → graphs → models made of names → a table that says which is better.

Every public name is imported on first use (PEP 562), so that ``import protgraph`` costs next to nothing and
listing components loads neither torch nor a plugin.

Examples
--------
>>> import protgraph as pg
>>> "gcn" in pg.layers
True
"""

from __future__ import annotations

__version__ = "0.1.0"

# Public name → module that has it, with ":name" where it is called otherwise there.
_HOME = {
    # components by name
    "Family": "protgraph.registry",
    "datasets": "protgraph.registry",
    "featurizers": "protgraph.registry",
    "heads": "protgraph.registry",
    "layers": "protgraph.registry",
    "models": "protgraph.registry",
    "tasks": "protgraph.registry",
    # what a component is made of
    "Conformity": "protgraph.data.graph.conformity",
    "Dataset": "protgraph.data.datasets.dataset",
    "EdgeFeaturizer": "protgraph.featurize",
    "EdgeList": "protgraph.featurize",
    "Edges": "protgraph.ops",
    "Example": "protgraph.data.datasets.dataset",
    "FieldSpec": "protgraph.data.graph.fields",
    "GraphLayer": "protgraph.nn",
    "Head": "protgraph.nn",
    "InputMasking": "protgraph.task",
    "ModelSpec": "protgraph.model",
    "ComponentSpec": "protgraph.model",
    "Proteins": "protgraph.ops",
    "ProtgraphError": "protgraph.errors",
    "StructureFeaturizer": "protgraph.featurize",
    "Target": "protgraph.data.datasets.target",
    "Task": "protgraph.task",
    "TensorFeaturizer": "protgraph.featurize",
    "field": "protgraph.data.graph.fields",
    "component": "protgraph.model",
    "register_field": "protgraph.data.graph.fields",
    # from files to graphs
    "GraphStore": "protgraph.data.store",
    "ProteinGraph": "protgraph.data.graph.protein_graph",
    "ReadOptions": "protgraph.structure",
    "Residues": "protgraph.structure",
    "Structure": "protgraph.structure",
    "build_graph": "protgraph.featurize",
    "clean": "protgraph.structure",
    "collate": "protgraph.data.graph.protein_graph",
    "from_atom_array": "protgraph.structure",
    "from_frames": "protgraph.data.graph.convert",
    "from_networkx": "protgraph.data.graph.convert",
    "from_pyg": "protgraph.data.graph.convert",
    "load_fasta": "protgraph.structure",
    "load_structure": "protgraph.structure",
    "to_atom_array": "protgraph.structure",
    "to_frames": "protgraph.data.graph.convert",
    "to_networkx": "protgraph.data.graph.convert",
    "to_pyg": "protgraph.data.graph.convert",
    # from graphs to models, predictions and a comparison
    "BenchSpec": "protgraph.bench",
    "FitConfig": "protgraph.train",
    "ProteinModel": "protgraph.model",
    "load_dataset": "protgraph.train",
    "build_model": "protgraph.model",
    "fit": "protgraph.train",
    "generate": "protgraph.train",
    "load_checkpoint": "protgraph.train",
    "predict": "protgraph.train",
    "pretrained": "protgraph.model",
    "run_bench": "protgraph.bench",
    "write_report": "protgraph.bench",
}
# Packages of protgraph: ``pg.structure`` imports ``protgraph.structure``.
_ROOMS = (
    "bench",
    "data",
    "design",
    "errors",
    "featurize",
    "model",
    "nn",
    "registry",
    "structure",
    "symmetry",
    "task",
    "testing",
    "train",
)

__all__ = ["__version__", *_HOME, *_ROOMS]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOME:
        module, _, attribute = _HOME[name].partition(":")
        value: object = getattr(import_module(module), attribute or name)
        globals()[name] = value  # the next access does not come here
        return value
    if name in _ROOMS:
        return import_module(f"protgraph.{name}")
    from protgraph.errors import suggest

    hint = suggest(name, __all__) or f" It has {', '.join(sorted(__all__))}."
    raise AttributeError(f"protgraph has no {name!r}.{hint}", name=name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""The registries of components.

Other module-level state that changes at run time: the field table (:mod:`protgraph.data.graph.fields`) and the imported
sources (:mod:`protgraph.registry.import_source`).
"""

from __future__ import annotations

from protgraph.registry.component import ComponentType
from protgraph.registry.registry import Registry

__all__ = [
    "commands",
    "datasets",
    "engines",
    "evaluators",
    "featurizers",
    "functions",
    "heads",
    "hooks",
    "layers",
    "metrics",
    "models",
    "mutation_scorers",
    "readers",
    "registries",
    "relatives",
    "stores",
    "tasks",
    "trained_models",
    "viewer_scripts",
]

_FEATURIZER = ComponentType(
    "a subclass of protgraph.StructureFeaturizer, EdgeFeaturizer, NodeFeaturizer or TensorFeaturizer",
    "protgraph.featurize.base:Featurizer",
    classes=True,
)
_HEAD = ComponentType("a subclass of protgraph.Head", "protgraph.nn.module:Head", classes=True)
_LAYER = ComponentType(
    "a subclass of protgraph.GraphLayer, not of Head",
    "protgraph.nn.module:GraphLayer",
    classes=True,
    without="protgraph.nn.module:Head",
)
_MODEL = ComponentType("a protgraph.ModelSpec", "protgraph.model.spec:ModelSpec", instances=True)
_TASK = ComponentType("a protgraph.Task", "protgraph.task.task:Task", instances=True)
_DATASET = ComponentType(
    "a subclass of protgraph.Dataset, an instance of one",
    "protgraph.data.datasets.dataset:Dataset",
    classes=True,
    instances=True,
)
_TRAINED_MODEL = ComponentType(
    "a protgraph.TrainedModel", "protgraph.checkpoint.trained_model:TrainedModel", instances=True
)

_MUTATION_SCORER = ComponentType(
    "a class with a method score, see protgraph_plugins.mutations.MutationScorer", methods=("score",), classes=True
)

_METRIC = ComponentType("a protgraph.Metric", "protgraph.task.metrics:Metric", instances=True)
_READER = ComponentType(
    "a subclass of protgraph.Reader", "protgraph.structure.io.registered_readers:Reader", classes=True
)
_COMMAND = ComponentType(
    "a function with typer options, a protgraph.cli.CommandGroup",
    "types:FunctionType protgraph.cli.command_group:CommandGroup",
    instances=True,
)

_FUNCTION = ComponentType("a function", "types:FunctionType", instances=True, attribute_of="protgraph")

# --- hooks: what an extension of the core adds to one of its functions ---

_RELATIVES = ComponentType(
    "a function from examples to those with a relative in other datasets", "types:FunctionType", instances=True
)

_EVALUATOR = ComponentType(
    "a function evaluate(model, dataset, task, *, without, seed)", "types:FunctionType", instances=True
)

featurizers = Registry(kind="featurizer", group="protgraph.featurizers", type_=_FEATURIZER)
layers = Registry(kind="layer", group="protgraph.layers", type_=_LAYER)
heads = Registry(kind="head", group="protgraph.heads", type_=_HEAD)
models = Registry(kind="model", group="protgraph.models", type_=_MODEL)
tasks = Registry(kind="task", group="protgraph.tasks", type_=_TASK)
datasets = Registry(kind="dataset", group="protgraph.datasets", type_=_DATASET)
trained_models = Registry(kind="trained_model", group="protgraph.trained_models", type_=_TRAINED_MODEL)
mutation_scorers = Registry(kind="mutation_scorer", group="protgraph.mutation_scorers", type_=_MUTATION_SCORER)
metrics = Registry(kind="metric", group="protgraph.metrics", type_=_METRIC)
readers = Registry(kind="reader", group="protgraph.readers", type_=_READER)
commands = Registry(kind="command", group="protgraph.commands", type_=_COMMAND, session=False)
functions = Registry(kind="function", group="protgraph.functions", type_=_FUNCTION, session=False)
"""Functions of extensions that are attributes of ``protgraph``: ``pg.find_pockets``."""

relatives = Registry(kind="relative", group="protgraph.relatives", type_=_RELATIVES, session=False)
evaluators = Registry(kind="evaluator", group="protgraph.evaluators", type_=_EVALUATOR, session=False)
engines = Registry(kind="engine", group="protgraph.engines")
"""Name of an engine → function of tasks, a picklable function and a number of processes.

It yields each task with its result, as :func:`protgraph.prepare.shard_task.run_local`. A task whose process died is
repeated once; if it dies again, the result is a :class:`~protgraph.worker_process.WorkerDied`."""
stores = Registry(kind="store", group="protgraph.stores")
"""Scheme of an address, e.g. "s3" → function from the address of a graph store to its ``StoreFiles``."""
viewer_scripts = Registry(kind="viewer_script", group="protgraph.viewer_scripts", session=False)
"""Viewer → function that writes a script: (path, structures, values, *, attributes) → path."""

registries: dict[str, Registry] = {
    "featurizers": featurizers,
    "layers": layers,
    "heads": heads,
    "models": models,
    "tasks": tasks,
    "datasets": datasets,
    "trained_models": trained_models,
    "mutation_scorers": mutation_scorers,
    "metrics": metrics,
    "readers": readers,
    "commands": commands,
    "functions": functions,
}
#: Registries of single functions that extensions add; ``protgraph list`` does not show them.
hooks: dict[str, Registry] = {
    "relatives": relatives,
    "evaluators": evaluators,
    "engines": engines,
    "stores": stores,
    "viewer_scripts": viewer_scripts,
}

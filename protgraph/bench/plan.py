"""From a spec to the jobs that it asks for, each with all that decides its numbers."""

from __future__ import annotations

import inspect
import os
import sys
import time
from itertools import product
from typing import TYPE_CHECKING

import protgraph
from protgraph import registry
from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.spec import BenchSpec
from protgraph.errors import DatasetError, LabelError, PluginLoadError, ProtgraphError, UnknownNameError
from protgraph.registry import Registry

if TYPE_CHECKING:
    from protgraph.model.spec import ModelSpec
    from protgraph.task.task import Task

__all__ = ["SESSION", "plan_jobs"]

#: What begins the source of a component that exists in this process only.
SESSION = "session"

# What numbers depend on; tables, figures and the command line may change.
_CORE = ("structure", "symmetry", "data", "featurize", "nn", "model", "task", "train", "design")


def plan_jobs(spec: BenchSpec) -> tuple[list[BenchJob], dict[str, BenchRow]]:
    """Every job of a spec, and failed rows by key for those whose model does not load.

    The first seed of everything comes first, models in the order of the spec: the first figures are a whole table.

    Notes
    -----
    A job's ``sources`` say for protgraph itself, and for each component that is not its own, which version of which
    distribution it is, with a digest of the code: a layer that was edited makes its old rows stale, also where its
    version stayed the same.

    Raises
    ------
    UnknownNameError, OptionError, DatasetError
        The spec asks for what is not there.
    """
    from protgraph.model.build import as_model_spec
    from protgraph.train.config import FitConfig
    from protgraph.train.resolve import resolve_task
    from protgraph.train.user_dataset import refuse_unasked

    spec.check(FitConfig)
    datasets, tasks = {}, {}
    for name in spec.tasks:
        try:
            datasets[name] = spec.data(name)
            tasks[name] = resolve_task(name, datasets[name])
        except (UnknownNameError, DatasetError, LabelError) as e:
            raise type(e)(f"{spec.where}: tasks: {e}") from None
    refuse_unasked(list(datasets.values()), where=f"{spec.where}: ")
    graphs, errors = {}, {}
    for name in spec.models:
        try:
            graphs[name] = as_model_spec(name)
        except PluginLoadError as e:
            errors[name] = e
        except UnknownNameError as e:
            raise UnknownNameError(f"{spec.where}: models: {e}") from None
    jobs, broken = [], {}
    for seed, task, model in product(spec.seeds, spec.tasks, spec.models):
        graph = graphs.get(model)
        job = BenchJob(
            model=model,
            task=task,
            dataset=datasets[task].name if spec.is_folder else spec.dataset,
            seed=seed,
            graph=graph.to_dict() if graph else {},
            config=spec.options(model, task),
            dataset_version=str(datasets[task].version),
            folder=os.path.abspath(spec.dataset) if spec.is_folder else "",
            labels=os.path.abspath(spec.labels) if spec.labels else "",
            sources=_sources(spec, graph, tasks[task]),
        )
        jobs.append(job)
        if graph is None:
            broken[job.key] = BenchRow.failed(job, f"PluginLoadError: {errors[model]}")
    return jobs, broken


def _sources(spec: BenchSpec, graph: ModelSpec | None, task: Task) -> dict[str, str]:
    from protgraph.train.cache import code_digest

    core = code_digest(*(f"protgraph.{room}" for room in _CORE))
    named = [(registry.tasks, task.name), (registry.heads, task.target.head_name)]
    named += [] if spec.is_folder else [(registry.datasets, spec.dataset)]
    if graph is not None:
        named += [(registry.featurizers, n.name) for n in graph.features]
        named += [(registry.layers, n.name) for n in graph.layers]
    found = {f"{kind.kind} {name}": _source(kind, name) for kind, name in named}
    return {"protgraph": f"{protgraph.__version__} {core}"} | {what: source for what, source in found.items() if source}


def _source(kind: Registry, name: str) -> str:
    """ "distribution version digest"; empty for protgraph's own, and for what building the model will complain of."""
    try:
        entry, component = kind.entry(name), kind.get(name)
    except ProtgraphError:
        return ""
    top = entry.object.partition(":")[0].partition(".")[0]
    if top == protgraph.__name__ and entry.source != SESSION:
        return ""
    return f"{entry.source} {_code(component, top)}"


def _code(component: object, top: str) -> str:
    """Digest of the top-level package that a component lives in; of its class alone, where that is no package."""
    from protgraph.train.cache import code_digest, digest

    if hasattr(sys.modules.get(top), "__path__"):
        return code_digest(top)
    try:
        return digest(inspect.getsource(component if inspect.isclass(component) else type(component)))
    except (OSError, TypeError):
        return str(time.time_ns())  # typed at a prompt: it may be another one next time

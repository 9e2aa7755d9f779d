"""Plan the jobs of a benchmark: one per model, task and seed, each with everything that determines its numbers."""

from __future__ import annotations

import os
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import protgraph
from protgraph import registry
from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.spec import BenchSpec, trained_label
from protgraph.data.cache_key import code_digest, component_digest, component_package
from protgraph.errors import DatasetError, LabelError, PluginLoadError, ProtgraphError, UnknownNameError
from protgraph.file_io import file_sha256
from protgraph.registry import Registry

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset
    from protgraph.model.spec import ModelSpec
    from protgraph.task.task import Task

__all__ = ["SESSION", "describe_folder", "has_training_split", "plan_jobs"]

#: Prefix of the source of a component that is registered in this process only.
SESSION = "session"

#: Packages whose code changes numbers; tables, figures and the command line do not.
_CORE = ("structure", "ops", "data", "featurize", "nn", "model", "task", "train")


def plan_jobs(spec: BenchSpec) -> tuple[list[BenchJob], dict[str, BenchRow]]:
    """Return every job of a spec, and failed rows by key for the models that cannot be loaded.

    The first seed of every model and task comes first, models in the order of the spec, so that the first rows make a
    complete table. Models are trained on tasks whose dataset has a training split; trained models come last.

    ``sources`` of a job have an entry for protgraph, and one for each component of another distribution: the
    distribution's name and version, and a digest of the code (:mod:`protgraph.data.cache_key`). An edit of a layer's
    code makes its rows stale even if the version is unchanged. Rows of a
    component without source code, e.g. of a class defined in an interactive session, are always stale.
    """
    from protgraph.labels.loading import check_labels_are_used
    from protgraph.train.config import FitConfig

    spec.check(FitConfig)
    datasets, tasks = _datasets_and_tasks(spec)
    check_labels_are_used(list(datasets.values()), where=f"{spec.where}: ")
    graphs, errors = _model_specs(spec)
    jobs, broken = [], {}
    for seed, task, model in product(spec.seeds, spec.tasks, spec.models):
        if not has_training_split(datasets[task], task):
            continue
        graph = graphs.get(model)
        job = BenchJob(
            model=model,
            seed=seed,
            graph=graph.to_dict() if graph else {},
            config=spec.options(model, task),
            sources=_sources(spec, graph, task, tasks[task]),
            **_data_of(spec, task, datasets[task]),
        )
        jobs.append(job)
        if graph is None:
            broken[job.key] = BenchRow.failed(job, f"PluginLoadError: {errors[model]}")
    jobs += [
        _trained_job(spec, task, name, datasets[task], tasks[task])
        for task in spec.tasks
        for name in spec.trained.get(task, ())
    ]
    return jobs, broken


def has_training_split(dataset: Dataset, task: str) -> bool:
    """Return False if a task has proteins, but none to train on. Training reports a task without any."""
    splits = dataset.splits(task)
    return not splits or "train" in splits


def _data_of(spec: BenchSpec, task: str, dataset: Dataset) -> dict[str, Any]:
    """Return the fields of a job that describe its data."""
    is_folder = spec.is_folder(task)
    return {
        "task": task,
        "dataset": dataset.name if is_folder else spec.dataset_of(task),
        "dataset_version": str(dataset.version),
        "folder": os.path.abspath(spec.dataset_of(task)) if is_folder else "",
        "labels": os.path.abspath(spec.labels) if spec.labels else "",
        "read": dict(spec.read),
        "train_on": spec.train_on[task].model_dump() if task in spec.train_on else {},
        "out": os.path.abspath(spec.folder),
    }


def _trained_job(spec: BenchSpec, name: str, path: str, dataset: Dataset, task: Task) -> BenchJob:
    """Return the job of a trained model. It has no seed: it is run once, under the first seed of the spec."""
    from protgraph.checkpoint.checkpoint_file import as_checkpoint
    from protgraph.checkpoint.trained_model import WEIGHTS

    graph = as_checkpoint(path).model.spec
    file = registry.trained_models.get(path).folder / WEIGHTS if path in registry.trained_models else Path(path)
    sources = _sources(spec, graph, name, task) | {"trained model": file_sha256(file)}
    return BenchJob(
        model=trained_label(path),
        seed=spec.seeds[0],
        graph=graph.to_dict(),
        sources=sources,
        trained=path if path in registry.trained_models else os.path.abspath(path),
        **_data_of(spec, name, dataset),
    )


def describe_folder(spec: BenchSpec) -> list[str]:
    """Return what the user files of a spec are understood as, for each task; empty for a registered dataset."""
    from protgraph.train.config import FitConfig

    spec.check(FitConfig)
    if not any(map(spec.is_folder, spec.tasks)):
        return []
    datasets, _ = _datasets_and_tasks(spec)
    return [str(dataset.describe(task)) for task, dataset in datasets.items() if spec.is_folder(task)]


def _datasets_and_tasks(spec: BenchSpec) -> tuple[dict[str, Dataset], dict[str, Task]]:
    from protgraph.labels.loading import resolve_task

    datasets, tasks = {}, {}
    with spec.errors_at("tasks", UnknownNameError, DatasetError, LabelError):
        for name in spec.tasks:
            datasets[name] = spec.data(name)
            tasks[name] = resolve_task(name, datasets[name])
    return datasets, tasks


def _model_specs(spec: BenchSpec) -> tuple[dict[str, ModelSpec], dict[str, PluginLoadError]]:
    graphs, errors = {}, {}
    for name in spec.models:
        try:
            graphs[name] = spec.graph_of(name)
        except PluginLoadError as e:
            errors[name] = e
    return graphs, errors


def _sources(spec: BenchSpec, graph: ModelSpec | None, name: str, task: Task) -> dict[str, str]:
    components: list[tuple[Registry, str]] = [(registry.tasks, task.name), (registry.heads, task.target.head_name)]
    if not spec.is_folder(name):
        components.append((registry.datasets, spec.dataset_of(name)))
    components.append((registry.evaluators, "decoder"))  # evaluates models with a decoder
    if graph is not None:
        components += [(registry.featurizers, component.name) for component in graph.features]
        components += [(registry.layers, component.name) for component in graph.layers]
    sources = {f"{kind.kind} {name}": _source(kind, name) for kind, name in components}
    core = code_digest(*(f"protgraph.{package}" for package in _CORE))
    return {"protgraph": f"{protgraph.__version__} {core}"} | {name: text for name, text in sources.items() if text}


def _source(kind: Registry, name: str) -> str:
    """Return "distribution version digest".

    Empty for a component of protgraph, and for one that cannot be loaded: building the model reports that.
    """
    try:
        entry, component = kind.entry(name), kind.get(name)
    except ProtgraphError:
        return ""
    module = entry.object.partition(":")[0]
    if component_package(module) == protgraph.__name__ and entry.distribution == registry.BUILT_IN:
        return ""
    return f"{entry.source} {component_digest(component, module=module) or time.time_ns()}"

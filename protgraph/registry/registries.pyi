"""Types of the registries. They name classes of higher packages, which ``registries.py`` does not import."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

from protgraph.checkpoint.trained_model import TrainedModel
from protgraph.cli.command_group import CommandGroup
from protgraph.data.datasets.dataset import Dataset
from protgraph.featurize.base import Featurizer
from protgraph.model.spec import ModelSpec
from protgraph.nn.module import GraphLayer, Head
from protgraph.registry.registry import Registry
from protgraph.structure.io.registered_readers import Reader
from protgraph.task.metrics import Metric
from protgraph.task.task import Task

featurizers: Registry[type[Featurizer], Any]  # each stage has its own call
layers: Registry[type[GraphLayer], GraphLayer]
heads: Registry[type[Head], Head]
models: Registry[ModelSpec, ModelSpec]
tasks: Registry[Task, Task]
datasets: Registry[type[Dataset] | Dataset, Dataset]
trained_models: Registry[TrainedModel, TrainedModel]
mutation_scorers: Registry[type[Any], Any]
metrics: Registry[Metric, Metric]
readers: Registry[type[Reader], Reader]
commands: Registry[FunctionType | CommandGroup, FunctionType | CommandGroup]
functions: Registry[Callable[..., Any], Any]
relatives: Registry[Callable[..., Any], Any]
evaluators: Registry[Callable[..., Any], Any]
engines: Registry[Callable[..., Any], Any]
stores: Registry[Callable[..., Any], Any]
viewer_scripts: Registry[Callable[..., Any], Any]
registries: dict[str, Registry]
hooks: dict[str, Registry]

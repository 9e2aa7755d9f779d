"""Labels of proteins: datasets from any source, labeled graphs, inspection, and checks of splits and leaks."""

from protgraph.labels.checks import raise_on_leak
from protgraph.labels.evaluation_dataset import Evaluation, add_evaluations, train_on_other
from protgraph.labels.inspection import DatasetInspection, inspect_dataset
from protgraph.labels.loading import load_dataset, load_proteins, resolve_task
from protgraph.labels.preparation import Prepared, prepare

__all__ = [
    "DatasetInspection",
    "Evaluation",
    "Prepared",
    "add_evaluations",
    "inspect_dataset",
    "load_dataset",
    "load_proteins",
    "prepare",
    "raise_on_leak",
    "resolve_task",
    "train_on_other",
]

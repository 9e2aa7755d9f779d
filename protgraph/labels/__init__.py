"""Labels of proteins: datasets from any source, labeled graphs, inspection, and checks of splits and leaks."""

from protgraph.labels.evaluation_dataset import train_on_other
from protgraph.labels.inspection import DatasetInspection, inspect_dataset
from protgraph.labels.loading import load_dataset, load_proteins
from protgraph.labels.preparation import Prepared, prepare

__all__ = [
    "DatasetInspection",
    "Prepared",
    "inspect_dataset",
    "load_dataset",
    "load_proteins",
    "prepare",
    "train_on_other",
]

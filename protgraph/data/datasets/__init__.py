"""Datasets: cards, targets, user folders with label tables, alignment of labels, splits."""

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard, load_card, parse_card
from protgraph.data.datasets.column_interpretation import interpret_column
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.derived_task import DerivedTaskDataset
from protgraph.data.datasets.description import DatasetDescription
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.graph_list import GraphListDataset
from protgraph.data.datasets.label_column import LabelColumn
from protgraph.data.datasets.label_table import LabelTable, read_label_table
from protgraph.data.datasets.labels import Labels, ProteinLabels, ResidueLabels, align
from protgraph.data.datasets.preparation import prepare_dataset
from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.splits import FRACTIONS, group_split, linked_groups
from protgraph.data.datasets.target import Target

__all__ = [
    "FRACTIONS",
    "Dataset",
    "DatasetCard",
    "DerivedTaskDataset",
    "DatasetDescription",
    "Example",
    "FolderDataset",
    "GraphListDataset",
    "LabelColumn",
    "LabelTable",
    "Labels",
    "PreparedDataset",
    "ProteinLabels",
    "ResidueLabels",
    "SplitCount",
    "Target",
    "TaskCard",
    "align",
    "group_split",
    "interpret_column",
    "linked_groups",
    "load_card",
    "parse_card",
    "prepare_dataset",
    "read_label_table",
]

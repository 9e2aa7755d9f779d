"""Datasets: cards, targets, user folders with label tables, alignment of labels, splits.

Names are imported on first use (PEP 562): cards and lists of datasets need neither torch nor biotite.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module.
_HOME = {
    "Dataset": "protgraph.data.datasets.dataset",
    "DatasetCard": "protgraph.data.datasets.card",
    "DatasetDescription": "protgraph.data.datasets.description",
    "add_derived_task": "protgraph.data.datasets.dataset",
    "Example": "protgraph.data.datasets.dataset",
    "FRACTIONS": "protgraph.data.datasets.splits",
    "FolderDataset": "protgraph.data.datasets.folder",
    "GraphListDataset": "protgraph.data.datasets.graph_list",
    "LabelColumn": "protgraph.data.datasets.label_column",
    "LabelTable": "protgraph.data.datasets.label_table",
    "Labels": "protgraph.data.datasets.labels",
    "PairLabels": "protgraph.data.datasets.labels",
    "ProteinLabels": "protgraph.data.datasets.labels",
    "ResidueLabels": "protgraph.data.datasets.labels",
    "SourceRepository": "protgraph.data.datasets.card",
    "LabelRows": "protgraph.data.datasets.dataset",
    "TableDataset": "protgraph.data.datasets.dataset",
    "absent_residues_error": "protgraph.data.datasets.labels",
    "SplitCount": "protgraph.data.datasets.card",
    "Target": "protgraph.data.datasets.target",
    "TaskCard": "protgraph.data.datasets.card",
    "SplitUnit": "protgraph.data.datasets.splits",
    "assign_folds": "protgraph.data.datasets.folds",
    "fold_datasets": "protgraph.data.datasets.folds",
    "held_out": "protgraph.data.datasets.dataset",
    "align": "protgraph.data.datasets.labels",
    "assign_random_splits": "protgraph.data.datasets.splits",
    "group_split": "protgraph.data.datasets.splits",
    "interpret_column": "protgraph.data.datasets.label_column",
    "linked_groups": "protgraph.data.datasets.splits",
    "load_card": "protgraph.data.datasets.card",
    "order_splits": "protgraph.data.datasets.splits",
    "parse_card": "protgraph.data.datasets.card",
    "parse_residue_numbers": "protgraph.data.datasets.label_table",
    "read_cells": "protgraph.data.datasets.label_table",
    "resplit": "protgraph.data.datasets.dataset",
    "read_label_table": "protgraph.data.datasets.label_table",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)

"""Graphs, graph stores and datasets: the field table, batching, storage, labels and splits."""

from protgraph.data.datasets import Dataset, DatasetCard, Example, FolderDataset, Target, align, load_card
from protgraph.data.graph import (
    Conformity,
    FieldSpec,
    ProteinGraph,
    collate,
    field,
    field_table,
    from_frames,
    from_networkx,
    from_pyg,
    register_field,
    to_frames,
    to_networkx,
    to_pyg,
)
from protgraph.data.store import GraphStore, ProteinBatches, write_store
from protgraph.ops import Edges, Proteins

__all__ = [
    "Conformity",
    "Dataset",
    "DatasetCard",
    "Edges",
    "Example",
    "FieldSpec",
    "FolderDataset",
    "GraphStore",
    "ProteinBatches",
    "ProteinGraph",
    "Proteins",
    "Target",
    "align",
    "collate",
    "field",
    "field_table",
    "from_frames",
    "from_networkx",
    "from_pyg",
    "load_card",
    "register_field",
    "to_frames",
    "to_networkx",
    "to_pyg",
    "write_store",
]

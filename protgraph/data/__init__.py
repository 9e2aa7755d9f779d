"""Graphs, graph stores and datasets: the field table, batching, storage, labels and splits.

Names are imported on first use (PEP 562): datasets import biotite, which layers do not need.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module.
_HOME = {
    "Conformity": "protgraph.data.graph",
    "Dataset": "protgraph.data.datasets",
    "DatasetCard": "protgraph.data.datasets",
    "add_derived_task": "protgraph.data.datasets",
    "Edges": "protgraph.ops",
    "Example": "protgraph.data.datasets",
    "FieldSpec": "protgraph.data.graph",
    "FolderDataset": "protgraph.data.datasets",
    "GraphStore": "protgraph.data.store",
    "ProteinBatches": "protgraph.data.store",
    "ProteinGraph": "protgraph.data.graph",
    "ProteinLabels": "protgraph.data.datasets",
    "Proteins": "protgraph.ops",
    "ResidueLabels": "protgraph.data.datasets",
    "SplitCount": "protgraph.data.datasets",
    "Target": "protgraph.data.datasets",
    "TaskCard": "protgraph.data.datasets",
    "align": "protgraph.data.datasets",
    "collate": "protgraph.data.graph",
    "field": "protgraph.data.graph",
    "field_table": "protgraph.data.graph",
    "from_pyg": "protgraph.data.graph",
    "load_card": "protgraph.data.datasets",
    "pack": "protgraph.data.store.loader",
    "register_field": "protgraph.data.graph",
    "to_frames": "protgraph.data.graph",
    "to_networkx": "protgraph.data.graph",
    "to_pyg": "protgraph.data.graph",
    "write_store": "protgraph.data.store",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)

"""Protein graphs: the field table, graphs and batches, atom graphs, conversion to other libraries.

Names are imported on first use (PEP 562): cards of datasets read the field table, which needs no torch.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "Conformity": "protgraph.data.graph.conformity",
    "FieldSpec": "protgraph.data.graph.fields",
    "ProteinGraph": "protgraph.data.graph.protein_graph",
    "collate": "protgraph.data.graph.protein_graph",
    "edge_set_of": "protgraph.data.graph.fields",
    "field": "protgraph.data.graph.fields",
    "field_table": "protgraph.data.graph.fields",
    "from_pyg": "protgraph.data.graph.convert",
    "is_registered": "protgraph.data.graph.fields",
    "labels_on_nodes": "protgraph.data.graph.protein_graph",
    "make_batch": "protgraph.data.graph.protein_graph",
    "node_names": "protgraph.data.graph.convert",
    "node_sets_of": "protgraph.data.graph.fields",
    "register_field": "protgraph.data.graph.fields",
    "residue_nodes": "protgraph.data.graph.protein_graph",
    "set_attributes": "protgraph.data.graph.protein_graph",
    "shared_fields": "protgraph.data.graph.protein_graph",
    "to_frames": "protgraph.data.graph.convert",
    "to_networkx": "protgraph.data.graph.convert",
    "to_pyg": "protgraph.data.graph.convert",
}

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)

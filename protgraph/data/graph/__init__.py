"""Protein graphs: the field table, graphs and batches, atom graphs, conversion to other libraries."""

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.convert import (
    from_pyg,
    node_names,
    to_frames,
    to_networkx,
    to_pyg,
)
from protgraph.data.graph.fields import (
    FieldSpec,
    edge_set_of,
    field,
    field_table,
    is_registered,
    node_sets_of,
    register_field,
)
from protgraph.data.graph.protein_graph import (
    ProteinGraph,
    collate,
    labels_on_nodes,
    make_batch,
    residue_nodes,
    set_attributes,
    shared_fields,
)

__all__ = [
    "Conformity",
    "FieldSpec",
    "ProteinGraph",
    "collate",
    "edge_set_of",
    "field",
    "field_table",
    "from_pyg",
    "is_registered",
    "labels_on_nodes",
    "make_batch",
    "node_names",
    "node_sets_of",
    "register_field",
    "residue_nodes",
    "set_attributes",
    "shared_fields",
    "to_frames",
    "to_networkx",
    "to_pyg",
]

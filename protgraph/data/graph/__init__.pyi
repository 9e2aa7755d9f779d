# Written by tools/stubs.py.
from protgraph.data.graph.conformity import Conformity as Conformity
from protgraph.data.graph.convert import (
    from_pyg as from_pyg,
    node_names as node_names,
    to_frames as to_frames,
    to_networkx as to_networkx,
    to_pyg as to_pyg,
)
from protgraph.data.graph.fields import (
    FieldSpec as FieldSpec,
    edge_set_of as edge_set_of,
    field as field,
    field_table as field_table,
    is_registered as is_registered,
    node_sets_of as node_sets_of,
    register_field as register_field,
)
from protgraph.data.graph.protein_graph import (
    ProteinGraph as ProteinGraph,
    collate as collate,
    labels_on_nodes as labels_on_nodes,
    make_batch as make_batch,
    residue_nodes as residue_nodes,
    set_attributes as set_attributes,
    shared_fields as shared_fields,
)

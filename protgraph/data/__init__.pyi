# Written by tools/stubs.py.
from protgraph.data.datasets import (
    Dataset as Dataset,
    DatasetCard as DatasetCard,
    Example as Example,
    FolderDataset as FolderDataset,
    ProteinLabels as ProteinLabels,
    ResidueLabels as ResidueLabels,
    SplitCount as SplitCount,
    Target as Target,
    TaskCard as TaskCard,
    add_derived_task as add_derived_task,
    align as align,
    load_card as load_card,
)
from protgraph.data.graph import (
    Conformity as Conformity,
    FieldSpec as FieldSpec,
    ProteinGraph as ProteinGraph,
    collate as collate,
    field as field,
    field_table as field_table,
    from_pyg as from_pyg,
    register_field as register_field,
    to_frames as to_frames,
    to_networkx as to_networkx,
    to_pyg as to_pyg,
)
from protgraph.data.store import GraphStore as GraphStore, ProteinBatches as ProteinBatches, write_store as write_store
from protgraph.data.store.loader import pack as pack
from protgraph.ops import Edges as Edges, Proteins as Proteins

# Written by tools/stubs.py.
from protgraph.data.datasets.card import (
    DatasetCard as DatasetCard,
    SourceRepository as SourceRepository,
    SplitCount as SplitCount,
    TaskCard as TaskCard,
    load_card as load_card,
    parse_card as parse_card,
)
from protgraph.data.datasets.dataset import (
    Dataset as Dataset,
    Example as Example,
    LabelRows as LabelRows,
    TableDataset as TableDataset,
    add_derived_task as add_derived_task,
    held_out as held_out,
    resplit as resplit,
)
from protgraph.data.datasets.description import DatasetDescription as DatasetDescription
from protgraph.data.datasets.folder import FolderDataset as FolderDataset
from protgraph.data.datasets.folds import assign_folds as assign_folds, fold_datasets as fold_datasets
from protgraph.data.datasets.graph_list import GraphListDataset as GraphListDataset
from protgraph.data.datasets.label_column import LabelColumn as LabelColumn, interpret_column as interpret_column
from protgraph.data.datasets.label_table import (
    LabelTable as LabelTable,
    parse_residue_numbers as parse_residue_numbers,
    read_cells as read_cells,
    read_label_table as read_label_table,
)
from protgraph.data.datasets.labels import (
    Labels as Labels,
    PairLabels as PairLabels,
    ProteinLabels as ProteinLabels,
    ResidueLabels as ResidueLabels,
    absent_residues_error as absent_residues_error,
    align as align,
)
from protgraph.data.datasets.splits import (
    FRACTIONS as FRACTIONS,
    SplitUnit as SplitUnit,
    assign_random_splits as assign_random_splits,
    group_split as group_split,
    linked_groups as linked_groups,
    order_splits as order_splits,
)
from protgraph.data.datasets.target import Target as Target

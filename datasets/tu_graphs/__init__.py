"""tu_enzymes and tu_proteins: protein graphs of TUDataset."""

from protgraph_datasets.tu_graphs.dataset import TuEnzymes, TuProteins

__all__ = ["TuEnzymes", "TuProteins"]

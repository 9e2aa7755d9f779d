"""structure_chains: chains without labels from other datasets, without relatives of their held-out splits."""

from protgraph_datasets.structure_chains.dataset import StructureChains

__all__ = ["StructureChains"]

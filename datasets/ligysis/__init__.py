"""ligysis: 4,435 human protein chains in clusters of homologs."""

from protgraph_datasets.ligysis.dataset import Ligysis

__all__ = ["Ligysis"]

"""ppi_site: residues of protein-protein interfaces, Test_60 of GraphPPIS."""

from protgraph_datasets.ppi_site.dataset import PpiSite

__all__ = ["PpiSite"]

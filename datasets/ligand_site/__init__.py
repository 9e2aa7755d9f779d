"""ligand_site: residues that bind small molecules, of structures without their ligands."""

from protgraph_datasets.ligand_site.dataset import LigandSite, LigandSiteDsdp

__all__ = ["LigandSite", "LigandSiteDsdp"]

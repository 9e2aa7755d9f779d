"""dna_site: DNA-binding residues on AlphaFold 2 models of single chains."""

from protgraph_datasets.dna_site.dataset import DnaSite

__all__ = ["DnaSite"]

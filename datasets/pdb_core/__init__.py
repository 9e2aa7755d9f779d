"""pdb_core: 259 real PDB entries with homology-aware splits and labels for ten tasks; see README.md."""

from protgraph_datasets.pdb_core.dataset import PdbCore

__all__ = ["PdbCore"]

"""ligand_site: residues that bind small molecules, of structures without their ligands."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it. Help of the command of this folder does not import the datasets, and torch.
_HOME = {
    "LigandSite": "protgraph_datasets.ligand_site.dataset",
    "LigandSiteDsdp": "protgraph_datasets.ligand_site.dataset",
}

__all__ = [*_HOME]
__getattr__, __dir__ = lazy_names(__name__, _HOME)

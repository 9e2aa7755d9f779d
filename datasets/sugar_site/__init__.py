"""sugar_site: residues that touch a carbohydrate, crystal structures without their ligands."""

from protgraph_datasets.sugar_site.dataset import SugarSite

__all__ = ["SugarSite"]

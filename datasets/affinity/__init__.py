"""affinity: pockets with their ligands, and how tightly these bind."""

from protgraph_datasets.affinity.dataset import Affinity

__all__ = ["Affinity"]

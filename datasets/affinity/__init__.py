"""affinity: pockets with their ligands, and how tightly these bind."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it. Help of the command of this folder does not import the dataset, and torch.
_HOME = {"Affinity": "protgraph_datasets.affinity.dataset"}

__all__ = [*_HOME]
__getattr__, __dir__ = lazy_names(__name__, _HOME)

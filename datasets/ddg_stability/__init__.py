"""Change of the folding free energy on mutation: a training set without homologs of S669, Ssym and S461, and these."""

from protgraph_datasets.ddg_stability.dataset import DdgS461, DdgSsym, DdgStability

__all__ = ["DdgS461", "DdgSsym", "DdgStability"]

"""Change of the binding free energy on mutation: SKEMPI v2 with published held-out groups."""

from protgraph_datasets.ddg_binding.dataset import DdgBinding

__all__ = ["DdgBinding"]

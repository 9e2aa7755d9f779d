"""Change of the folding free energy on mutation: a test set from the Mega-scale experiments."""

from protgraph_datasets.ddg_megascale.dataset import DdgMegascale

__all__ = ["DdgMegascale"]

"""scop_fold: SCOPe fold and class of single-domain chains."""

from protgraph_datasets.scop_fold.dataset import ScopFold

__all__ = ["ScopFold"]

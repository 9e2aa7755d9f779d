"""model_quality: lDDT per residue and global scores of predicted CA models."""

from protgraph_datasets.model_quality.dataset import ModelQuality

__all__ = ["ModelQuality"]

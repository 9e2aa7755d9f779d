"""Base class of datasets that change tasks or splits of another dataset."""

from __future__ import annotations

from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.structure.residues.residues import Residues

__all__ = ["WrappedDataset"]


class WrappedDataset(Dataset):
    """Dataset whose proteins another dataset reads.

    Parameters
    ----------
    base : Dataset
    """

    def __init__(self, base: Dataset) -> None:
        self.base, self.read_options = base, base.read_options

    @property
    def source(self) -> Dataset:
        """The dataset that reads the proteins."""
        return self.base.source

    @property
    def reads_files(self) -> bool:
        """Whether the base dataset leaves reading to the pipeline."""
        return self.base.reads_files

    def links(self, example: Example) -> frozenset[str]:
        """Return the links of an example in the base dataset."""
        return self.base.links(example)

    def read(self, example: Example) -> Residues:
        """Return the residues of one protein, read by the base dataset."""
        return self.base.read(example)

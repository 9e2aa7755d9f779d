"""Dataset to train on, for a task whose own dataset has no training split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, StrictStr

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset

__all__ = ["TrainingData"]


class TrainingData(BaseModel):
    """Registered dataset and its task; ``[train_on.TASK]`` in a spec.

    Parameters
    ----------
    dataset, task : str
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: StrictStr
    task: StrictStr

    def add_to(self, dataset: Dataset, task: str) -> Dataset:
        """Return a dataset with the splits train and val of this one, without homologs of its proteins.

        Raises
        ------
        DatasetError
            The dataset has a training split, or this one does not fit.
        """
        from protgraph.train.evaluation_dataset import train_on_other
        from protgraph.train.resolve import load_dataset

        return train_on_other(dataset, task, load_dataset(self.dataset, task=self.task), self.task)

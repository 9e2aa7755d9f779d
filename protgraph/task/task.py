"""What a task is: its target, what a model sees, how labels are had, the loss and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.labels import Labels, align
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, LabelError
from protgraph.ops import Proteins
from protgraph.task import metrics as m
from protgraph.task.input_masking import InputMasking
from protgraph.task.losses import binary_cross_entropy, cross_entropy, squared_error
from protgraph.task.metrics import Metric
from protgraph.task.predictions import SplitPredictions

if TYPE_CHECKING:
    from protgraph.structure.residues.residues import Residues

__all__ = ["Task", "default_task"]


@dataclass(frozen=True)
class Task:
    """A question asked of a model.

    Parameters
    ----------
    name : str
        Registry name.
    target : Target
        What is predicted; it chooses the head.
    loss : callable
        ``(logits, y)`` to a scalar, over known labels.
    metrics : tuple of Metric
        What tables show.
    monitor : str
        Name of the metric that chooses among epochs, on validation.
    inputs : InputMasking
        What a model may see of a protein.
    decoder_inputs : InputMasking, optional
        What a model that ends in a decoder is given in place of that; None gives it the same.
    derive : callable, optional
        Residues, nothing hidden, to their labels, for datasets that give none of their own.
    restore : callable, optional
        In place of ``derive``: residues as they are, and as a model sees them, to labels.
    stored_target : Target, optional
        What is prepared of each protein in place of labels, where ``inputs.corrupt`` makes those of it.
    loss_per_protein : bool
        Whether the loss is one of the rows of one protein; a batch's is then the mean over its proteins.
    select_rows : callable, optional
        Which rows of one protein's :class:`~protgraph.task.SplitPredictions` its metrics need, ``(K,)`` int64, where there are
        too many to keep all.
    doc : str
        What is asked, and where the labels come from.
    """

    name: str
    target: Target
    loss: Callable[[Tensor, Tensor], Tensor] = field(repr=False)
    metrics: tuple[Metric, ...]
    monitor: str
    inputs: InputMasking = field(default_factory=InputMasking)
    decoder_inputs: InputMasking | None = None
    derive: Callable[[Residues], np.ndarray] | None = field(default=None, repr=False)
    restore: Callable[[Residues, Residues], np.ndarray] | None = field(default=None, repr=False)
    stored_target: Target | None = field(default=None, repr=False)
    loss_per_protein: bool = False
    select_rows: Callable[[SplitPredictions], Tensor] | None = field(default=None, repr=False)
    doc: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", tuple(self.metrics))
        names = [metric.name for metric in self.metrics]
        if self.monitor not in names:
            raise DatasetError(f"task {self.name!r}: monitor {self.monitor!r} is none of its metrics {names}")
        if self.stored_target is not None and self.inputs.corrupt is None:
            raise DatasetError(f"task {self.name!r}: stored_target {self.stored_target.name!r} and has no inputs.corrupt for labels")

    @property
    def mode(self) -> Literal["max", "min"]:
        """Which way of the monitored metric is better."""
        return next(metric.mode for metric in self.metrics if metric.name == self.monitor)

    @property
    def has_threshold(self) -> bool:
        """Whether labels are yes or no, so that a threshold has to be chosen on validation; a pair's is one half."""
        return self.target.kind == "multilabel" and self.target.level != "pair"

    @property
    def derives_labels(self) -> bool:
        """Whether labels follow from the structure or sequence, where a dataset gives none."""
        return self.derive is not None or self.restore is not None

    @property
    def stored(self) -> Target:
        """What the labels of a prepared protein are."""
        return self.stored_target or self.target

    def batch_loss(self, loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, batch: Data) -> Tensor:
        """A loss of this task's kind over a graph or batch."""
        if not self.loss_per_protein:
            return loss(logits, y)
        sizes = Proteins.from_graph(batch).sizes
        return torch.stack([loss(*one) for one in zip(logits.split(sizes), y.split(sizes), strict=True)]).mean()

    def for_decoder(self) -> Task:
        """Return this task with the inputs for a model that ends in a decoder."""
        if self.decoder_inputs is None or self.inputs is self.decoder_inputs:
            return self
        return replace(self, inputs=self.decoder_inputs)

    def labels(
        self,
        residues: Residues,
        given: Labels | None = None,
        *,
        seen: Residues | None = None,
        strict: bool = True,
    ) -> np.ndarray:
        """The labels of one protein as its target defines them, or what is kept to make them of.

        Parameters
        ----------
        residues : Residues
            The protein as it was read: nothing hidden yet.
        given : Labels, optional
            The dataset's labels; None derives them from the structure.
        seen : Residues, optional
            The same protein as a model sees it, where the task restores what it was.
        strict : bool
            Whether a label of a residue that is not there is an error.

        Returns
        -------
        ndarray
            Classes ``(N,)`` int64 with −1 for unknown; labels and values ``(N, C)``, vectors and coordinates
            ``(N, C, 3)``, float32 with NaN.

        Raises
        ------
        LabelError
            No labels, labels of absent residues, or labels that do not fit the target.
        """
        if given is not None:
            y = align(given, residues, strict=strict)
        elif self.restore is not None and seen is not None:
            y = self.restore(residues, seen)
        elif self.derive is not None:
            y = self.derive(residues)
        else:
            raise LabelError(f"task {self.name!r} needs labels of {residues.name!r}; it derives none from a structure")
        self._check(y, residues.name)
        return y

    def _check(self, y: np.ndarray, protein: str) -> None:
        target = self.stored
        where, size = f"task {self.name!r}: labels of {protein!r}", target.size
        columns = f"{size} columns" + " of x, y, z" * target.is_geometric
        if target.kind == "classification":
            if y.ndim != 1 or y.dtype.kind != "i":
                raise LabelError(f"{where} are {y.dtype} {y.shape}; classes are integers, one a row")
            if y.size and (y.min() < -1 or y.max() >= size):
                raise LabelError(f"{where} lie in {y.min()}…{y.max()}; classes are 0…{size - 1}, and −1 for unknown")
        elif y.shape[1:] != target.shape or y.dtype.kind != "f":
            raise LabelError(f"{where} are {y.dtype} {y.shape}; {target.kind} are floats with {columns}")
        elif target.kind == "multilabel" and not np.isin(y[~np.isnan(y)], (0, 1)).all():
            raise LabelError(f"{where} have other values than 0 and 1 (NaN: unknown)")


def default_task(target: Target, *, hidden: Collection[str] = ()) -> Task:
    """The usual task of a target, for labels of one's own: loss and metrics follow from its kind.

    Parameters
    ----------
    target : Target
        What is predicted.
    hidden : collection of str
        What the inputs must not show.

    Examples
    --------
    >>> default_task(Target("active", level="node", kind="multilabel", size=1)).monitor
    'auprc'
    """
    if target.kind == "classification":
        loss, metrics, monitor = cross_entropy, (m.accuracy, m.macro_f1), "accuracy"
    elif target.kind == "multilabel":
        loss, metrics, monitor = binary_cross_entropy, (m.auprc, m.auroc, m.mcc), "auprc"
    elif target.is_geometric:
        loss, metrics, monitor = squared_error, (m.rmsd,), "rmsd"
    else:
        loss, metrics, monitor = squared_error, (m.rmse, m.mae, m.pearson_overall), "rmse"
    return Task(target.name, target, loss, metrics, monitor, InputMasking(hidden))

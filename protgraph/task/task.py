"""Task definition: target, input masking, source of labels, loss and metrics."""

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
    """A prediction problem: target, inputs, labels, loss and metrics.

    Parameters
    ----------
    name : str
        Registry name.
    target : Target
        Quantity to predict; it selects the head.
    loss : callable
        ``(logits, y)`` to a scalar, a mean over known labels.
    metrics : tuple of Metric
        Metrics in tables.
    monitor : str
        Name of the metric that selects the best epoch on validation.
    inputs : InputMasking
        Parts of a protein that a model may read.
    decoder_inputs : InputMasking, optional
        Replaces ``inputs`` for a model that ends in a decoder.
    derive : callable, optional
        From complete residues to their labels, for datasets without labels.
    restore : callable, optional
        Replaces ``derive``: from complete residues and from what the model reads of them, to labels.
    stored_target : Target, optional
        Target that is prepared for each protein if ``inputs.corrupt`` computes the labels from it.
    loss_per_protein : bool
        Compute the loss protein by protein; the loss of a batch is their mean.
    select_rows : callable, optional
        Returns the rows ``(K,)`` int64 of one protein's :class:`~protgraph.task.SplitPredictions` that its metrics
        need, if there are too many to keep all.
    doc : str
        Description: what is predicted, and where labels come from.
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
            raise DatasetError(f"task {self.name!r}: monitor {self.monitor!r} is not one of its metrics {names}")
        if self.stored_target is not None and self.inputs.corrupt is None:
            raise DatasetError(
                f"task {self.name!r} has stored_target {self.stored_target.name!r} but no inputs.corrupt, which "
                "computes the labels from it."
            )

    @property
    def mode(self) -> Literal["max", "min"]:
        """Direction in which the monitored metric improves."""
        return next(metric.mode for metric in self.metrics if metric.name == self.monitor)

    @property
    def has_threshold(self) -> bool:
        """Whether a threshold is chosen on validation: for yes/no labels, except those of pairs (probability 0.5)."""
        return self.target.kind == "multilabel" and self.target.level != "pair"

    @property
    def derives_labels(self) -> bool:
        """Whether labels can be derived from the structure or sequence."""
        return self.derive is not None or self.restore is not None

    @property
    def stored(self) -> Target:
        """Target of the prepared labels."""
        return self.stored_target or self.target

    def batch_loss(self, loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, batch: Data) -> Tensor:
        """Compute the loss of a graph or batch, protein by protein if the task requires it."""
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
        """Return the labels of one protein, or the data from which ``inputs.corrupt`` computes them.

        Parameters
        ----------
        residues : Residues
            The complete protein.
        given : Labels, optional
            Labels of the dataset; None derives them from the structure.
        seen : Residues, optional
            The same protein after input masking, if the task has ``restore``.
        strict : bool
            Whether a label of an absent residue raises.

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
            raise LabelError(
                f"task {self.name!r} needs labels of {residues.name!r}, and cannot derive them from a structure."
            )
        self._check(y, residues.name)
        return y

    def _check(self, y: np.ndarray, protein: str) -> None:
        target = self.stored
        where, size = f"task {self.name!r}: labels of {protein!r}", target.size
        columns = f"{size} columns" + " of x, y, z" * target.is_geometric
        if target.kind == "classification":
            if y.ndim != 1 or y.dtype.kind != "i":
                raise LabelError(f"{where} are {y.dtype} {y.shape}. Classes are one integer per row.")
            if y.size and (y.min() < -1 or y.max() >= size):
                raise LabelError(f"{where} lie in {y.min()}…{y.max()}. Classes are 0 to {size - 1}, and −1 if unknown.")
        elif y.shape[1:] != target.shape or y.dtype.kind != "f":
            raise LabelError(f"{where} are {y.dtype} {y.shape}. For {target.kind} they are floats with {columns}.")
        elif target.kind == "multilabel" and not np.isin(y[~np.isnan(y)], (0, 1)).all():
            raise LabelError(f"{where} have other values than 0, 1 and NaN (unknown).")


def default_task(target: Target, *, hidden: Collection[str] = ()) -> Task:
    """Create a task for user labels, with loss and metrics of the kind of the target.

    Parameters
    ----------
    target : Target
        Quantity to predict.
    hidden : collection of str
        Parts of a structure to remove from the inputs; see :class:`InputMasking`.

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

"""Task definition: target, input masking, source of labels, loss and metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.argument_types import check_fields
from protgraph.data.datasets.labels import Labels, align
from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import irreps_columns
from protgraph.errors import DatasetError, LabelError
from protgraph.ops import Proteins
from protgraph.registry.component_fault import ComponentScope
from protgraph.task import metrics as m
from protgraph.task.input_masking import InputMasking
from protgraph.task.losses import binary_cross_entropy, cross_entropy, squared_error
from protgraph.task.metrics import Metric
from protgraph.task.predictions import SplitPredictions

if TYPE_CHECKING:
    from protgraph.featurize.steps import GraphStep
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
    make_graph : GraphStep, optional
        Makes the graph of an example that is not a whole protein, e.g. of the surroundings of mutated residues, from
        the visible part of the protein; ``request.data`` is the labels of the dataset.
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
    make_graph: GraphStep | None = field(default=None, repr=False)
    loss_per_protein: bool = False
    select_rows: Callable[[SplitPredictions], Tensor] | None = field(default=None, repr=False)
    doc: str = ""

    def __post_init__(self) -> None:
        check_fields(self, "name", "target", "loss", "metrics", "monitor", "inputs", error=DatasetError)
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
        """Whether a threshold is chosen on validation: for yes/no labels, unless only some rows are kept."""
        return self.target.kind == "multilabel" and self.select_rows is None

    @property
    def derives_labels(self) -> bool:
        """Whether labels can be derived from the structure or sequence."""
        return self.derive is not None or self.restore is not None

    @property
    def stored(self) -> Target:
        """Target of the prepared labels."""
        return self.stored_target or self.target

    def batch_loss(self, loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, batch: Data) -> Tensor:
        """Compute the loss, a scalar, of a graph or batch, protein by protein if the task requires it.

        ``logits`` is ``(M, C)`` or ``(M, C, 3)``, and ``y`` ``(M,)`` classes or of the shape of the logits.
        """
        if not self.loss_per_protein:
            return self.compute_loss(loss, logits, y)
        sizes = Proteins.from_graph(batch).sizes
        parts = zip(logits.split(sizes), y.split(sizes), strict=True)
        return torch.stack([self.compute_loss(loss, *one) for one in parts]).mean()

    def compute_loss(self, loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor) -> Tensor:
        """Call a loss function for this task, and return a scalar.

        ``logits`` is ``(M, C)`` or ``(M, C, 3)``, and ``y`` ``(M,)`` classes or of the shape of the logits.

        Raises :class:`ComponentError` if it raises an error, or does not return a scalar.
        """
        with ComponentScope("task", self.name, loss, action="loss") as scope:
            value = loss(logits, y)
            if not isinstance(value, Tensor) or value.dim():
                found = (
                    f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"as a {type(value).__name__}"
                )
                raise scope.returned(f"returns a value {found}", allowed="Return a scalar, the mean over known labels.")
        return value

    def for_decoder(self) -> Task:
        """Return this task with the inputs for a model that ends in a decoder."""
        if self.decoder_inputs is None or self.inputs is self.decoder_inputs:
            return self
        return replace(self, inputs=self.decoder_inputs)

    def labels(
        self,
        residues: Residues,
        dataset_labels: Labels | None = None,
        *,
        seen: Residues | None = None,
        strict: bool = True,
    ) -> np.ndarray:
        """Return the labels of one protein, or the data from which ``inputs.corrupt`` computes them.

        ``residues``: the complete protein. ``dataset_labels``: labels of the dataset; None derives them from the
        structure. ``seen``: the same protein after input masking, if the task has ``restore``. ``strict``: whether a
        label of an absent residue raises. Returns classes ``(N,)`` int64 with −1 for unknown; labels and values ``(N,
        C)``, vectors and coordinates ``(N, C, 3)``, float32 with NaN. Raises :class:`LabelError` if there are no
        labels, labels of absent residues, or labels that do not fit the target. Raises :class:`ComponentError` if
        ``derive`` or ``restore`` raises an error, or its result does not fit the target.
        """
        if dataset_labels is not None:
            y = align(dataset_labels, residues, strict=strict)
            if problem := self._problem(y, residues):
                raise LabelError(f"task {self.name!r}: labels of {residues.name!r} {'. '.join(problem)}")
            return y
        if self.restore is not None and seen is not None:
            return self._derived(self.restore, residues, seen)
        if self.derive is not None:
            return self._derived(self.derive, residues)
        raise LabelError(
            f"task {self.name!r} needs labels of {residues.name!r}, and cannot derive them from a structure."
        )

    def _derived(self, function: Callable[..., np.ndarray], *proteins: Residues) -> np.ndarray:
        """Return derived labels; the function gets read-only arrays."""
        action = "restore" if function is self.restore else "derive"
        with ComponentScope("task", self.name, function, action=action, protein=proteins[0].name) as scope:
            y = function(*(one.read_only() for one in proteins))
            if not isinstance(y, np.ndarray):
                raise scope.returned(f"returns {'None' if y is None else f'a {type(y).__name__}'}", allowed=_ARRAY)
            if problem := self._problem(y, proteins[0]):
                raise scope.returned(f"returns labels that {problem[0]}", allowed=problem[1])
        return y

    def _problem(self, y: np.ndarray, residues: Residues) -> tuple[str, str] | None:
        """Return what is wrong with labels, and what is allowed; None if they fit the target."""
        target = self.stored
        rows = {"node": len(residues), "graph": 1, "pair": len(residues) ** 2}.get(
            target.level, len(y) if y.ndim else 0
        )
        form = f"{y.dtype} {y.shape}"
        each = {"node": "one row per residue", "graph": "one row", "pair": "one row per ordered pair of residues"}
        count = f"{each.get(target.level, 'one row per edge')}"
        if target.kind == "classification":
            if y.shape != (rows,) or y.dtype.kind != "i":
                return f"are {form}", f"Classes are integers ({rows},), {count}."
            if y.size and (y.min() < -1 or y.max() >= target.size):
                return (
                    f"lie in {y.min()}…{y.max()}",
                    f"Classes are 0 to {target.size - 1}, and −1 if unknown.",
                )
        elif y.shape != (rows, *target.shape) or y.dtype.kind != "f":
            return f"are {form}", f"For {target.kind} they are floats {(rows, *target.shape)}, {count}."
        elif target.kind == "multilabel" and not np.isin(y[~np.isnan(y)], (0, 1)).all():
            return "have other values than 0, 1 and NaN", "NaN is unknown."
        return None


_ARRAY = "Return a numpy array of the labels."


def default_task(target: Target, *, hidden: Collection[str] = ()) -> Task:
    """Create a task for user labels, with loss and metrics of the kind of the target.

    ``target``: quantity to predict. ``hidden``: parts of a structure to remove from the inputs; see
    :class:`InputMasking`.

    Examples
    --------
    >>> default_task(Target("active", level="node", kind="multilabel", size=1)).monitor
    'auprc'
    """
    loss: Callable[..., Tensor]
    metrics: tuple[Metric, ...]
    if target.kind == "classification":
        loss, metrics, monitor = cross_entropy, (m.accuracy, m.macro_f1), "accuracy"
    elif target.kind == "multilabel":
        loss, metrics, monitor = binary_cross_entropy, (m.auprc, m.auroc, m.mcc), "auprc"
    elif target.is_geometric:
        loss, metrics, monitor = squared_error, (m.rmsd,), "rmsd"
    elif target.irreps:
        loss, metrics, monitor = squared_error, _metrics_of_irreps(target), "rms_error"
    elif target.size == 1:
        loss, metrics, monitor = squared_error, (m.rmse, m.mae, m.pearson_overall), "rmse"
    else:
        # the error of one value must not hide that of another in a smaller unit
        loss, metrics, monitor = squared_error, _metrics_of_values(target), "nrmse"
    return Task(target.name, target, loss, metrics, monitor, InputMasking(hidden))


def _metrics_of_values(target: Target) -> tuple[Metric, ...]:
    """Return the metrics of a regression with several values: means over the values, then those of each value."""
    shared = (m.rmse, m.mae, m.pearson_overall)
    names = target.names or tuple(map(str, range(target.size)))
    single = [m.metric_of_values(metric, [number], name) for number, name in enumerate(names) for metric in shared]
    return (m.nrmse, *shared, *single)


def _metrics_of_irreps(target: Target) -> tuple[Metric, ...]:
    """Return the error of all values of a regression, and that of each term of its irreps, e.g. of "1x1o"."""
    metrics, first = [m.rms_error], 0
    terms = target.irreps.replace(" ", "").split("+")
    for term in terms if len(terms) > 1 else []:
        width = len(irreps_columns(term))
        metrics.append(m.metric_of_values(m.rms_error, range(first, first + width), term))
        first += width
    return tuple(metrics)

"""Result of a training run: the model of the best epoch, its metrics, history and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from protgraph.checkpoint.adapters import Adapters
from protgraph.checkpoint.checkpoint_file import Checkpoint, save_checkpoint
from protgraph.checkpoint.starting_point import StartingPoint
from protgraph.checkpoint.training_set import TrainingSetSummary
from protgraph.errors import OptionError
from protgraph.evaluation.bootstrap import SplitScores
from protgraph.evaluation.calibration import CalibrationMap
from protgraph.failure import Failure
from protgraph.inference.verification import with_stored_predictions
from protgraph.model.build import ProteinModel
from protgraph.model.summary import standardized_inputs
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.wording import count_noun, format_figure, html_table

__all__ = ["FitResult"]


@dataclass(frozen=True, eq=False)
class FitResult:
    """A trained model with its metrics and training history.

    Parameters
    ----------
    model : ProteinModel
        On the CPU, in evaluation mode, with the weights of the best epoch.
    task : Task
        With the inputs of a decoder if the model has one.
    metrics : mapping of str to mapping
        Split → metric → value: ``"val"``, and each split that is neither trained nor validated on (``"test"``),
        evaluated once.
    threshold : Tensor, optional
        ``(C,)`` log-odds from which a label is predicted, chosen on validation.
    confusion : mapping of str to Tensor
        For classification: tested split → ``(C, C)`` int64, rows are true and columns predicted classes.
    test_scores : mapping of str to SplitScores
        Tested split → the monitored metric for resampled proteins, with its interval.
    history : sequence of mapping
        One row per epoch: ``epoch`` from 1, ``train_loss``, ``val_loss`` and the metrics on validation.
    best_epoch : int
        The selected epoch, from 1.
    sizes : mapping of str to (int, int)
        Proteins and residues of each split.
    failures : tuple of Failure
        Proteins that could not be used.
    one_chain : bool
        True if every training example is a single chain.
    residues_per_second : float
        Training speed of all processes together, without validation.
    peak_memory : float
        MiB; see :func:`protgraph.process_memory.peak_memory`.
    seconds : float
        Duration of the whole call, preparation included.
    training_set : TrainingSetSummary, optional
        Descriptors of training proteins, to recognize inputs that are unlike them.
    calibration : CalibrationMap, optional
        Map from logits to probabilities, fitted on validation.
    notes : tuple of str
        Messages for the user, e.g. that features of a graph store are recomputed.
    start : StartingPoint, optional
        Trained weights from which the training started, with the parts that were loaded, resized and skipped.
    adapters : Adapters, optional
        Low-rank terms (option ``lora``) without the weights that they are added to; the model has the sums.
    interrupted : str
        Name of the signal that stopped the run, ``"SIGINT"`` or ``"SIGTERM"``; the best epoch so far was not tested.
    """

    model: ProteinModel
    task: Task
    config: FitConfig
    dataset: str
    dataset_version: str
    metrics: Mapping[str, Mapping[str, float]]
    threshold: Tensor | None
    confusion: Mapping[str, Tensor] = field(repr=False)
    test_scores: Mapping[str, SplitScores] = field(repr=False)
    history: Sequence[Mapping[str, float]] = field(repr=False)
    best_epoch: int
    sizes: Mapping[str, tuple[int, int]]
    failures: tuple[Failure, ...]
    one_chain: bool
    residues_per_second: float
    peak_memory: float
    seconds: float
    training_set: TrainingSetSummary | None = None
    calibration: CalibrationMap | None = None
    notes: tuple[str, ...] = ()
    interrupted: str = ""
    start: StartingPoint | None = None
    adapters: Adapters | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"FitResult of {self.summary()}"

    def _repr_html_(self) -> str:
        """Return the metrics of each split as a table, for notebooks."""
        names = list(dict.fromkeys(name for metrics in self.metrics.values() for name in metrics))
        rows = []
        for split, metrics in self.metrics.items():
            proteins, residues = self.sizes[split]
            rows.append((split, proteins, residues, *(metrics.get(name, "") for name in names)))
        title = f"{self.model.spec.name} on {self.task.name} of {self.dataset}"
        note = f"best epoch {self.best_epoch} of {self.epochs}, {self.parameters:,} parameters, {self.seconds:.3g} s"
        return html_table(title, ["split", "proteins", "residues", *names], rows, note=note)

    @property
    def test(self) -> Mapping[str, float]:
        """Metrics on the test split; empty if the dataset has none."""
        return self.metrics.get("test", {})

    @property
    def epochs(self) -> int:
        """Number of epochs run."""
        return len(self.history)

    @property
    def parameters(self) -> int:
        """Number of trained parameters."""
        return self.model.num_parameters

    def checkpoint(self) -> Checkpoint:
        """Return the model with everything needed to use it again."""
        # Residue types are given to a decoder one after the other.
        is_decoding = self.model.decoder is not None and self.task.decoder_inputs is not None
        return Checkpoint(
            model=self.model,
            task=self.task.name,
            hidden=self.task.inputs.hidden,
            one_chain=self.one_chain,
            visible_types=self.task.inputs.visible_types and not is_decoding,
            threshold=self.threshold,
            calibration=self.calibration,
            metrics=self.metrics,
            training_set=self.training_set,
            trained={
                "dataset": self.dataset,
                "dataset_version": self.dataset_version,
                "config": self.config.to_dict(),
                "best_epoch": self.best_epoch,
                "epochs": self.epochs,
                "standardized": standardized_inputs(self.model),
                "sizes": {split: list(size) for split, size in self.sizes.items()},
                **({"interrupted": self.interrupted} if self.interrupted else {}),
                **({} if self.start is None else {"start": self.start.to_dict()}),
            },
        )

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint file, and replace an existing one; see :func:`protgraph.checkpoint.save_checkpoint`.

        A run that was not interrupted stores predictions with it; see :func:`protgraph.inference.verify_model`.
        """
        checkpoint = self.checkpoint()
        return save_checkpoint(path, checkpoint if self.interrupted else with_stored_predictions(checkpoint))

    def save_adapters(self, path: str | Path) -> Path:
        """Write the low-rank terms and the head without the other weights, as a checkpoint that needs its base.

        The name or file of ``config.start_from`` must exist, and be the same, when the file is loaded.

        Raises
        ------
        OptionError
            The run had no option ``lora``.
        """
        if self.adapters is None:
            raise OptionError(
                "save_adapters: this run has no low-rank terms. Train with FitConfig(lora={'layers': 8})."
            )
        return save_checkpoint(path, self.checkpoint(), adapters=self.adapters)

    def summary(self) -> str:
        """Return lines of text: model, data, cost and metrics."""
        version = f", version {self.dataset_version}" if self.dataset_version else ""
        lines = [
            f"{self.model.spec.name} on {self.task.name} of {self.dataset}{version}",
            "  ".join(
                f"{split} {count_noun(p, 'protein')} {count_noun(n, 'residue')}" for split, (p, n) in self.sizes.items()
            ),
            f"best epoch {self.best_epoch} of {self.epochs}, {self.parameters} parameters, "
            f"{self.residues_per_second:.0f} residues/s, {self.peak_memory:.0f} MiB, {self.seconds:.1f} s",
        ]
        if self.start is not None:
            lines.append(f"started from {self.start.source}, {count_noun(len(self.start.loaded), 'part')} loaded")
        if self.adapters is not None:
            lines.append(f"low-rank terms: {100 * self.adapters.share:.2g} % of the parameters")
        for split, values in self.metrics.items():
            figures = "  ".join(f"{name} {format_figure(value)}" for name, value in values.items())
            lines.append(f"{split:5} {figures}")
        for split, scores in self.test_scores.items():
            lines += scores.summary(split)
        if standardized := standardized_inputs(self.model):
            lines.append(f"standardized inputs: {', '.join(standardized)}")
        if self.calibration is not None:
            lines.append(f"calibration: {self.calibration}")
        if self.failures:
            lines.append(f"{count_noun(len(self.failures), 'protein')} could not be used")
        return "\n".join(lines)

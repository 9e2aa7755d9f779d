"""Train a model on a task of a dataset, choose the best epoch on validation, and test that one once."""

from __future__ import annotations

import logging
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protgraph.data.datasets.dataset import Dataset
from protgraph.errors import DatasetError, MissingCoordinatesError, ProtgraphError
from protgraph.featurize.result import Failure
from protgraph.model.build import ProteinModel, build_model
from protgraph.model.spec import ModelSpec
from protgraph.task.metrics import compute_metrics, confusion_matrix
from protgraph.task.task import Task
from protgraph.train.causality_check import check_causal
from protgraph.train.checkpoint import Checkpoint, save_checkpoint
from protgraph.train.config import FitConfig
from protgraph.train.coordinate_noise import check_noise_allowed
from protgraph.train.evaluate import Batches, predict_split
from protgraph.train.head_init import initialize_head
from protgraph.train.peak_memory import peak_memory, reset_peak_memory
from protgraph.train.prepare import Prepared, prepare
from protgraph.train.resolve import load_dataset, resolve_task

if TYPE_CHECKING:
    from protgraph.train.module import FitModule

__all__ = ["FitResult", "fit"]


@dataclass(frozen=True, eq=False)
class FitResult:
    """A trained model and how it came about.

    Parameters
    ----------
    model : ProteinModel
        On the CPU, in evaluation mode, with the weights of the best epoch.
    task : Task
    config : FitConfig
    dataset, dataset_version : str
    metrics : mapping of str to mapping
        Split → metric → value: ``"val"``, and each split that is neither trained nor validated on (``"test"``),
        looked at once.
    threshold : Tensor, optional
        ``(C,)`` log-odds from which a label is predicted, chosen on validation.
    confusion : mapping of str to Tensor
        Of classes: split that was tested → ``(C, C)`` int64, how often the class of the row was predicted as that of
        the column.
    history : sequence of mapping
        One row an epoch: ``epoch`` from 1, ``train_loss``, ``val_loss`` and the metrics on validation.
    best_epoch : int
        The epoch that was kept, from 1.
    sizes : mapping of str to (int, int)
        Proteins and residues of each split.
    failures : tuple of Failure
        Proteins that could not be used.
    one_chain : bool
        Whether it was trained on single chains only.
    residues_per_second : float
        In training, validation left out.
    peak_memory : float
        MiB; see :func:`protgraph.train.peak_memory.peak_memory`.
    seconds : float
        The whole run, preparation included.
    """

    model: ProteinModel
    task: Task
    config: FitConfig
    dataset: str
    dataset_version: str
    metrics: Mapping[str, Mapping[str, float]]
    threshold: Tensor | None
    confusion: Mapping[str, Tensor] = field(repr=False)
    history: Sequence[Mapping[str, float]] = field(repr=False)
    best_epoch: int
    sizes: Mapping[str, tuple[int, int]]
    failures: tuple[Failure, ...]
    one_chain: bool
    residues_per_second: float
    peak_memory: float
    seconds: float

    @property
    def test(self) -> Mapping[str, float]:
        """Metrics on the test split; empty where the dataset has none."""
        return self.metrics.get("test", {})

    @property
    def epochs(self) -> int:
        """Epochs run."""
        return len(self.history)

    @property
    def parameters(self) -> int:
        """How many numbers the model learned."""
        return self.model.num_parameters

    def checkpoint(self) -> Checkpoint:
        """The model with all that it needs to be used again."""
        return Checkpoint(
            model=self.model,
            task=self.task.name,
            hidden=self.task.inputs.hidden,
            one_chain=self.one_chain,
            visible_types=self.task.inputs.visible_types,
            threshold=self.threshold,
            metrics=self.metrics,
            trained={
                "dataset": self.dataset,
                "dataset_version": self.dataset_version,
                "config": self.config.to_dict(),
                "best_epoch": self.best_epoch,
                "epochs": self.epochs,
                "sizes": {split: list(size) for split, size in self.sizes.items()},
            },
        )

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint file; see :func:`protgraph.train.save_checkpoint`."""
        return save_checkpoint(path, self.checkpoint())

    def summary(self) -> str:
        """A few lines to read: the model, the data, the metrics, the cost."""
        lines = [
            f"{self.model.spec.name} on {self.task.name} of {self.dataset} {self.dataset_version}".rstrip(),
            "  ".join(f"{split} {p} proteins {n} residues" for split, (p, n) in self.sizes.items()),
            f"best epoch {self.best_epoch} of {self.epochs}, {self.parameters} parameters, "
            f"{self.residues_per_second:.0f} residues/s, {self.peak_memory:.0f} MiB, {self.seconds:.1f} s",
        ]
        lines += [
            f"{split:5} " + "  ".join(f"{k} {v:.4f}" for k, v in found.items()) for split, found in self.metrics.items()
        ]
        if self.failures:
            lines.append(f"{len(self.failures)} proteins could not be used; the first: {self.failures[0].reason}")
        return "\n".join(lines)


def fit(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: str | Path | Dataset,
    task: str | Task,
    *,
    config: FitConfig | None = None,
    cache: str | Path | None = None,
    jobs: int = 1,
    progress: bool = False,
    on_epoch: Callable[[Mapping[str, float]], None] | None = None,
) -> FitResult:
    """Train a model; nothing is chosen on the test split, and nothing is written but prepared data in the cache.

    Parameters
    ----------
    model : str, ModelSpec or dict
        Registry name or the model graph itself.
    dataset : str, Path or Dataset
        Registry name, a folder of files for a task that needs no labels, or the dataset itself
        (:func:`protgraph.train.load_dataset` makes one of a folder and a table of labels). It needs the splits ``train``
        and ``val``.
    task : str or Task
        A task of the dataset.
    config : FitConfig, optional
    cache : str or Path, optional
        Folder of prepared data; see :func:`protgraph.train.prepare`.
    jobs : int
        Processes that read structure files.
    progress : bool
        Show a progress bar.
    on_epoch : callable, optional
        Given each epoch's row of the history.

    Examples
    --------
    >>> result = fit("gcn", "pdb_core", "secondary_structure", config=FitConfig(epochs=2))  # doctest: +SKIP
    >>> result.test["accuracy"]  # doctest: +SKIP
    """
    begun = time.perf_counter()
    config = config or FitConfig()
    device = config.torch_device()
    reset_peak_memory(device)
    dataset = load_dataset(dataset, task=task, cache=cache)
    task = resolve_task(task, dataset)
    built = build_model(model, task.target, seed=config.seed)
    if config.noise:
        check_noise_allowed(built.plan)
    asked = task if built.decoder is None else task.for_decoder()
    if "coordinates" in asked.inputs.hidden and built.needs_coordinates is not None:
        raise MissingCoordinatesError(
            f"task {task.name!r} shows the sequence alone, and {built.needs_coordinates} of model "
            f"{built.spec.name!r} needs a structure.\nTake a model that reads sequences, such as 'sequence_mlp'."
        )
    prepared = prepare(dataset, asked, built.plan, cache=cache, jobs=jobs)
    if "val" not in prepared.splits:
        raise DatasetError(
            f"dataset {dataset.name!r} has no protein in split 'val' for task {task.name!r}; "
            f"it has {', '.join(prepared.splits)}.\nThe best epoch is chosen on validation: put some proteins there."
        )
    if asked.inputs.causal:
        check_causal(built, prepared.splits["train"], asked)
    module = _train(built, asked, config, prepared, device, progress=progress, on_epoch=on_epoch)
    best = module.best
    built.load_state_dict(best.weights)
    built.to(device)
    tests = [split for split in prepared.splits if split not in ("train", "val")]
    said = {split: predict_split(built, prepared.splits[split], asked).with_threshold(best.threshold) for split in tests}
    metrics = {"val": dict(best.metrics)} | {split: compute_metrics(task.metrics, o) for split, o in said.items()}
    return FitResult(
        model=built.cpu().eval(),
        task=task,
        config=config,
        dataset=dataset.name,
        dataset_version=dataset.version,
        metrics=metrics,
        threshold=best.threshold,
        confusion={split: confusion_matrix(o) for split, o in said.items()} if task.target.kind == "classification" else {},
        history=tuple(module.history),
        best_epoch=best.epoch,
        sizes=prepared.sizes,
        failures=prepared.failures,
        one_chain=prepared.one_chain,
        residues_per_second=module.residues / max(module.seconds, 1e-9),
        peak_memory=peak_memory(device),
        seconds=time.perf_counter() - begun,
    )


def _train(
    model: ProteinModel,
    task: Task,
    config: FitConfig,
    prepared: Prepared,
    device: torch.device,
    *,
    progress: bool,
    on_epoch: Callable[[Mapping[str, float]], None] | None,
) -> FitModule:
    """Run Lightning's loop; the module it comes back with has seen a best epoch."""
    import lightning.pytorch as pl

    from protgraph.train.module import FitModule  # Lightning loads with it, and only to train

    train = prepared.splits["train"]
    batches = Batches(train, max_nodes=config.batch_residues, shuffle=True, seed=config.seed)
    loss = initialize_head(model.head, task, config, train)
    module = FitModule(model, task, config, batches, prepared.splits["val"], loss, on_epoch=on_epoch)
    with _quiet(), _reproducible(config, device), _interruptible():
        pl.Trainer(
            max_epochs=config.epochs,
            accelerator="gpu" if device.type == "cuda" else "cpu",
            devices=[device.index or 0] if device.type == "cuda" else 1,
            precision="bf16-mixed" if config.precision == "bfloat16" else "32-true",
            gradient_clip_val=config.gradient_clip,
            callbacks=[pl.callbacks.RichProgressBar()] if progress else None,
            enable_progress_bar=progress,
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            limit_val_batches=0,
            num_sanity_val_steps=0,
        ).fit(module, batches)
    if module.best is None:
        last = module.history[-1]
        raise ProtgraphError(
            f"training {model.spec.name!r} gave no usable epoch: train_loss {last['train_loss']}, {task.monitor} "
            f"{last[task.monitor]} on validation.\n"
            "A loss that is not finite asks for a smaller lr; an undefined metric, for labels of both kinds in 'val'."
        )
    return module


@contextmanager
def _quiet() -> Iterator[None]:
    """Lightning says what we say ourselves (the device, tips, why it stopped): its messages of level INFO are off."""
    log = logging.getLogger("lightning.pytorch")
    before = log.level
    log.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "GPU available but not used")  # the caller asked for the CPU
            warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)  # Lightning 2.6's own call of torch's pytree
            yield
    finally:
        log.setLevel(before)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C stays KeyboardInterrupt, and is heard the next time too.

    Lightning makes it SystemExit, which ends a notebook's kernel, and switches the signal off for good.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as e:
        if not isinstance(e.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, before)
        raise KeyboardInterrupt from e


@contextmanager
def _reproducible(config: FitConfig, device: torch.device) -> Iterator[None]:
    """Random numbers from the seed, deterministic operations; both as they were before, afterwards."""
    on_gpu = device.type == "cuda"
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.manual_seed(config.seed)
        try:
            if on_gpu and config.deterministic:
                os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or cuBLAS refuses
                torch.use_deterministic_algorithms(True)
                torch.backends.cudnn.benchmark = False
            yield
        finally:
            torch.use_deterministic_algorithms(before[0])
            torch.backends.cudnn.benchmark = before[1]

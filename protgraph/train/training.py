"""Train a model on a task of a dataset: prepare data, run Lightning, load the best epoch, test it once."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from protgraph import __version__
from protgraph.argument_types import check_arguments
from protgraph.checkpoint.adapters import adapters_of
from protgraph.checkpoint.training_set import summarize_training_set
from protgraph.data.datasets.dataset import Dataset, TaskData
from protgraph.errors import OptionError
from protgraph.evaluation.bootstrap import SplitScores, resample_test_split
from protgraph.evaluation.calibration import check_calibration_method, fit_calibration
from protgraph.evaluation.evaluation import predict_split
from protgraph.labels.checks import with_failures
from protgraph.model.build import ProteinModel
from protgraph.model.devices import uncompile_layers
from protgraph.model.spec import ModelSpec
from protgraph.nn.lora import merge_low_rank_terms
from protgraph.process_memory import peak_memory, reset_peak_memory
from protgraph.task.metrics import compute_metrics, confusion_matrix
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.train.devices import check_strategy
from protgraph.train.result import FitResult
from protgraph.train.run_setup import RunSetup, set_up_run
from protgraph.train.session import (
    interruption_with,
    is_first_process,
    only_thread_that_trains,
    quiet_lightning,
    reproducible,
)

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers import Logger
    from lightning.pytorch.strategies import Strategy
    from torch_geometric.data import Data

    from protgraph.train.module import FitModule
    from protgraph.train.trainer import TrainerOptions

__all__ = ["fit"]


@check_arguments("task", "config", "jobs", "workers", "calibrate")
@interruption_with(lambda number: None)
@only_thread_that_trains()
def fit(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: str | Path | Dataset | Sequence[Data],
    task: str | Task | None = None,
    *,
    config: FitConfig | None = None,
    precision: Literal["float32", "bfloat16"] | None = None,
    max_time: float | None = None,
    cache: str | Path | None = None,
    jobs: int = 1,
    workers: int = 0,
    devices: int | str | Sequence[int] = 1,
    strategy: str | Strategy = "auto",
    callbacks: Sequence[Callback] = (),
    logger: str | Logger | Sequence[str | Logger] | None = None,
    run_dir: str | Path | None = None,
    resume: bool = False,
    calibrate: str | None = None,
    save: str | Path | None = None,
    state_interval: float = 600.0,
    progress: bool = False,
    on_epoch: Callable[[Mapping[str, float]], None] | None = None,
) -> FitResult:
    """Train a model with Lightning, keep the best epoch on validation, and evaluate the other splits once.

    Without ``run_dir`` and ``logger`` nothing is written but prepared data in the cache.

    Parameters
    ----------
    model : str, ModelSpec or dict
        Registry name or model graph.
    dataset : str, Path or Dataset
        Registry name, a folder of files for a task that derives its labels, or a dataset
        (:func:`protgraph.labels.load_dataset` makes one from a folder and a label table). It needs the splits ``train``
        and ``val``. Files of a folder are read with the default options; :func:`protgraph.labels.load_dataset` has
        ``read`` for others (chains, model, alternate locations, assembly).
    task : str or Task, optional
        A task of the dataset, or one that derives its labels. Default: the only task of the dataset.
    precision : {"float32", "bfloat16"}, optional
        Replaces ``config.precision``.
    max_time : float, optional
        Replaces ``config.max_time``, seconds.
    cache : str or Path, optional
        Folder of prepared data; see :func:`protgraph.labels.prepare`.
    jobs : int
        Processes that read structure files.
    workers : int
        Worker processes that collate batches, for each data loader; 0 collates in the training process.
    devices, strategy
        Of ``lightning.pytorch.Trainer``: number or list of devices of the type of ``config.device``, and
        the way to distribute, ``"auto"``, ``"ddp"`` or ``"fsdp"``, which shards the weights. Each global batch is split
        over the processes.
    callbacks : sequence of Callback
        Further Lightning callbacks.
    logger : str, Logger or sequence of those, optional
        Lightning loggers, or names as of ``protgraph train --log``, e.g. "tensorboard", which write to ``run_dir``.
        They receive the names of model, dataset and task, the options, and ``train_loss``, ``val_loss``, all metrics
        and the learning rate of each epoch.
    run_dir : str or Path, optional
        Folder of the training state ``checkpoints/state.ckpt``, about three times as large as the weights, and of the
        best epoch. The state is written at the end of each epoch, or of some if writing takes more than 1 % of the
        training time. The folder is locked meanwhile.
    resume : bool
        Continue from the state in ``run_dir``, if there is one. The weights are those of an uninterrupted run, bit for
        bit on the CPU. A finished run is trained longer with more ``epochs`` or a larger ``patience``, from its last
        epoch on; otherwise its result is returned again. The learning rate is then that of a run of all epochs.
    calibrate : {"temperature", "platt", "isotonic"}, optional
        Fit a calibration of probabilities on the validation split; predictions apply it. Metrics do not depend on it.
    save : str or Path, optional
        Checkpoint file to write. A run whose checkpoint cannot be written, e.g. because the disk is full, can be
        resumed if it has a ``run_dir``.
    state_interval : float
        Seconds after which the state is also written within an epoch.
    progress : bool
        Show a progress bar.
    on_epoch : callable, optional
        Called with each row of the history.

    Raises
    ------
    OptionError, DatasetError, CheckpointError
        An option, the dataset, or the state to resume from does not fit, or the state is damaged; or another thread
        trains, with which this one would share the random numbers of torch.
    ProtgraphError
        Training ended before the first validation, or no epoch has a finite loss and metric. The attribute ``failures``
        of these errors has the proteins that could not be used.
    TrainingInterrupted
        On Ctrl-C or SIGTERM, a KeyboardInterrupt. Its attribute ``result`` is the best epoch so far, not tested, or
        None. With ``run_dir`` the run can be resumed.

    Examples
    --------
    >>> config = FitConfig(epochs=1, batch_residues=8192, device="cpu")
    >>> result = fit("majority", "pdb_core", "secondary_structure", config=config)
    >>> print(f"{result.test['accuracy']:.2f}")
    0.40
    """
    start = time.perf_counter()
    config = config or FitConfig()
    if precision is not None:
        config = replace(config, precision=precision)
    if max_time is not None:
        config = replace(config, max_time=max_time)
    if resume and run_dir is None:
        raise OptionError("fit: resume=True needs run_dir, the folder of the interrupted run.")
    device = config.torch_device()
    from protgraph.train.loggers import named_loggers
    from protgraph.train.trainer import TrainerOptions  # Lightning is imported only to train

    options = TrainerOptions(
        devices=devices,
        strategy=strategy,
        callbacks=callbacks,
        logger=named_loggers(logger, run_dir),
        workers=workers,
        state_interval=state_interval,
        progress=progress,
        on_epoch=on_epoch,
    )
    check_strategy(device, devices, strategy)
    reset_peak_memory(device)
    setup = set_up_run(model, dataset, task, config, cache=cache, jobs=jobs)
    if calibrate is not None:
        check_calibration_method(calibrate, setup.task.target)
    with with_failures(setup.prepared.failures):
        return _run(setup, options, run_dir, save, resume=resume, start=start, calibrate=calibrate)


def _run(
    setup: RunSetup,
    options: TrainerOptions,
    run_dir: str | Path | None,
    save: str | Path | None,
    *,
    resume: bool,
    start: float,
    calibrate: str | None,
) -> FitResult:
    """Train with fixed random streams, and evaluate the best epoch; ``start`` is the time of the call."""
    from protgraph.train.data_module import FitData
    from protgraph.train.run_folder import RunFolder
    from protgraph.train.saved_step import SAVED_STEP
    from protgraph.train.trainer import load_best, load_best_so_far, train

    config, task, splits = setup.config, setup.task, setup.prepared.splits
    device = config.torch_device()
    module: FitModule | None = None
    result = partial(_result, setup, start=start, calibrate=calibrate)

    def best_so_far(number: Signals) -> FitResult | None:
        if module is None or not is_first_process():
            return None
        best = load_best_so_far(module, folder.best)
        return None if best is None else result(module, best, {}, interrupted=number.name)

    with RunFolder(run_dir) as folder, interruption_with(best_so_far):
        identity = _identity(setup)
        state = folder.start(identity, resume=resume)
        logged = identity | {"model": setup.network.spec.name}
        with quiet_lightning(), reproducible(config, device):
            module = setup.module()
            module.step_folder = None if run_dir is None else folder.path / SAVED_STEP
            if folder.earlier_epochs is not None:
                module.notes = (*module.notes, _describe_extension(folder.earlier_epochs, config))
            fields = None if options.reads_batches else module.batch_fields
            data = FitData(
                splits["train"],
                splits["val"],
                task,
                config,
                workers=options.workers,
                fields=fields,
                auxiliary=setup.auxiliary,
            )
            best = load_best(module, train(module, data, folder, device, options, logged, state=state))
            if config.compile:
                uncompile_layers(module.model)
        tested = {split: graphs for split, graphs in splits.items() if split not in ("train", "val")}
        finished = result(module, best, tested)
        if save is not None and is_first_process():
            finished.save(save)
        folder.finish(epochs=finished.epochs, best_epoch=finished.best_epoch)
        return finished


def _result(
    setup: RunSetup,
    module: FitModule,
    best: Mapping[str, Any],
    tested: Mapping[str, Any],
    *,
    start: float,
    calibrate: str | None,
    interrupted: str = "",
) -> FitResult:
    """Evaluate the splits ``tested`` with the weights of the best epoch, and collect the result of a run."""
    prepared, device = setup.prepared, setup.config.torch_device()
    network, adapters = module.model, None
    if setup.base is not None:
        adapters = adapters_of(network, setup.base)
        network = copy.deepcopy(network)  # the state of an interrupted run has the terms
        merge_low_rank_terms(network)
    network.freeze(lambda name: False)
    metrics, confusion, scores = _evaluate(network.to(device), tested, module.task, best, prepared.data)
    training_set = None if interrupted else summarize_training_set(network, module.task, prepared.splits)
    calibration = None
    if calibrate is not None and not interrupted:
        validation = predict_split(network, prepared.splits["val"], module.task)
        calibration = fit_calibration(calibrate, validation, module.task.target)
    return FitResult(
        model=network.cpu().eval(),
        task=module.task,
        config=module.config,
        dataset=prepared.data.name,
        dataset_version=prepared.data.version,
        metrics=metrics,
        threshold=best["threshold"],
        confusion=confusion,
        test_scores=scores,
        history=tuple(module.history),
        best_epoch=best["row"]["epoch"],
        sizes=prepared.sizes,
        failures=prepared.failures,
        one_chain=prepared.one_chain,
        residues_per_second=module.residues_per_second,
        peak_memory=peak_memory(device),
        seconds=time.perf_counter() - start,
        training_set=training_set,
        calibration=calibration,
        notes=(*prepared.notes, *module.notes, *module.gradients.notes),
        interrupted=interrupted,
        start=setup.start,
        adapters=adapters,
    )


def _evaluate(
    network: ProteinModel, splits: Mapping[str, Any], task: Task, best: Mapping[str, Any], data: TaskData
) -> tuple[dict[str, dict[str, float]], dict[str, Tensor], dict[str, SplitScores]]:
    """Return the metrics of validation and of each given split; confusion matrices and resampled scores of the splits.

    Scores are of the monitored metric.
    """
    monitor = next(metric for metric in task.metrics if metric.name == task.monitor)
    metrics = {"val": {metric.name: best["row"][metric.name] for metric in task.metrics}}
    confusion, scores = {}, {}
    for split, graphs in splits.items():
        predictions = predict_split(network, graphs, task).with_threshold(best["threshold"])
        metrics[split] = compute_metrics(task.metrics, predictions, task=task.name)
        if task.target.kind == "classification":
            confusion[split] = confusion_matrix(predictions)
        scores[split] = resample_test_split(predictions, monitor, graphs.names, data.clusters(graphs.names))
    return metrics, confusion, scores


def _describe_extension(before: int, config: FitConfig) -> str:
    text = f"resumed with {config.epochs} epochs in place of {before}"
    if config.schedule == "constant":
        return text
    return f"{text}: from there on the learning rate is that of a run of {config.epochs} epochs"


def _identity(setup: RunSetup) -> dict[str, Any]:
    """Return plain data that determine the result of a run."""
    prepared = setup.prepared
    sizes = {split: list(size) for split, size in prepared.sizes.items()}
    options = setup.config.to_dict() | {"max_time": None}
    data = {"name": prepared.data.name, "version": prepared.data.version, "sizes": sizes}
    versions = {name: version(name) for name in ("lightning", "torch")} | {"protgraph": __version__}
    plain = {"model": setup.network.spec.to_dict(), "dataset": data, "task": setup.task.name, "config": options}
    start = {} if setup.start is None else {"start": setup.start.to_dict()}
    return plain | {"versions": versions} | start

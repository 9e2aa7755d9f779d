"""Measure peak memory and time per epoch of a training run on a few of its batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from protgraph.argument_types import check_arguments
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches
from protgraph.errors import OptionError
from protgraph.evaluation.evaluation import collate_evaluation, evaluation_batches, evaluation_mode, predict_batch
from protgraph.model.spec import ModelSpec
from protgraph.process_memory import (
    available_memory,
    memory_in_use,
    peak_memory,
    release_component_dictionary,
    release_memory,
    reset_peak_memory,
)
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.train.coordinate_noise import add_noise
from protgraph.train.run_setup import RunSetup, set_up_run
from protgraph.train.session import quiet_lightning, reproducible

if TYPE_CHECKING:
    from protgraph.train.module import FitModule

__all__ = ["BudgetCost", "ResourceEstimate", "choose_batch_residues", "estimate_resources", "step_clock"]

SMALLEST = 256
"""Smallest budget that is chosen, residues per batch."""
_FEWEST_BATCHES = 16  # per epoch, of a budget that is chosen
_USED = 0.9  # of the limit: the memory of two runs differs a little
_STEPS = 10  # measured batches of a budget
_WARM_UP = 3  # steps on the smallest protein: optimizer state, gradients, code that is loaded on first use


@dataclass(frozen=True)
class BudgetCost:
    """Measured cost of training with one budget of residues per batch.

    Parameters
    ----------
    batches : int
        Training batches per epoch.
    largest : int
        Residues of the largest batch. It exceeds the budget if one protein does.
    memory : float
        Peak memory, MiB, as ``FitResult.peak_memory``.
    seconds : float
        Time of an epoch: training, validation and metrics.
    """

    batch_residues: int
    batches: int
    largest: int
    memory: float
    seconds: float


@dataclass(frozen=True)
class ResourceEstimate:
    """Measured memory and time of a run; see :func:`estimate_resources`.

    Parameters
    ----------
    process : float
        Memory of the process with libraries, weights and optimizer state, MiB.
    evaluation : float
        Largest batch of validation or test, MiB above the process.
    budgets : tuple of BudgetCost
        Ascending.
    chosen : int
        Budget of ``config``, or of :func:`choose_batch_residues`.
    limit : float
        Memory limit, MiB.
    """

    process: float
    evaluation: float
    budgets: tuple[BudgetCost, ...]
    chosen: int
    limit: float

    @property
    def cost(self) -> BudgetCost:
        """Cost of the chosen budget."""
        return next(cost for cost in self.budgets if cost.batch_residues == self.chosen)


@check_arguments("task", "config", "memory_limit", "jobs")
def estimate_resources(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: str | Path | Dataset,
    task: str | Task,
    *,
    config: FitConfig | None = None,
    memory_limit: float | None = None,
    cache: str | Path | None = None,
    jobs: int = 1,
) -> ResourceEstimate:
    """Measure peak memory and the time of an epoch on a few batches of a training run.

    Nothing is written but prepared graphs in the cache, which the run uses. Batches of a quarter, half and all of
    ``config.batch_residues`` are run, with the largest ones among them.

    Parameters
    ----------
    model, dataset, task, config, cache, jobs
        As in :func:`protgraph.train.fit`.
    memory_limit : float, optional
        MiB; default: the free memory of the machine or device. Batches that will need more are not run.

    Raises
    ------
    OptionError
        The options are not those of :func:`protgraph.train.fit`, or the budget does not fit the limit.

    Notes
    -----
    With one thread on the CPU, time is CPU time (:func:`step_clock`): a run on a machine that is busy with other work
    takes longer.

    Examples
    --------
    >>> config = FitConfig(batch_residues=4096, device="cpu")
    >>> estimate = estimate_resources("gcn", "pdb_core", "secondary_structure", config=config)
    >>> [cost.batch_residues for cost in estimate.budgets]
    [1024, 2048, 4096]
    >>> 300 < estimate.cost.memory < 3000
    True
    """
    setup = _set_up(model, dataset, task, config, cache, jobs)
    budget = setup.config.batch_residues
    measured = _measure(setup, sorted({max(1, budget // 4), max(1, budget // 2), budget}), budget, memory_limit)
    if measured.budgets[-1].batch_residues != budget:
        last, name = measured.budgets[-1], setup.network.spec.name
        raise OptionError(
            f"memory limit {measured.limit:.0f} MiB: batches of {budget} residues do not fit, since {name!r} needs "
            f"{last.memory:.0f} MiB with {last.batch_residues}. Use --batch-residues auto "
            "(choose_batch_residues), or a smaller model."
        )
    return measured


@check_arguments("task", "config", "memory_limit", "jobs")
def choose_batch_residues(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: str | Path | Dataset,
    task: str | Task,
    *,
    config: FitConfig | None = None,
    memory_limit: float | None = None,
    cache: str | Path | None = None,
    jobs: int = 1,
) -> ResourceEstimate:
    """Choose the largest power of two of residues per batch whose run needs at most 90 % of a memory limit.

    An epoch has at least 16 batches, or the batches are of 256 residues.

    Parameters
    ----------
    model, dataset, task, config, memory_limit, cache, jobs
        As in :func:`estimate_resources`; ``config.batch_residues`` is not used.

    Returns
    -------
    ResourceEstimate
        ``chosen`` is the budget.

    Raises
    ------
    OptionError
        The limit is too small for batches of 256 residues, or for the largest protein.
    """
    setup = _set_up(model, dataset, task, config, cache, jobs)
    budgets = _allowed_budgets(setup.prepared.splits["train"])
    measured = _measure(setup, budgets, SMALLEST, memory_limit)
    fitting = [cost.batch_residues for cost in measured.budgets if cost.memory <= _USED * measured.limit]
    if not fitting:
        cost = measured.budgets[0]
        raise OptionError(
            f"memory limit {measured.limit:.0f} MiB: {setup.network.spec.name!r} needs {cost.memory:.0f} MiB with "
            f"{SMALLEST} residues per batch (process {measured.process:.0f}, largest batch {cost.largest} residues, "
            f"evaluation {measured.evaluation:.0f}). Use a limit of {cost.memory / _USED:.0f} MiB or more, or a "
            "smaller model."
        )
    return replace(measured, chosen=max(fitting))


def step_clock(device: torch.device) -> Callable[[], float]:
    """Return the clock of steps on a device, seconds.

    With one thread on the CPU it is the CPU time of the process, which other work on the machine hardly changes.
    """
    return time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter


def _set_up(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: str | Path | Dataset,
    task: str | Task,
    config: FitConfig | None,
    cache: str | Path | None,
    jobs: int,
) -> RunSetup:
    return set_up_run(model, dataset, task, config or FitConfig(), cache=cache, jobs=jobs)


def _allowed_budgets(train: GraphStore) -> list[int]:
    """Return the powers of two from the smallest on whose epoch has enough batches."""
    budgets = [SMALLEST]
    while 2 * budgets[-1] * _FEWEST_BATCHES <= train.sizes.sum():
        budgets.append(2 * budgets[-1])
    return budgets


def _measure(setup: RunSetup, budgets: Sequence[int], chosen: int, memory_limit: float | None) -> ResourceEstimate:
    """Measure ascending budgets until the next one would exceed the limit; the first is always run."""
    config, splits, device = setup.config, setup.prepared.splits, setup.config.torch_device()
    limit = available_memory(device) if memory_limit is None else memory_limit
    if not limit > 0:
        raise OptionError(f"memory_limit = {memory_limit}. Allowed: MiB, larger than 0.")
    train = splits["train"]
    with quiet_lightning(), reproducible(config, device):
        run = _Steps(setup.module(), device)
        for _ in range(_WARM_UP):
            run.train(train, [int(np.argmin(train.sizes))])
        release_component_dictionary()  # it was read to prepare the graphs, which are in the cache of the run
        release_memory()
        process = memory_in_use(device)
        evaluation, validation_seconds = _measure_evaluation(run, splits, device)
        costs: list[BudgetCost] = []
        training = process
        for budget in budgets:
            batches = list(ProteinBatches(train.sizes, max_nodes=budget, shuffle=True, seed=config.seed))
            largest = max(int(train.sizes[members].sum()) for members in batches)
            # memory above the process grows at most as the residues of the largest batch
            if costs and process + (training - process) * largest / costs[-1].largest > limit:
                break
            training, seconds = _measure_batches(run.train, train, batches, device)
            cost = BudgetCost(
                batch_residues=budget,
                batches=len(batches),
                largest=largest,
                memory=max(training, evaluation),
                seconds=seconds + validation_seconds,
            )
            costs.append(cost)
    return ResourceEstimate(process, evaluation - process, tuple(costs), chosen, limit)


class _Steps:
    """Steps of training and evaluation as :class:`FitModule` makes them, without a Trainer."""

    def __init__(self, module: FitModule, device: torch.device) -> None:
        self.module, self.device = module.to(device), device
        module.freeze_parts(module.config.epochs - 1)  # the last epoch trains the most parts
        self.optimizer = torch.optim.AdamW(module.parameters(), lr=module.config.lr)
        self.generator = torch.Generator(device).manual_seed(module.config.seed)

    def train(self, store: GraphStore, members: Sequence[int]) -> None:
        """Train on one batch."""
        task, config = self.module.task, self.module.config
        batch = store.collate(members, fields=self.module.batch_fields).to(self.device)
        batch, y = task.inputs.apply(batch, self.generator, training=True)
        if config.noise:
            batch = add_noise(batch, config.noise, self.generator)
        self.optimizer.zero_grad()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            loss = task.batch_loss(self.module.loss, self.module(batch).float(), y, batch)
            for auxiliary in self.module.auxiliary:
                aux_batch = auxiliary.collate([store.names[i] for i in members])
                if aux_batch is not None:
                    aux_loss, _ = auxiliary.training_loss(aux_batch.to(self.device), self.generator, noise=config.noise)
                    loss = loss + auxiliary.weight * aux_loss
        loss.backward()
        self.optimizer.step()

    def evaluate(self, store: GraphStore, members: Sequence[int]) -> None:
        """Predict one batch."""
        task = self.module.task
        batch = collate_evaluation(store, members, task)
        predict_batch(self.module.model, batch.to(self.device), task, loss=self.module.loss)


def _measure_evaluation(run: _Steps, splits: Mapping[str, GraphStore], device: torch.device) -> tuple[float, float]:
    """Return the peak memory of evaluation in all splits, MiB, and the seconds of a validation."""
    peak, validation_seconds = 0.0, 0.0
    with evaluation_mode(run.module.model):
        for split, store in splits.items():
            memory, seconds = _measure_batches(run.evaluate, store, evaluation_batches(store, run.module.task), device)
            peak = max(peak, memory)
            if split == "val":
                validation_seconds = seconds
    return peak, validation_seconds


def _measure_batches(
    step: Callable[[GraphStore, Sequence[int]], None],
    store: GraphStore,
    batches: Sequence[Sequence[int]],
    device: torch.device,
) -> tuple[float, float]:
    """Run some batches, the largest among them; return the peak memory, MiB, and the seconds for the whole store."""
    chosen = _select(store, batches, _STEPS)
    clock = step_clock(device)
    reset_peak_memory(device)
    begin = clock()
    for members in chosen:
        step(store, members)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds_per_node = (clock() - begin) / sum(int(store.sizes[members].sum()) for members in chosen)
    return peak_memory(device), seconds_per_node * int(store.sizes.sum())


def _select(store: GraphStore, batches: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Return the batches with the most nodes and the most pairs within proteins, and others at equal distances."""
    nodes = [int(store.sizes[members].sum()) for members in map(list, batches)]
    pairs = [int((store.sizes[members] ** 2).sum()) for members in map(list, batches)]
    others = np.linspace(0, len(batches) - 1, min(count - 2, len(batches))).round().astype(int)
    chosen = {int(np.argmax(nodes)), int(np.argmax(pairs)), *others.tolist()}
    return [list(batches[i]) for i in sorted(chosen, key=lambda i: nodes[i])]

"""Predict peak memory and time per epoch of a training run from a few measured batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from protgraph.argument_types import check_arguments
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import OptionError
from protgraph.model.spec import ModelSpec
from protgraph.process_memory import available_memory
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.train.evaluate import evaluation_batches
from protgraph.train.resolve import load_dataset
from protgraph.train.run_setup import RunSetup, set_up_run
from protgraph.train.session import quiet_lightning, reproducible

if TYPE_CHECKING:
    from protgraph.train.resource_probe import BatchCost, BatchSize, ProbeResult

__all__ = ["BudgetCost", "ResourceEstimate", "choose_batch_residues", "estimate_resources"]

SMALLEST = 256
"""Smallest budget that is measured and chosen, residues per batch."""
_LARGEST_MEASURED = 8192  # residues; larger budgets are extrapolated
_FEWEST_BATCHES = 16  # per epoch, of a budget that is chosen
_USED = 0.9  # of the limit: the prediction has an error
_STEPS = 8  # measured batches of the largest budget
_SLOWEST = 1.5  # time of a batch that nothing interrupts, relative to the usual one of its size
_GRAPHS = 0.25  # largest share of the limit for pages of the store, which the system can take back


@dataclass(frozen=True)
class BudgetCost:
    """Predicted cost of training with one budget of residues per batch.

    Parameters
    ----------
    batch_residues : int
    batches : int
        Training batches per epoch.
    largest : int
        Residues of the largest batch. It exceeds the budget if one protein does.
    memory : float
        Peak memory of the run, MiB, as ``FitResult.peak_memory``.
    seconds : float
        Time of an epoch: training, validation and metrics.
    is_measured : bool
        True if batches of this budget were run, False if the cost is extrapolated from smaller ones.
    """

    batch_residues: int
    batches: int
    largest: int
    memory: float
    seconds: float
    is_measured: bool


@dataclass(frozen=True)
class ResourceEstimate:
    """Predicted memory and time of a run; see :func:`estimate_resources`.

    Parameters
    ----------
    process : float
        Memory of the process with libraries, weights and optimizer state, MiB.
    graphs : float
        Pages of the memory-mapped graph store that the process will have read, MiB. The system takes them back when it
        needs memory. 0 on a GPU.
    evaluation : float
        Largest batch of validation or test, MiB.
    budgets : tuple of BudgetCost
        Ascending.
    chosen : int
        Budget of ``config``, or of :func:`choose_batch_residues`.
    limit : float
        Memory limit, MiB.
    """

    process: float
    graphs: float
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
    """Measure a few batches of a training run, and predict its peak memory and the time of an epoch.

    Nothing is written but prepared graphs in the cache, which the run uses. Batches of a quarter, half and all of
    ``config.batch_residues`` are run, with the largest ones among them; twice and four times as much is extrapolated.

    Parameters
    ----------
    model, dataset, task, config, cache, jobs
        As in :func:`protgraph.train.fit`.
    memory_limit : float, optional
        MiB; default: the free memory of the machine or device. Batches that will need more are not run.

    Raises
    ------
    OptionError
        As in :func:`protgraph.train.fit`.

    Notes
    -----
    Memory and seconds of a batch are fitted by non-negative least squares of relative errors as a + b·N + c·Σn², N
    nodes in proteins of n nodes. The peak is that of the largest batch, and the time the sum over all batches. With
    one thread on the CPU, it is CPU time (:func:`protgraph.train.resource_probe.step_clock`): a run on a machine that
    is busy with other work takes longer.

    Examples
    --------
    >>> config = FitConfig(batch_residues=4096, device="cpu")
    >>> estimate = estimate_resources("gcn", "pdb_core", "secondary_structure", config=config)
    >>> [cost.batch_residues for cost in estimate.budgets]
    [1024, 2048, 4096, 8192, 16384]
    >>> 300 < estimate.cost.memory < 3000
    True
    """
    config = config or FitConfig()
    dataset = load_dataset(dataset, task=task, cache=cache)
    setup = set_up_run(model, dataset, task, config, cache=cache, jobs=jobs)
    own = config.batch_residues
    return _estimate(setup, sorted({max(1, own // 4), max(1, own // 2), own}), [2 * own, 4 * own], own, memory_limit)


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
    config = config or FitConfig()
    dataset = load_dataset(dataset, task=task, cache=cache)
    setup = set_up_run(model, dataset, task, config, cache=cache, jobs=jobs)
    budgets = _allowed_budgets(setup.prepared.splits["train"])
    measured = [budget for budget in budgets if budget <= _LARGEST_MEASURED]
    found = _estimate(setup, measured, budgets[len(measured) :], SMALLEST, memory_limit)
    fitting = [cost.batch_residues for cost in found.budgets if _fits(found, cost)]
    if not fitting:
        cost = found.budgets[0]
        raise OptionError(
            f"memory limit {found.limit:.0f} MiB: {setup.network.spec.name!r} needs {cost.memory:.0f} MiB with "
            f"{SMALLEST} residues per batch (process {found.process:.0f}, largest batch {cost.largest} residues, "
            f"evaluation {found.evaluation:.0f}). Use a limit of {cost.memory / _USED:.0f} MiB or more, or a smaller "
            "model."
        )
    return ResourceEstimate(found.process, found.graphs, found.evaluation, found.budgets, max(fitting), found.limit)


def _fits(found: ResourceEstimate, cost: BudgetCost) -> bool:
    reclaimable = max(0.0, found.graphs - _GRAPHS * found.limit)
    return cost.memory - reclaimable <= _USED * found.limit


def _allowed_budgets(train: GraphStore) -> list[int]:
    """Return the powers of two from the smallest on whose epoch has enough batches."""
    budgets = [SMALLEST]
    while 2 * budgets[-1] * _FEWEST_BATCHES <= train.sizes.sum():
        budgets.append(2 * budgets[-1])
    return budgets


def _estimate(
    setup: RunSetup, measured: Sequence[int], extrapolated: Sequence[int], chosen: int, memory_limit: float | None
) -> ResourceEstimate:
    """Probe the measured budgets as far as they fit the limit, and predict all of them."""
    from protgraph.train.resource_probe import BatchSize, probe_run, training_batches

    config, splits = setup.config, dict(setup.prepared.splits)
    device = config.torch_device()
    limit = available_memory(device) if memory_limit is None else memory_limit
    if not limit > 0:
        raise OptionError(f"memory_limit = {memory_limit}. Allowed: MiB, larger than 0.")

    def may_run(costs: list[BatchCost], size: BatchSize, process: float) -> bool:
        return len(costs) < 2 or process + float(_memory_model(costs)([size])[0]) <= _USED * limit

    with quiet_lightning(), reproducible(config, device):
        probe = probe_run(setup.module(), splits, device, budgets=measured, steps=_STEPS, may_run=may_run)
    evaluation = max(cost.memory for cost in probe.evaluation)
    graphs = 0.0 if device.type == "cuda" else _unread_pages(splits, probe)
    after_training = _validation_seconds(setup, probe)
    costs = []
    for budget in (*measured, *extrapolated):
        batches = training_batches(splits["train"], budget, config.seed)
        sizes = [BatchSize.of(splits["train"], members) for members in batches]
        memory = _predict(probe.training, budget, sizes, _memory_model, max, lambda cost: cost.memory)
        seconds = _predict(probe.training, budget, sizes, _seconds_model, sum, lambda cost: cost.seconds)
        costs.append(
            BudgetCost(
                batch_residues=budget,
                batches=len(batches),
                largest=max(size.nodes for size in sizes),
                memory=probe.process + graphs + max(memory, evaluation),
                seconds=seconds + after_training,
                is_measured=any(cost.batch_residues == budget for cost in probe.training),
            )
        )
    return ResourceEstimate(probe.process, graphs, evaluation, tuple(costs), chosen, limit)


def _unread_pages(splits: Mapping[str, GraphStore], probe: ProbeResult) -> float:
    """Return the size of the graphs that the probe has not read, MiB; those that it has read are in the process."""
    total = sum(shard.bytes for store in splits.values() for shard in store.shards) / 2**20
    nodes = sum(int(store.sizes.sum()) for store in splits.values())
    return total * (1 - min(1.0, probe.nodes_read / max(nodes, 1)))


def _validation_seconds(setup: RunSetup, probe: ProbeResult) -> float:
    """Return the time of validation and metrics in an epoch."""
    from protgraph.train.resource_probe import BatchSize

    store = setup.prepared.splits["val"]
    sizes = [BatchSize.of(store, members) for members in evaluation_batches(store, setup.task)]
    forward = _predict(probe.evaluation, 0, sizes, _seconds_model, sum, lambda cost: cost.seconds)
    nodes = sum(cost.size.nodes for cost in probe.evaluation)
    return forward + probe.metrics_seconds * sum(size.nodes for size in sizes) / nodes


_Model = Callable[[Sequence["BatchSize"]], np.ndarray]


def _predict(
    costs: Sequence[BatchCost],
    budget: int,
    sizes: Sequence[BatchSize],
    fitted: Callable[[Sequence[BatchCost]], _Model],
    combine: Callable[[Sequence[float]], float],
    value: Callable[[BatchCost], float],
) -> float:
    """Combine the fitted costs of batches, scaled by measured over fitted cost of the nearest measured budget.

    Of a sum, a batch that takes more than 1.5 times its usual share counts with that share: other work interrupted it.
    """
    model = fitted(costs)
    nearest = min({cost.batch_residues for cost in costs}, key=lambda other: (abs(other - budget), other))
    own = [cost for cost in costs if cost.batch_residues == nearest]
    measured, expected = [value(cost) for cost in own], model([cost.size for cost in own]).tolist()
    if combine is sum:
        usual = median(a / b for a, b in zip(measured, expected, strict=True))
        shares = [usual * b for b in expected]
        measured = [b if a > _SLOWEST * b else a for a, b in zip(measured, shares, strict=True)]
    scale = combine(measured) / combine(expected)
    return scale * combine(model(sizes).tolist())


def _memory_model(costs: Sequence[BatchCost]) -> _Model:
    """Fit the largest memory so far: the allocator keeps blocks of earlier batches."""
    return _fit([cost.size for cost in costs], list(accumulate((cost.memory for cost in costs), max)))


def _seconds_model(costs: Sequence[BatchCost]) -> _Model:
    return _fit([cost.size for cost in costs], [cost.seconds for cost in costs])


def _fit(sizes: Sequence[BatchSize], values: Sequence[float]) -> _Model:
    """Return the non-negative fit of relative errors on 1, nodes and pairs."""
    weights = 1 / np.maximum(values, 1e-9)
    columns = _columns(sizes)
    scale = columns.max(axis=0)  # columns of one magnitude
    from scipy.optimize import nnls  # takes 0.2 s to import

    coefficients, _ = nnls(columns / scale * weights[:, None], np.ones(len(sizes)))
    return lambda sizes: np.maximum(_columns(sizes) / scale @ coefficients, 1e-9)


def _columns(sizes: Sequence[BatchSize]) -> np.ndarray:
    return np.array([(1, size.nodes, size.pairs) for size in sizes], dtype=np.float64)

"""Measure memory and time of single batches of a run: training with Lightning's Trainer on selected batches."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from torch_geometric.data import Batch

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches
from protgraph.process_memory import (
    memory_in_use,
    peak_memory,
    release_component_dictionary,
    release_memory,
    reset_peak_memory,
)
from protgraph.train.devices import process_environment
from protgraph.train.evaluate import collate_evaluation, evaluation_batches
from protgraph.train.module import FitModule
from protgraph.train.trainer import step_options

__all__ = ["BatchCost", "BatchSize", "ProbeResult", "probe_run", "step_clock", "training_batches"]

_WARM_UP = 3  # steps on the smallest protein: optimizer state, gradients, code that is loaded on first use


@dataclass(frozen=True)
class BatchSize:
    """Size of a batch: what its cost depends on.

    Parameters
    ----------
    nodes : int
    pairs : int
        Ordered pairs of nodes within proteins, Σ n².
    """

    nodes: int
    pairs: int

    @classmethod
    def of(cls, store: GraphStore, members: Sequence[int]) -> BatchSize:
        """Return the size of a batch of proteins of a store."""
        sizes = store.sizes[list(members)]
        return cls(int(sizes.sum()), int((sizes * sizes).sum()))


@dataclass(frozen=True)
class BatchCost:
    """Measured cost of one batch.

    Parameters
    ----------
    size : BatchSize
    batch_residues : int
        Budget that the batch was made for; 0 for a batch of evaluation.
    memory : float
        Peak above the process at rest, MiB. On the CPU with the blocks that the allocator keeps from earlier batches.
    seconds : float
        Collation, forward and backward pass and optimizer step, or the forward pass of evaluation.
    """

    size: BatchSize
    batch_residues: int
    memory: float
    seconds: float


@dataclass(frozen=True)
class ProbeResult:
    """Costs of the batches of a probe.

    Parameters
    ----------
    process : float
        Memory of the process at rest, with weights and optimizer state, without graphs, MiB.
    training, evaluation : list of BatchCost
    metrics_seconds : float
        Time of the metrics for the batches of ``evaluation``.
    nodes_read : int
        Nodes of the training proteins whose graphs were read before ``process`` was measured.
    """

    process: float
    training: list[BatchCost]
    evaluation: list[BatchCost]
    metrics_seconds: float
    nodes_read: int


def step_clock(device: torch.device) -> Callable[[], float]:
    """Return the clock of steps on a device, seconds.

    With one thread on the CPU it is the CPU time of the process, which other work on the machine hardly changes.
    """
    return time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter


def training_batches(store: GraphStore, batch_residues: int, seed: int) -> list[list[int]]:
    """Return the training batches of a budget in the first epoch, in order."""
    return list(ProteinBatches(store.sizes, max_nodes=batch_residues, shuffle=True, seed=seed))


def probe_run(
    module: FitModule,
    splits: dict[str, GraphStore],
    device: torch.device,
    *,
    budgets: Sequence[int],
    steps: int,
    may_run: Callable[[list[BatchCost], BatchSize, float], bool],
) -> ProbeResult:
    """Train on a few batches of each budget, and evaluate a few batches of all splits.

    Parameters
    ----------
    module : FitModule
        Its weights change.
    splits : dict of str to GraphStore
        With ``train`` and ``val``.
    device : torch.device
    budgets : sequence of int
        Residues per batch, ascending.
    steps : int
        Batches of the last budget; half as many of the others.
    may_run : callable
        Called with the costs so far, the size of the next batch and the memory of the process; False skips it and
        all larger ones.
    """
    train = splits["train"]
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="gpu" if device.type == "cuda" else "cpu",
        devices=[device.index or 0] if device.type == "cuda" else 1,
        plugins=process_environment(),
        **step_options(module.config),
        limit_val_batches=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        inference_mode=False,
    )
    meter = _Meter(device)
    loader = _TrainingProbe(meter, train, module, budgets, steps, may_run)
    trainer.callbacks.append(meter)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "You defined a `validation_step`")  # it follows
        trainer.fit(module, train_dataloaders=loader)
    training, meter.costs = meter.costs, []
    trainer.limit_val_batches = 1.0
    trainer.validate(module, dataloaders=_EvaluationProbe(meter, splits, module), verbose=False)
    return ProbeResult(meter.process, training, meter.costs, meter.metrics_seconds, loader.nodes_read)


class _Meter(Callback):
    """Record peak memory and seconds from the collation of a batch to the end of its step."""

    def __init__(self, device: torch.device) -> None:
        self.device, self._clock = device, step_clock(device)
        self.costs: list[BatchCost] = []
        self.process = self.metrics_seconds = 0.0
        self._open: tuple[BatchSize, int] | None = None
        self._start = 0.0

    def rest(self) -> None:
        """Take the present memory as that of the process at rest, in a run whose graphs are in the cache."""
        release_component_dictionary()  # it was read to prepare them
        release_memory()
        self.process = memory_in_use(self.device)

    def begin(self, size: BatchSize, batch_residues: int) -> None:
        """Start the measurement of a batch."""
        self._open = size, batch_residues
        reset_peak_memory(self.device)
        self._start = self._clock()

    def _end(self, *_: Any) -> None:
        if self._open is None:
            return
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        seconds = self._clock() - self._start
        self.costs.append(BatchCost(*self._open, peak_memory(self.device) - self.process, seconds))
        self._open, self._start = None, self._clock()

    on_train_batch_end = on_validation_batch_end = _end

    def on_validation_epoch_end(self, *_: Any) -> None:
        self._start = self._clock()  # callbacks run before the module

    def on_validation_end(self, *_: Any) -> None:
        self.metrics_seconds = self._clock() - self._start


class _TrainingProbe:
    """Loader of the batches of ascending budgets, from small to large."""

    def __init__(
        self,
        meter: _Meter,
        store: GraphStore,
        module: FitModule,
        budgets: Sequence[int],
        steps: int,
        may_run: Callable[[list[BatchCost], BatchSize, float], bool],
    ) -> None:
        self._meter, self._store, self._may_run = meter, store, may_run
        self._collate = partial(store.collate, fields=module.batch_fields)
        self._batches: list[tuple[int, list[int]]] = [
            (budget, members)
            for budget in budgets
            for members in _select(
                store,
                training_batches(store, budget, module.config.seed),
                steps if budget == budgets[-1] else steps // 2,
            )
        ]

    @property
    def nodes_read(self) -> int:
        """Nodes of the proteins in the batches."""
        return int(self._store.sizes[list({i for _, members in self._batches for i in members})].sum())

    def __len__(self) -> int:
        return _WARM_UP + len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        smallest = [int(np.argmin(self._store.sizes))]
        for _ in range(_WARM_UP):
            yield self._collate(smallest)
        for _, members in self._batches:
            self._collate(members)  # reads the file, which the system may have to load from the disk
        self._meter.rest()
        for budget, members in self._batches:
            size = BatchSize.of(self._store, members)
            if not self._may_run(self._meter.costs, size, self._meter.process):
                return
            self._meter.begin(size, budget)
            yield self._collate(members)


class _EvaluationProbe:
    """Loader of evaluation batches: a sample of validation, and the largest batch of every split."""

    def __init__(self, meter: _Meter, splits: dict[str, GraphStore], module: FitModule, *, sample: int = 4) -> None:
        self._meter, self._task = meter, module.task
        self._validation, self._fields = splits["val"], module.batch_fields
        self._batches: list[tuple[GraphStore, list[int]]] = []
        for split, store in splits.items():
            batches = evaluation_batches(store, module.task)
            chosen = _select(store, batches, sample) if split == "val" else [_largest(store, batches)]
            self._batches += [(store, members) for members in chosen]
        self._batches.sort(key=lambda one: BatchSize.of(*one).nodes)

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        for store, members in self._batches:
            fields = self._fields if store is self._validation else None
            collate_evaluation(store, [members], self._task, fields=fields)  # reads the file
            self._meter.begin(BatchSize.of(store, members), 0)
            yield from collate_evaluation(store, [members], self._task, fields=fields)


def _largest(store: GraphStore, batches: Sequence[list[int]]) -> list[int]:
    return max(batches, key=lambda members: (size := BatchSize.of(store, members)).pairs + 1000 * size.nodes)


def _select(store: GraphStore, batches: Sequence[list[int]], count: int) -> list[list[int]]:
    """Return the batches with the most nodes and the most pairs, and others at equal distances in the order."""
    sizes = [BatchSize.of(store, members) for members in batches]
    extremes = [max(range(len(batches)), key=key) for key in (lambda i: sizes[i].nodes, lambda i: sizes[i].pairs)]
    others = np.linspace(0, len(batches) - 1, min(max(count - 2, 1), len(batches))).round().astype(int).tolist()
    chosen = list(dict.fromkeys([*extremes, *others]))
    return [batches[i] for i in sorted(chosen, key=lambda i: sizes[i].nodes)]

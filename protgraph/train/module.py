"""Lightning module of one training run: loss of global batches, validation metrics, optimizer and schedule."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.strategies import ModelParallelStrategy, Strategy
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch_geometric.data import Batch

from protgraph.checkpoint.checkpoint_file import Checkpoint
from protgraph.errors import CheckpointError, ComponentError, NonFiniteError, OptionError, list_first
from protgraph.evaluation.evaluation import BatchPredictions, join_predictions, predict_batch
from protgraph.model.build import ProteinModel
from protgraph.model.nonfinite import describe_nonfinite, find_nonfinite_component
from protgraph.task.losses import known_labels
from protgraph.task.metrics import best_threshold, compute_metrics
from protgraph.task.task import Task
from protgraph.train.auxiliary import AuxiliaryTask
from protgraph.train.config import FitConfig
from protgraph.train.coordinate_noise import add_noise
from protgraph.train.data_module import FitData
from protgraph.train.gradients import GradientWatch
from protgraph.train.saved_step import repeat_step, save_step
from protgraph.train.session import random_state, set_random_state
from protgraph.wording import count_noun

__all__ = ["FitModule", "ShardedStrategy", "is_sharded", "learning_rate_factor", "resolve_strategy", "shard_model"]

WARM_UP = 0.05  # of all steps
_GPU_INTERVAL = 20  # steps; reading a number waits for the device


class StepInputs(NamedTuple):
    """Inputs of a training step: the batch after masking and noise, its labels, and torch's random state."""

    batch: Batch
    y: Tensor
    random_state: Tensor


class FitModule(pl.LightningModule):
    """Training of one model on one task; works with any ``lightning.pytorch.Trainer``.

    Parameters
    ----------
    config : FitConfig
        Its learning rate, schedule, noise and seed. Trainer options (epochs, devices, precision) belong to the Trainer.
    loss : callable, optional
        ``(logits, y)`` to a scalar; default: the loss of the task.

    Attributes
    ----------
    history : list of dict
        One row per validation: ``epoch`` from 1, ``train_loss`` (mean over known labels during the epoch), ``val_loss``
        and the metrics of the task. The same values are logged.
    thresholds : list of Tensor or None
        ``(C,)`` log-odds chosen on validation at each row of the history, for yes/no labels.
    residues, seconds : int, float
        Residues and seconds of training, without validation.
    notes : tuple of str
        Messages for the user, e.g. that a run was resumed with another number of processes.
    predicts_constant : bool
        True if all predictions of the last validation are equal, e.g. those of the baseline "majority".
    nonfinite : ComponentError or None
        Names the featurizer or layer whose output made the validation loss NaN or infinite.
    gradients : GradientWatch
        Norms of the gradients.
    step_folder : Path or None
        Where a step is saved whose loss or gradient is not finite; None saves none.

    Notes
    -----
    With W processes the loss of a global batch is the mean over its known labels (its proteins, if the task has one
    loss per protein), not the mean of the W means: each process scales its mean by W · count / Σ count, and Lightning
    averages the gradients.

    With a Trainer of the user, for splits of :func:`protgraph.labels.prepare`::

        trainer = pl.Trainer(max_epochs=30, gradient_clip_val=1.0, use_distributed_sampler=False)
        trainer.fit(FitModule(model, task, config), FitData(train, val, task, config))
    """

    def __init__(
        self,
        model: ProteinModel,
        task: Task,
        config: FitConfig,
        *,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        auxiliary: Sequence[AuxiliaryTask] = (),
    ) -> None:
        super().__init__()
        self.model, self.task, self.config, self.loss = model, task, config, loss or task.loss
        self.auxiliary = tuple(auxiliary)
        # their layers are those of the model
        self.auxiliary_heads = torch.nn.ModuleList([one.model.head for one in auxiliary])
        self.history: list[dict[str, float]] = []
        self.thresholds: list[Tensor | None] = []
        self.residues, self.seconds = 0, 0.0
        self.notes: tuple[str, ...] = ()
        self.nonfinite: ComponentError | None = None
        self.gradients = GradientWatch()
        self.step_folder: Path | None = None
        self.predicts_constant = False
        self._random: list[dict[str, Any]] | None = None
        self._start: float | None = None  # start of the training time not yet in `seconds`

    @property
    def residues_per_second(self) -> float:
        """Training speed of all processes together."""
        return self.residues / max(self.seconds, 1e-9)

    @property
    def batch_fields(self) -> frozenset[str] | None:
        """Fields and attributes of a batch that :meth:`training_step` reads; None: any."""
        is_plain = self.task.inputs.corrupt is None and type(self.task).batch_loss is Task.batch_loss
        if not is_plain or self.config.noise:
            return None
        return self.model.batch_fields | {"y", "y_level", "name"}

    def forward(self, batch: Batch) -> Tensor:
        """Compute the logits of a batch, ``(M, C)`` or ``(M, C, 3)`` for M rows of the target's level."""
        return self.model(batch)["logits"]

    def configure_model(self) -> None:
        """Freeze parts, and shard the weights if the strategy is ``"fsdp"``; a copy is kept for :meth:`unshard`."""
        if self.config.unfreeze_after and self.trainer.world_size > 1:
            raise OptionError(
                f"FitConfig: unfreeze_after = {self.config.unfreeze_after!r}, but {self.trainer.world_size} processes "
                "train. They agree once, at the start, which parameters are trained. Use devices=1, or freeze alone."
            )
        self.freeze_parts(self.current_epoch)
        if self.config.lora and isinstance(self.trainer.strategy, ShardedStrategy):
            raise OptionError(
                f"FitConfig: lora = {self.config.lora!r} does not work with strategy 'fsdp'. Use 'ddp': the optimizer "
                "has no state of frozen weights."
            )
        if self.auxiliary and isinstance(self.trainer.strategy, ShardedStrategy):
            raise OptionError(
                f"FitConfig: auxiliary = {self.config.auxiliary!r} does not work with strategy 'fsdp'. Use 'ddp': the "
                "heads of auxiliary tasks are not sharded."
            )
        if isinstance(self.trainer.strategy, ShardedStrategy) and not is_sharded(self.model):
            self._complete = (copy.deepcopy(self.model),)  # a tuple: not a part of this module
            shard_model(self.model, self.trainer.strategy.device_mesh["data_parallel"])

    def unshard(self) -> None:
        """Replace a sharded model by its complete copy, whose weights are those before training."""
        if is_sharded(self.model):
            (self.model,) = self._complete

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Return AdamW with the learning rate of :func:`learning_rate_factor` at each step."""
        c = self.config
        fused = c.precision == "float32"  # Lightning cannot clip gradients of a fused optimizer in mixed precision
        optimizer = torch.optim.AdamW(self._parameter_groups(), lr=c.lr, weight_decay=c.weight_decay, fused=fused)
        steps = _total_steps(self.trainer)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, partial(learning_rate_factor, steps=steps, schedule=c.schedule)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def _parameter_groups(self) -> list[dict[str, Any]]:
        """Return the parameters of each learning rate, without those that are never trained."""
        groups: dict[float, list[torch.nn.Parameter]] = {}
        for full_name, parameter in self.named_parameters():
            name = full_name.removeprefix("model.")
            if not self.config.is_frozen(name, math.inf):
                groups.setdefault(self.config.learning_rate(name), []).append(parameter)
        return [{"params": parameters, "lr": rate} for rate, parameters in groups.items()]

    def freeze_parts(self, epoch: int) -> None:
        """Freeze the parts of the model that are not trained after a number of epochs, and release the others."""
        self.model.freeze(partial(self.config.is_frozen, epoch=epoch))

    def on_train_start(self) -> None:
        """Seed the random streams of this process, or restore those of the interrupted run."""
        self.freeze_parts(self.current_epoch)  # of a resumed run, too
        seed, states, self._random = self.config.seed + self.global_rank, self._random, None
        self._generator = torch.Generator(self.device).manual_seed(seed)
        if states is not None and len(states) == self.trainer.world_size:
            set_random_state(states[self.global_rank], self._generator)
            self._follow_schedule()
        elif states is not None:
            entropy = np.random.SeedSequence([self.config.seed, self.global_step, self.global_rank])
            own, general = map(int, entropy.generate_state(2, np.uint64) >> 1)
            self._generator.manual_seed(own)
            torch.manual_seed(general)
            note = (
                f"resumed with {count_noun(self.trainer.world_size, 'process')}, interrupted with {len(states)}: the "
                "same batches in the same order; dropout, masking and noise continue with other random numbers"
            )
            self.notes = (*self.notes, note)
            self._follow_schedule()
        elif self.global_rank:
            torch.manual_seed(seed)  # another dropout mask in each process
        self._start = time.perf_counter()

    def _follow_schedule(self) -> None:
        """Set the learning rate of the next step; a state has that of its own number of epochs."""
        scheduler: Any = self.lr_schedulers()
        rates = [
            base * factor(scheduler.last_epoch)
            for base, factor in zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
        ]
        for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def on_train_epoch_start(self) -> None:
        """Freeze the parts of this epoch; reset the loss, the counts and the clock."""
        self.freeze_parts(self.current_epoch)
        self._loss = torch.zeros((), device=self.device)
        self._count = torch.zeros((), device=self.device)
        self._nodes = 0
        self._start = time.perf_counter()

    def training_step(self, batches: Batch | tuple[Batch | None, ...], batch_idx: int) -> Tensor:
        """Compute the loss, a scalar, of the share of this process in a global batch; see the notes of the class.

        ``batches``: the batch of the main task, or a tuple of it and of those of the auxiliary tasks.
        """
        batch, *aux_batches = batches if isinstance(batches, tuple) else (batches,)
        assert batch is not None  # of the main task
        loss = self._main_loss(batch)
        is_padding = "is_padding" in batch
        for auxiliary, aux_batch in zip(self.auxiliary, aux_batches, strict=True):
            loss = loss + auxiliary.weight * self._auxiliary_loss(auxiliary, aux_batch, is_padding=is_padding)
        return loss

    def _auxiliary_loss(self, auxiliary: AuxiliaryTask, batch: Batch | None, *, is_padding: bool) -> Tensor:
        """Compute the share of this process in the loss of an auxiliary task, a scalar, as that of the main task."""
        if batch is None:
            loss, count = auxiliary.no_loss()
        else:
            loss, count = auxiliary.training_loss(batch, self._generator, noise=self.config.noise)
        if self.trainer.world_size == 1:
            return loss
        weight = torch.zeros_like(loss) if is_padding else count.to(loss)
        total = self._sum(weight.clone())
        return loss * weight / total.clamp(min=1) * self.trainer.world_size

    def _main_loss(self, batch: Batch) -> Tensor:
        """Compute the loss of the main task, a scalar."""
        is_padding = "is_padding" in batch
        batch, y = self.task.inputs.apply(batch, self._generator, training=True)
        if self.config.noise:
            batch = add_noise(batch, self.config.noise, self._generator)
        self._inputs = StepInputs(batch, y, torch.get_rng_state())
        outputs = {name: value.float() for name, value in self.model(batch).items()}
        loss = self._loss_of(outputs, self._inputs)
        self._check_loss(loss, batch)
        count = known_labels(y).sum()
        if self.trainer.world_size == 1:
            self._nodes += batch.num_nodes
            self._loss += loss.detach() * count
            self._count += count
            return loss
        weight = torch.full_like(count, batch.num_graphs) if self.task.loss_per_protein else count
        if is_padding:
            weight, count = torch.zeros_like(weight), torch.zeros_like(count)
        else:
            self._nodes += batch.num_nodes
        total, labels = self._sum(torch.stack([weight, count]).to(loss)).unbind()
        share = loss * weight / total.clamp(min=1)  # the shares of all processes add up to the global mean
        self._loss += share.detach() * labels
        self._count += count
        return share * self.trainer.world_size  # Lightning averages gradients over processes

    def _loss_of(self, outputs: Mapping[str, Tensor], inputs: StepInputs) -> Tensor:
        """Compute the loss of a batch, a scalar, from the outputs of the head."""
        loss = self.model.head.training_loss(outputs, inputs.y)
        return self.task.batch_loss(self.loss, outputs["logits"], inputs.y, inputs.batch) if loss is None else loss

    @property
    def _reads_numbers(self) -> bool:
        """True in steps whose loss and gradient are read; on a GPU that waits for the device."""
        return self.device.type == "cpu" or self.global_step % _GPU_INTERVAL == 0

    def _check_loss(self, loss: Tensor, batch: Batch) -> None:
        """Stop at a loss that is not finite; several processes stop at the gradient, which is that of all."""
        if is_sharded(self.model) or not self._reads_numbers or math.isfinite(loss.detach()):
            return
        fault = find_nonfinite_component(self.model, batch)
        if self.trainer.world_size == 1:
            raise self._nonfinite_step("the loss", fault)
        if fault is not None and not self.global_step:
            raise fault

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Stop at a gradient that is not finite, before the weights are changed."""
        if is_sharded(self.model):
            return
        norm = self.gradients.update(self.model.named_parameters())
        if not self._reads_numbers:
            return
        if not math.isfinite(norm):
            raise self._nonfinite_step("the gradient", find_nonfinite_component(self.model, self._inputs.batch))
        self.gradients.check_size(float(norm), self.global_step)

    def on_train_epoch_end(self) -> None:
        """Note parameters without an effect, if all of them are trained from the start."""
        if not is_sharded(self.model) and not self.config.unfreeze_after:
            self.gradients.describe_unused(self.model.named_parameters())

    def _nonfinite_step(self, quantity: str, fault: ComponentError | None) -> NonFiniteError:
        """Save the present step, and return its error."""
        inputs, precision = self._inputs, self.config.precision
        names = tuple(map(str, inputs.batch.name))
        step, epoch = self.global_step, self.current_epoch + 1
        text = f"training of model {self.model.spec.name!r}, step {step} (epoch {epoch}): {quantity} is not finite"
        if self.device.type != "cpu":
            text += f". On a GPU it is read in one of {_GPU_INTERVAL} steps; device='cpu' finds the step and saves it"
            return NonFiniteError(f"{text}.", step=step, epoch=epoch, proteins=names, cause=fault)

        # The same forward pass again: where is the first such value, and in which proteins?
        gradients: dict[str, Tensor] = {}
        bad_proteins: list[str] = []

        def output_gradients(outputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
            floats = {name: value.float() for name, value in outputs.items()}
            bad_proteins.extend(_proteins_not_finite(floats["logits"], inputs.batch, names))
            results = torch.autograd.grad(self._loss_of(floats, inputs), list(floats.values()), allow_unused=True)
            for name, result in zip(floats, results, strict=True):
                if result is not None:
                    gradients[name] = result
            return gradients

        traces = repeat_step(self.model, inputs.batch, output_gradients, inputs.random_state, precision=precision)
        cause = describe_nonfinite(traces)
        proteins = tuple(bad_proteins) or names
        text += f"; first {cause}" if cause else ""
        text += f", proteins {list_first(proteins, 5)}."
        text += " Use a smaller lr" if fault is None else f" {fault}"
        folder = self._save_step(gradients, {"step": step, "epoch": epoch, "proteins": proteins, "cause": cause})
        if folder:
            text = f"{text.rstrip('.')}. The step is saved: protgraph replay {folder}"
        return NonFiniteError(f"{text}.", step=step, epoch=epoch, proteins=proteins, folder=folder, cause=fault)

    def _save_step(self, gradients: Mapping[str, Tensor], record: Mapping[str, Any]) -> str:
        """Save the present step, and return its folder; "" if there is none, or a checkpoint cannot have the model."""
        if self.step_folder is None or self.global_rank or self.config.lora or self.config.compile:
            return ""
        record = {**record, "precision": self.config.precision, "config": self.config.to_dict()}
        checkpoint = Checkpoint(self.model, self.task.name, hidden=self.task.inputs.hidden)
        save_step(self.step_folder, checkpoint, self._inputs.batch, gradients, self._inputs.random_state, record=record)
        return str(self.step_folder)

    def on_validation_start(self) -> None:
        """Sum loss, residues and time of the epoch over all processes."""
        if self._start is not None:
            self._train_loss = float(self._sum(self._loss.clone()) / self._sum(self._count.clone()).clamp(min=1))
            self.residues += int(self._sum(self._count.new_tensor(self._nodes, dtype=torch.float64)))
            self.seconds += time.perf_counter() - self._start  # after the line that waits for the device
            self._start = None

    def on_validation_epoch_start(self) -> None:
        """Discard the predictions of the epoch before."""
        self._parts: list[BatchPredictions] = []

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Predict one batch in float32; the padding of a ragged last batch is left out."""
        is_padding = "is_padding" in batch
        if is_padding and not is_sharded(self.model):  # all processes take part in a forward pass of shards
            return
        with torch.autocast(self.device.type, enabled=False):  # evaluation is float32
            part = predict_batch(self.model, batch, self.task, loss=self.loss)
        self._parts += [] if is_padding else [part]

    def on_validation_epoch_end(self) -> None:
        """Add a row to the history, and log it."""
        rows = join_predictions(self._gather(self._parts))
        self._parts = []
        self.predicts_constant = bool((rows.logits == rows.logits[:1]).all())
        of_auxiliary = [one.validate() for one in self.auxiliary]
        threshold = best_threshold(rows) if self.task.has_threshold else None
        metrics = compute_metrics(self.task.metrics, rows.with_threshold(threshold), task=self.task.name)
        val_loss = float(self.task.compute_loss(self.loss, rows.logits, rows.y)) if rows.loss is None else rows.loss
        if self.trainer.sanity_checking:
            return
        if not math.isfinite(val_loss):
            self._find_nonfinite()
        row = {"epoch": self.current_epoch + 1, "train_loss": self._train_loss, "val_loss": val_loss, **metrics}
        for values in of_auxiliary:
            row |= values
        self.history.append(row)
        self.thresholds.append(threshold)
        # A model of NaN predicts the first class, which a metric may rate highly.
        monitored = metrics[self.task.monitor] if math.isfinite(val_loss) else math.nan
        values = {key: value for key, value in row.items() if key != "epoch"} | {self.task.monitor: monitored}
        sync = self.trainer.world_size > 1  # equal in all processes
        for key, value in values.items():
            # float64: callbacks compare exactly what the history has
            shown = key in ("train_loss", self.task.monitor)
            self.log(key, torch.tensor(value, dtype=torch.float64), prog_bar=shown, batch_size=1, sync_dist=sync)

    def _find_nonfinite(self) -> None:
        """Find the component that made the validation loss NaN, unless one is known."""
        if self.nonfinite is not None or is_sharded(self.model):
            return
        loader = self.trainer.val_dataloaders
        assert loader is not None  # of this epoch
        self.nonfinite = find_nonfinite_component(self.model, next(iter(loader)).to(self.device))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add history and the counts of the present epoch to a Lightning checkpoint, and random states to resume."""
        has_state = "optimizer_states" in checkpoint
        checkpoint["protgraph"] = {
            "random": self._gather([random_state(getattr(self, "_generator", None))]) if has_state else [],
            "history": [dict(row) for row in self.history],
            "thresholds": list(self.thresholds),
            "residues": self.residues,
            "nodes": int(self._sum(self._count.new_tensor(self._nodes, dtype=torch.float64))),
            "seconds": self.seconds + (0.0 if self._start is None else time.perf_counter() - self._start),
            "loss": self._sum(self._loss.clone()),
            "count": self._sum(self._count.clone()),
        }

    def on_load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore the content of :meth:`on_save_checkpoint`, which may be of another number of processes."""
        state = checkpoint["protgraph"]
        self._random = state["random"]
        saved = checkpoint.get("state_dict")
        if saved and _shapes(saved) != _shapes(self.state_dict()):
            raise CheckpointError(
                f"Cannot resume: the state has other weights than model {self.model.spec.name!r}, whose code has "
                "changed. Start again without resume."
            )
        self.history = list(state["history"])
        self.thresholds = list(state["thresholds"])
        self.residues = state["residues"]
        self.seconds = state["seconds"]
        # sums over all processes, which the first one continues
        is_first = self.global_rank == 0
        self._nodes = state["nodes"] * is_first
        self._loss = state["loss"].to(self.device) * is_first
        self._count = state["count"].to(self.device) * is_first

    def _sum(self, value: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.trainer.world_size > 1:
            torch.distributed.all_reduce(value)
        return value

    def _gather(self, items: list[Any]) -> list[Any]:
        """Collect the items of all processes, item i of process r at place i · W + r."""
        if self.trainer.world_size == 1:
            return items
        lists: list[list[Any]] = [[] for _ in range(self.trainer.world_size)]
        torch.distributed.all_gather_object(lists, items)
        return [one[i] for i in range(max(map(len, lists))) for one in lists if i < len(one)]


def _proteins_not_finite(logits: Tensor, batch: Batch, names: Sequence[str]) -> list[str]:
    """Return the proteins with logits that are not finite; none if their rows are not nodes or proteins."""
    is_bad = ~torch.isfinite(logits.detach()).reshape(len(logits), -1).all(1)
    if len(logits) == batch.num_nodes:
        numbers = batch.batch[is_bad].unique().tolist()
    elif len(logits) == len(names):
        numbers = is_bad.nonzero()[:, 0].tolist()
    else:
        numbers = []
    return [names[number] for number in numbers]


def _shapes(state: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in state.items()}


def _total_steps(trainer: pl.Trainer) -> int:
    """Return the number of optimizer steps of a run.

    Lightning multiplies the batches of the first epoch by the number of epochs; with a residue budget, epochs differ.
    """
    steps, data = int(trainer.estimated_stepping_batches), getattr(trainer, "datamodule", None)
    has_all = trainer.accumulate_grad_batches == 1 and trainer.limit_train_batches == 1.0 and trainer.max_steps == -1
    if not isinstance(data, FitData) or not has_all or trainer.max_epochs is None:
        return steps
    return data.steps(trainer.max_epochs)


def learning_rate_factor(step: int, *, steps: int, schedule: str) -> float:
    """Return the learning rate of a step relative to its peak: a linear warm-up, then half a cosine or 1."""
    warm = max(1, round(WARM_UP * steps))
    if step < warm:
        return (step + 1) / warm
    if schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1, steps - warm))))


class ShardedStrategy(ModelParallelStrategy):
    """Strategy that shards the weights, gradients and optimizer state of a model over all processes.

    Checkpoints are complete: they are files of the same form as those of one process.

    References
    ----------
    Zhao et al. 2023, doi:10.14778/3611540.3611569.
    """

    def __init__(self) -> None:
        super().__init__(tensor_parallel_size=1, save_distributed_checkpoint=False)

    def setup_environment(self) -> None:
        """Use all processes for data."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()


def resolve_strategy(strategy: str | Strategy) -> str | Strategy:
    """Return the object of ``"fsdp"``; other strategies are returned as they are."""
    return ShardedStrategy() if strategy == "fsdp" else strategy


def shard_model(model: ProteinModel, mesh: DeviceMesh) -> None:
    """Shard each layer, the head and the remaining weights of a model, in place."""
    for part in (*model.layers, model.head):
        if any(True for _ in part.parameters()):
            fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)


def is_sharded(model: torch.nn.Module) -> bool:
    """Return True for a model of :func:`shard_model`."""
    return isinstance(model, FSDPModule)

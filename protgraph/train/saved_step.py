"""A training step whose loss or gradient is not finite: saved with its batch and weights, and repeated.

A saved step is a folder: ``model.safetensors``, the checkpoint before the step, ``batch``, a graph store, and
``step.safetensors`` with the random state and the gradients of the loss with respect to the outputs of the head.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.argument_types import check_arguments
from protgraph.checkpoint.checkpoint_file import Checkpoint, load_checkpoint, save_checkpoint
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_writer import write_store
from protgraph.errors import DatasetError
from protgraph.file_io import atomic_write
from protgraph.model.build import ProteinModel
from protgraph.model.nonfinite import ComponentTrace, describe_nonfinite, trace_step

__all__ = ["SAVED_STEP", "StepReplay", "repeat_step", "replay_step", "save_step"]

#: Name of the folder of a saved step in the folder of a run.
SAVED_STEP = "nonfinite_step"
_RANDOM = "random_state"
_GRADIENT = "output_gradient/"


@dataclass(frozen=True)
class StepReplay:
    """A repeated training step.

    ``cause``: what becomes NaN or infinite first; "" if nothing does here. ``traces``: largest values of each layer
    and of the head. ``saved``: step, epoch, proteins and cause at training.
    """

    cause: str
    traces: tuple[ComponentTrace, ...]
    saved: Mapping[str, Any]


def save_step(
    folder: Path,
    checkpoint: Checkpoint,
    batch: Batch,
    output_gradients: Mapping[str, Tensor],
    random_state: Tensor,
    record: Mapping[str, Any],
) -> None:
    """Write the folder of a step, and replace that of an earlier one.

    Parameters
    ----------
    checkpoint : Checkpoint
        The model with the weights before the step.
    batch : Batch
        What the model reads, after masking and noise.
    output_gradients : mapping of str to Tensor
        Gradients of the loss with respect to the outputs of the head.
    random_state : Tensor
        State of torch's generator before the forward pass, for dropout.
    record : mapping
        Plain data: step, epoch, proteins, cause, precision.
    """
    graphs = batch.cpu().to_data_list()
    for graph in graphs:
        for key, value in batch.to_dict().items():
            if key == "y_level" or key.endswith("_ends"):
                graph[key] = value
    tensors = {f"{_GRADIENT}{name}": value.detach().cpu().contiguous() for name, value in output_gradients.items()}
    with atomic_write(folder, folder=True, overwrite=True) as temporary:
        save_checkpoint(temporary / "model.safetensors", checkpoint)
        write_store(temporary / "batch", graphs)
        metadata = {"step": json.dumps(dict(record))}
        save_file({**tensors, _RANDOM: random_state}, temporary / "step.safetensors", metadata=metadata)


@check_arguments("folder")
def replay_step(folder: str | Path) -> StepReplay:
    """Repeat a saved training step on the CPU, without the update of the weights.

    Parameters
    ----------
    folder : str or Path
        Folder of the step, or of the run that it is in, or a file of the step.

    Raises
    ------
    DatasetError
        There is no saved step.
    CheckpointError
        The installed components do not fit its model.
    """
    path = _find_step(Path(folder))
    try:
        with safe_open(path / "step.safetensors", framework="pt") as file:
            record = json.loads((file.metadata() or {})["step"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- not a mapping
        random_state = tensors.pop(_RANDOM)
    except (OSError, SafetensorError, KeyError, ValueError) as e:
        raise DatasetError(f"{path / 'step.safetensors'} is damaged: {e}. Copy it again.") from e
    model = load_checkpoint(path / "model.safetensors", check_code=False).model
    store = GraphStore(path / "batch")
    store.verify()
    batch = store.collate(range(len(store)))
    gradients = {name.removeprefix(_GRADIENT): value for name, value in tensors.items()}
    traces = repeat_step(model, batch, lambda _: gradients, random_state, precision=record["precision"])
    return StepReplay(describe_nonfinite(traces), tuple(traces), record)


def repeat_step(
    model: ProteinModel,
    batch: Batch,
    output_gradients: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
    random_state: Tensor,
    *,
    precision: str,
) -> list[ComponentTrace]:
    """Run forward and backward pass of a step in training mode; the random state of the process is restored.

    ``output_gradients``: see :func:`protgraph.model.nonfinite.trace_step`.
    """
    is_half = precision == "bfloat16"
    was_training = model.training
    try:
        with torch.random.fork_rng(devices=[]), torch.autocast("cpu", torch.bfloat16, enabled=is_half):
            torch.set_rng_state(random_state)
            return trace_step(model.train(), batch, output_gradients)
    finally:
        model.train(was_training)


def _find_step(path: Path) -> Path:
    """Return the folder of a saved step."""
    for folder in (path, path / SAVED_STEP, path.parent):
        if (folder / "step.safetensors").is_file():
            return folder
    raise DatasetError(
        f"no saved training step in {str(path)!r}. Give the folder of a run that stopped because its loss or gradient "
        f"was not finite, or its folder {SAVED_STEP!r}."
    )

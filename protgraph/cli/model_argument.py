"""Model argument of commands: a model or trained model by name, or a checkpoint file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from protgraph.errors import CheckpointError
from protgraph.registry import models, trained_models

if TYPE_CHECKING:
    from protgraph.checkpoint import Checkpoint

__all__ = ["find_checkpoint"]


def find_checkpoint(argument: str) -> Checkpoint | None:
    """Load the checkpoint of a file or a trained model's name; return None for the name of a model without weights.

    Raises
    ------
    CheckpointError
        The argument looks like a path ("x.safetensors", "runs/x") without a file, or the file is not a checkpoint.
    """
    path = Path(argument)
    if path.is_file():
        from protgraph.checkpoint import load_checkpoint

        return load_checkpoint(path)
    if argument in trained_models and argument not in models:
        from protgraph.checkpoint.checkpoint_file import as_checkpoint

        return as_checkpoint(argument)
    if path.suffix == ".safetensors" or (len(path.parts) > 1 and argument not in models):
        problem = "is a folder" if path.is_dir() else "not found"
        raise CheckpointError(f"checkpoint {argument!r} {problem}. Give a file of 'protgraph train', or a model name.")
    return None

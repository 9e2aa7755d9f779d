"""What commands share that take a model by name or by file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from protgraph.errors import CheckpointError

if TYPE_CHECKING:
    from protgraph.train import Checkpoint

__all__ = ["find_checkpoint"]


def find_checkpoint(given: str) -> Checkpoint | None:
    """The checkpoint of a file; None where what is given is a name.

    Raises
    ------
    CheckpointError
        It reads like a file ("x.safetensors", "runs/x") and is none, or is no checkpoint.
    """
    path = Path(given)
    if path.is_file():
        from protgraph.train import load_checkpoint

        return load_checkpoint(path)
    if path.suffix == ".safetensors" or len(path.parts) > 1:
        what = "is a folder" if path.is_dir() else "is not there"
        raise CheckpointError(f"checkpoint {given!r} {what}; give the file that 'protgraph train' wrote, or a name")
    return None

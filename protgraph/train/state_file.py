"""Write files of the training state atomically, and check them when they are read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO

from protgraph.errors import CheckpointError
from protgraph.file_io import atomic_write

__all__ = ["StateFileIO", "check_state_file"]


class StateFileIO(TorchCheckpointIO):
    """Lightning plugin that writes each checkpoint beside its place and renames it.

    Not TorchCheckpointIO alone: it writes to the system's temporary folder and moves the file, which is a copy if the
    folders are on different file systems; a kill then leaves half a file (Lightning 2.6.6, 2026-11-22).
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: object | None = None
    ) -> None:
        """Write a checkpoint with ``torch.save``; ``storage_options`` are not used."""
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            try:
                torch.save(checkpoint, file)  # torch's own writer hides the reason of a failed write
            except RuntimeError as e:  # of the writer that an interruption left in the middle of a record
                if isinstance(e.__context__, KeyboardInterrupt):
                    raise e.__context__ from None
                raise

    def load_checkpoint(self, path: str | Path, *args: Any, **options: Any) -> dict[str, Any]:
        """Read a checkpoint."""
        try:
            checkpoint = super().load_checkpoint(path, *args, **options)
        except (UnpicklingError, EOFError, RuntimeError) as e:
            raise _damaged(path, str(e).partition("\n")[0]) from e
        if "protgraph" not in checkpoint:
            raise _damaged(path, "not a state of this program")
        return checkpoint


def check_state_file(path: Path) -> None:
    """Compare the content of a file of ``torch.save`` with its checksums, which ``torch.load`` does not."""
    try:
        with zipfile.ZipFile(path) as file:
            damaged = file.testzip()
    except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile) as e:
        raise _damaged(path, e) from e
    if damaged is not None:
        raise _damaged(path, f"wrong checksum of {damaged}")


def _damaged(path: str | Path, reason: object) -> CheckpointError:
    return CheckpointError(f"Cannot resume from {path}: {reason}. Start again without resume.")

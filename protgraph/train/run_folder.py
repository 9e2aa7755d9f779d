"""Folder of a run: training state, best weights, and the identity that a resumed run must have.

The state is ``checkpoints/state.ckpt``, the best epoch ``checkpoints/best.ckpt``. Both load with ``weights_only=True``,
are replaced atomically, and stay when training has finished, so that the run can be trained longer. ``run.json`` has
the identity and, of a finished run, its epochs.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Self

import torch
from filelock import FileLock, Timeout
from lightning.fabric.plugins import TorchCheckpointIO

from protgraph.errors import CheckpointError, OptionError
from protgraph.file_io import atomic_write, remove_if_empty, write_text_file
from protgraph.train.callbacks import BEST
from protgraph.train.config import FitConfig
from protgraph.train.session import is_first_process

__all__ = ["RunFolder", "StateFileIO", "check_state_file"]

RECORD, LOCK = "run.json", "run.lock"
STATE_FORMAT = 3  # of the training state; raise it when its content changes
#: Options that a resumed run may change.
_LENGTH = ("epochs", "patience")
_WAIT = 10.0  # seconds; worker processes of a killed run end within 5 and hold its lock until then


class RunFolder:
    """Context manager of the files of one run. Only the first process of a distributed run writes and removes them.

    ``path``: folder to write to. None uses a temporary one, without a training state. ``earlier_epochs``: option
    ``epochs`` of the run that is resumed, if it was another one.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.is_temporary = path is None
        self.path = Path(tempfile.mkdtemp(prefix="protgraph-")) if path is None else Path(path)
        self._missing = [parent for parent in self.path.absolute().parents if not parent.exists()]
        self._lock = FileLock(self.checkpoints / LOCK, timeout=_WAIT)
        self._identity: Mapping[str, Any] = {}
        self.earlier_epochs: int | None = None

    @property
    def checkpoints(self) -> Path:
        """Folder of the training state and the best weights."""
        return self.path / "checkpoints"

    @property
    def state(self) -> Path:
        """File of the training state."""
        return self.checkpoints / "state.ckpt"

    @property
    def best(self) -> Path:
        """File of the best epoch."""
        return self.checkpoints / f"{BEST}.ckpt"

    def start(self, identity: Mapping[str, Any], *, resume: bool) -> Path | None:
        """Lock the folder and record the identity of a run; return the state to resume from, if there is one."""
        identity = json.loads(json.dumps({**identity, "state_format": STATE_FORMAT}, sort_keys=True, default=str))
        try:
            if is_first_process():
                self.checkpoints.mkdir(parents=True, exist_ok=True)
                self._lock.acquire()
            state = self.state if resume and self.state.is_file() else None
            if state is not None:
                self._check_state(identity)
            elif is_first_process():
                self._remove_files()
            self._identity = identity
            self._write_record({})
        except Timeout as e:
            raise OptionError(
                f"run_dir {str(self.path)!r} is used by another run. Use another folder, or wait until it has finished."
            ) from e
        except OSError as e:
            raise OptionError(
                f"run_dir {str(self.path)!r} cannot be written: {e.strerror} ({e.filename}). Use another folder."
            ) from e
        return state

    def finish(self, *, epochs: int, best_epoch: int) -> None:
        """Record that the run has ended after some epochs; :meth:`describe_end` reads it."""
        if not self.is_temporary:
            self._write_record({"finished": {"epochs": epochs, "best_epoch": best_epoch}})

    def describe_end(self, config: FitConfig) -> str:
        """Return why the finished run in the folder does not train longer with some options.

        The text is empty if it does, or if the folder has no finished run.
        """
        try:
            earlier = json.loads((self.checkpoints / RECORD).read_text("utf-8"))
            finished = earlier.get("finished")
        except (OSError, ValueError, AttributeError):  # `start` raises
            return ""
        if finished is None or not self.state.is_file():
            return ""
        epochs, best = finished["epochs"], finished["best_epoch"]
        if config.epochs <= epochs:
            return f"the run in {self.path} has finished {epochs} epochs. Train longer with more epochs"
        without_improvement = epochs - best
        if config.patience is not None and without_improvement >= config.patience:
            return (
                f"the run in {self.path} has stopped after epoch {epochs}: none after epoch {best} was better, and "
                f"patience is {config.patience}. Train longer with a larger patience"
            )
        return ""

    def remove_state(self) -> None:
        """Remove state and best weights, and each folder if nothing else is in it."""
        self._remove_files()
        (self.checkpoints / LOCK).unlink(missing_ok=True)
        remove_if_empty([self.checkpoints, self.path, *self._missing])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Unlock the folder; without a state to resume from, remove all files of the run."""
        was_locked = self._lock.is_locked
        self._lock.release()
        if self.is_temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        elif is_first_process() and was_locked and not self.state.exists():
            self.remove_state()

    def _write_record(self, more: Mapping[str, Any]) -> None:
        if is_first_process():
            write_text_file(self.checkpoints / RECORD, json.dumps({**self._identity, **more}))

    def _remove_files(self) -> None:
        parts = self.checkpoints.glob(".*.part")  # of a process that was killed while it wrote
        for path in (self.state, self.best, self.checkpoints / RECORD, *parts):
            path.unlink(missing_ok=True)

    def _check_state(self, identity: Mapping[str, Any]) -> None:
        """Compare the recorded identity, and check the files of the state and of the best epoch.

        A run may be trained longer than planned: with more epochs, or with another patience.
        """
        try:
            earlier = json.loads((self.checkpoints / RECORD).read_text("utf-8"))
            changed = []
            for key, now in identity.items():
                changed += _changes(key, _without_length(earlier[key]), _without_length(now))
            epochs, earlier_epochs = identity["config"]["epochs"], earlier["config"]["epochs"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise CheckpointError(
                f"Cannot resume from {self.state}: {RECORD} beside it is missing or damaged. Start again without "
                "resume."
            ) from e
        if epochs < earlier_epochs:
            changed.append(f"config.epochs = {earlier_epochs}, more than {epochs}")
        if changed:
            raise CheckpointError(
                f"Cannot resume from {self.state}: the interrupted run had {', '.join(changed)}. Use the same "
                "arguments and versions, or start again without resume."
            )
        self.earlier_epochs = None if epochs == earlier_epochs else earlier_epochs
        check_state_file(self.state)
        if self.best.exists():
            check_state_file(self.best)


def _without_length(value: Any) -> Any:
    """Return options without those that a resumed run may change; any other value as it is."""
    return {k: v for k, v in value.items() if k not in _LENGTH} if isinstance(value, Mapping) else value


def _changes(key: str, before: Any, now: Any) -> list[str]:
    """Describe the differences between two values; those of mappings by key."""
    if before == now:
        return []
    if isinstance(now, Mapping):
        new = [f"no {key}.{k}, which this version has" for k in now if k not in before]
        common = [k for k in now if k in before]
        return new + [x for k in common for x in _changes(f"{key}.{k}", before[k], now[k])] or [f"another {key}"]
    return [f"another {key}"] if isinstance(now, list) else [f"{key} = {before!r}, not {now!r}"]


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

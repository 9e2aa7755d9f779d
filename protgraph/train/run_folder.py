"""Folder of a run: training state, best weights, and the identity that a resumed run must have.

The state is ``checkpoints/state.ckpt``, the best epoch ``checkpoints/best.ckpt``. Both load with ``weights_only=True``,
are replaced atomically, and are removed when training has finished.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from protgraph.errors import CheckpointError, OptionError
from protgraph.file_io import remove_if_empty, write_text_file
from protgraph.train.callbacks import BEST
from protgraph.train.session import is_first_process
from protgraph.train.state_file import check_state_file

__all__ = ["RunFolder"]

RECORD, LOCK = "run.json", "run.lock"
STATE_FORMAT = 3  # of the training state; raise it when its content changes
_WAIT = 10.0  # seconds; worker processes of a killed run end within 5 and hold its lock until then


class RunFolder:
    """Context manager of the files of one run. Only the first process of a distributed run writes and removes them.

    Parameters
    ----------
    path : str or Path, optional
        Folder to write to. None uses a temporary one, without a training state.

    Attributes
    ----------
    path : Path
    is_temporary : bool
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.is_temporary = path is None
        self.path = Path(tempfile.mkdtemp(prefix="protgraph-")) if path is None else Path(path)
        self._missing = [parent for parent in self.path.absolute().parents if not parent.exists()]
        self._lock = FileLock(self.checkpoints / LOCK, timeout=_WAIT)

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
        """Lock the folder and record the identity of a run; return the state to resume from, if there is one.

        Parameters
        ----------
        identity : mapping of str to mapping
            Plain data that determine the result: model, dataset, task, options and versions.
        resume : bool
            Otherwise an earlier state is removed.

        Raises
        ------
        CheckpointError
            The state is damaged or of another run.
        OptionError
            The folder cannot be written, or another run uses it.
        """
        identity = json.loads(json.dumps({**identity, "state_format": STATE_FORMAT}, sort_keys=True, default=str))
        try:
            if is_first_process():
                self.checkpoints.mkdir(parents=True, exist_ok=True)
                self._lock.acquire()
            if resume and self.state.is_file():
                self._check_state(identity)
                return self.state
            if is_first_process():
                self._remove_files()
                write_text_file(self.checkpoints / RECORD, json.dumps(identity))
        except Timeout as e:
            raise OptionError(
                f"run_dir {str(self.path)!r} is used by another run. Use another folder, or wait until it has finished."
            ) from e
        except OSError as e:
            raise OptionError(
                f"run_dir {str(self.path)!r} cannot be written: {e.strerror} ({e.filename}). Use another folder."
            ) from e
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove state and best weights unless the run can be resumed, and each folder if nothing else is in it."""
        if self.is_temporary:
            self._lock.release()
            shutil.rmtree(self.path, ignore_errors=True)
        elif is_first_process() and self._lock.is_locked and (kind is None or not self.state.exists()):
            self._remove_files()
            self._lock.release()
            (self.checkpoints / LOCK).unlink(missing_ok=True)
            remove_if_empty([self.checkpoints, self.path, *self._missing])
        else:
            self._lock.release()

    def _remove_files(self) -> None:
        parts = self.checkpoints.glob(".*.part")  # of a process that was killed while it wrote
        for path in (self.state, self.best, self.checkpoints / RECORD, *parts):
            path.unlink(missing_ok=True)

    def _check_state(self, identity: Mapping[str, Any]) -> None:
        """Compare the recorded identity, and check the files of the state and of the best epoch."""
        try:
            earlier = json.loads((self.checkpoints / RECORD).read_text("utf-8"))
            self._check_format(earlier)
            changed = [text for key, now in identity.items() for text in _changes(key, earlier[key], now)]
        except CheckpointError:  # a ValueError
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise CheckpointError(
                f"Cannot resume from {self.state}: {RECORD} beside it is missing or damaged. Start again without "
                "resume."
            ) from e
        if changed:
            raise CheckpointError(
                f"Cannot resume from {self.state}: the interrupted run had {', '.join(changed)}. Use the same "
                "arguments and versions, or start again without resume."
            )
        check_state_file(self.state)
        if self.best.exists():
            check_state_file(self.best)

    def _check_format(self, earlier: Mapping[str, Any]) -> None:
        """Raise if another version of protgraph wrote the state in another form."""
        form = earlier.get("state_format", 1)
        if form != STATE_FORMAT:
            written = earlier.get("versions", {}).get("protgraph", "of unknown number")
            raise CheckpointError(
                f"Cannot resume from {self.state}: an {'older' if form < STATE_FORMAT else 'newer'} version of "
                f"protgraph ({written}, state format {form}) wrote it; this one reads format {STATE_FORMAT}. Resume "
                "with the version that wrote it, or start again without resume."
            )


def _changes(key: str, before: Any, now: Any) -> list[str]:
    """Describe the differences between two values; those of mappings by key."""
    if before == now:
        return []
    if isinstance(now, Mapping):
        new = [f"no {key}.{k}, which this version has" for k in now if k not in before]
        common = [k for k in now if k in before]
        return new + [x for k in common for x in _changes(f"{key}.{k}", before[k], now[k])] or [f"another {key}"]
    return [f"another {key}"] if isinstance(now, list) else [f"{key} = {before!r}, not {now!r}"]

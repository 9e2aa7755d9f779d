"""Folder of a run: training state, best weights, logs, and the identity that a resumed run must have.

The state is ``checkpoints/state.ckpt``, the best epoch ``checkpoints/best.ckpt``. Both load with ``weights_only=True``,
are replaced atomically, and are removed when training has finished.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protgraph.errors import CheckpointError
from protgraph.train.callbacks import STATE
from protgraph.train.session import is_first_process

__all__ = ["RunFolder"]


class RunFolder:
    """Files of one run. Only the first process of a distributed run writes and removes them.

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

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def state(self) -> Path:
        """File of the training state."""
        return self.checkpoints / f"{STATE}.ckpt"

    def start(self, identity: Mapping[str, Any], *, resume: bool) -> Path | None:
        """Record the identity of a run; return the state to resume from, if there is one.

        Parameters
        ----------
        identity : mapping
            Plain data that decides the result (model, dataset, task, options).
        resume : bool
            Otherwise an earlier state is removed.

        Raises
        ------
        CheckpointError
            The state is of another run.
        """
        identity = json.loads(json.dumps(identity, sort_keys=True, default=str))
        record = self.checkpoints / "run.json"
        if resume and self.state.is_file():
            earlier = json.loads(record.read_text("utf-8"))
            changed = [key for key in identity if earlier.get(key) != identity[key]]
            if changed:
                raise CheckpointError(
                    f"Cannot resume from {self.state}: another {', '.join(changed)} than in the interrupted run. "
                    "Use the same arguments, or start again without resume."
                )
            return self.state
        if not is_first_process():
            return None
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(identity), encoding="utf-8")
        return None

    def finish(self) -> None:
        """Remove state and best weights after a run, and the folder if nothing else is in it."""
        if not (self.is_temporary or is_first_process()):
            return
        shutil.rmtree(self.path if self.is_temporary else self.checkpoints, ignore_errors=True)
        if not self.is_temporary and self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

"""Small training runs, also one after another in a process: ``python -m tests.train.runs STRUCTURES RUNS``.

``RUNS`` is a JSON list of pairs: path of the weights, options. Several runs share the start of the process, and with
``devices`` = 2 that of the second one.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from lightning.pytorch.callbacks import Callback
from safetensors.torch import save_file

from protgraph.train import FitConfig, fit
from protgraph.train.session import is_first_process
from tests.train.conftest import Small, tiny_spec


class RecordBatches(Callback):
    """Append the proteins of each batch to ``batches-RANK.txt``; raise before a step."""

    def __init__(self, folder: Path, stop: int | None) -> None:
        self.folder, self.stop = folder, stop

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.global_step == self.stop:
            raise RuntimeError("stop")
        if "is_padding" not in batch:
            with (self.folder / f"batches-{trainer.global_rank}.txt").open("a") as file:
                file.write(json.dumps([trainer.global_step, sorted(batch.name)]) + "\n")


def run(out: Path, structures: Path, options: dict) -> None:
    """Train, and write weights and numbers; ``options`` are those of ``fit`` and of this module."""
    options = dict(options)
    config = FitConfig(**{"batch_residues": 256, "device": "cpu", "patience": None} | options.pop("config"))
    task, dropout, pause = options.pop("task", "helix"), options.pop("dropout", 0.0), options.pop("pause", 0.0)

    def record_epoch(row):
        with (out.parent / "epochs.txt").open("a") as file:
            file.write(f"{row['epoch']}\n")

    callbacks = []
    if options.pop("record", False):
        callbacks.append(RecordBatches(out.parent, options.pop("stop", None)))
    if pause:
        from lightning.pytorch.callbacks import LambdaCallback

        callbacks.append(LambdaCallback(on_train_batch_end=lambda *_: time.sleep(pause)))
    options |= {"config": config, "callbacks": callbacks, "on_epoch": record_epoch}
    result = fit(tiny_spec(dropout), Small(structures), task, **options)
    if is_first_process():
        save_file(result.model.state_dict(), out)
        numbers = {"history": list(result.history), "metrics": result.metrics, "best_epoch": result.best_epoch}
        numbers["notes"] = list(result.notes)
        out.with_suffix(".json").write_text(json.dumps(numbers))


if __name__ == "__main__":
    for path, given in json.loads(sys.argv[2]):
        run(Path(path), Path(sys.argv[1]), given)

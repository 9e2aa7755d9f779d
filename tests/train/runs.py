"""Small training run for subprocesses: ``python -m tests.train.runs OUT STRUCTURES OPTIONS``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from safetensors.torch import save_file

from protgraph.model import ModelSpec
from protgraph.registry.component import component
from protgraph.train import FitConfig, fit
from protgraph.train.session import is_first_process
from tests.train.conftest import Small


def spec(dropout: float) -> ModelSpec:
    block = [component("gcn", dim=16, writes={"h": "m"}), component("residual", dropout=dropout, reads={"update": "m"})]
    embed = component("embed", reads=["aatype", "dihedral"], dim=16)
    return ModelSpec("tiny", features=["dihedral", component("knn", k=8)], layers=[embed, *2 * block])


def main(out: Path, structures: Path, options: dict) -> None:
    config = FitConfig(**{"batch_residues": 256, "device": "cpu", "patience": None} | options.pop("config"))
    task, dropout, pause = options.pop("task", "helix"), options.pop("dropout", 0.0), options.pop("pause", 0.0)

    def row_done(row):
        with (out.parent / "epochs.txt").open("a") as file:
            file.write(f"{row['epoch']}\n")

    callbacks = []
    if pause:
        from lightning.pytorch.callbacks import LambdaCallback

        callbacks = [LambdaCallback(on_train_batch_end=lambda *_: time.sleep(pause))]
    result = fit(
        spec(dropout), Small(structures), task, config=config, callbacks=callbacks, on_epoch=row_done, **options
    )
    if is_first_process():
        save_file(result.model.state_dict(), out)
        numbers = {"history": list(result.history), "metrics": result.metrics, "best_epoch": result.best_epoch}
        out.with_suffix(".json").write_text(json.dumps(numbers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))

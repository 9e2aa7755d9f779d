"""Train on a store larger than its memory: ``python -m tests.train.large_store STRUCTURE CACHE PROTEINS``."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np

from protgraph.data.datasets.card import parse_card
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.model import ModelSpec
from protgraph.registry.component import component
from protgraph.structure import Residues, clean, load_structure
from protgraph.train import FitConfig, fit


class Many(Dataset):
    """Many proteins of the residues of one file."""

    def __init__(self, path: Path, proteins: int) -> None:
        self._residues, val = clean(load_structure(path)), 4
        size = len(self._residues)
        counts = {"train": proteins, "val": val}
        splits = {split: {"proteins": n, "residues": n * size} for split, n in counts.items()}
        self._examples = [
            Example(f"{split}{i}", path, None, split, record=f"{split}{i}")
            for split, n in counts.items()
            for i in range(n)
        ]
        task = {"labels": "", "examples": "", "splits": splits, "level": "node", "kind": "classification", "size": 20}
        texts = dict.fromkeys(("version", "license", "citation", "description"), "1")
        self.card = parse_card(
            {"name": "many", **texts, "splits": {"rule": "", **splits}, "tasks": {"inverse_folding": task}}
        )

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> None:
        return None

    def read(self, example: Example) -> Residues:
        return self._residues


class AnonymousMemory(threading.Thread):
    """Sample the memory that the system cannot drop: all but the pages of mapped files."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.first, self.peak, self._ended = self.now(), 0, threading.Event()

    @staticmethod
    def now() -> int:
        """Return RssAnon of proc(5), bytes."""
        return 1024 * int(re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])

    def run(self) -> None:
        while not self._ended.is_set():
            self.peak = max(self.peak, self.now())
            time.sleep(0.005)

    def stop(self) -> int:
        """Return the largest growth, bytes."""
        self._ended.set()
        self.join()
        return max(self.peak, self.now()) - self.first


def main(structure: Path, cache: Path, proteins: int) -> None:
    spec = ModelSpec(
        "wide",
        features=["dihedral", component("knn", k=96)],
        layers=[component("embed", reads=["dihedral"], dim=4)],
    )
    config = FitConfig(epochs=1, batch_residues=2048, device="cpu")
    fit(spec, Many(structure, 2), "inverse_folding", config=config, cache=cache / "first")  # imports and buffers
    memory = AnonymousMemory()
    memory.start()
    result = fit(spec, Many(structure, proteins), "inverse_folding", config=config, cache=cache)
    grown = memory.stop()
    stored = sum(path.stat().st_size for path in (cache / "graphs").rglob("*.safetensors"))
    assert np.isfinite(result.history[-1]["train_loss"])
    print(json.dumps({"stored": stored, "grown": grown, "residues": result.sizes["train"][1]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))

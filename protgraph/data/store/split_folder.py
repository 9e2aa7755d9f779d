"""Graphs of a dataset in one folder: a store for each split, and a manifest with proteins that could not be used."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_writer import ShardWriter
from protgraph.errors import DatasetError
from protgraph.failure import Failure
from protgraph.file_io import atomic_write

__all__ = ["SplitFolder", "SplitWriter", "StoredSplits", "is_one_chain"]

MANIFEST = "prepared.json"


class StoredSplits(NamedTuple):
    """Content of a folder of splits."""

    splits: dict[str, GraphStore]
    failures: tuple[Failure, ...]  # proteins that could not be used
    one_chain: bool  # True if every training protein is a single chain
    notes: tuple[str, ...]  # messages for the user


class SplitFolder:
    """Folder of the graphs of a dataset, a store for each split; without a path, one that lives as long as this.

    ``path``: folder, which does not exist yet or has the graphs of an earlier run.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if path is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="protgraph-")
            path = Path(self._temporary.name) / "graphs"
        self.path = path

    def open(self) -> StoredSplits | None:
        """Return the graphs of an earlier run; None if there are none, or if they are damaged."""
        try:
            return self.read()
        except FileNotFoundError:
            return None
        except (DatasetError, OSError, ValueError, KeyError, TypeError):
            self.remove()
            return None

    def remove(self) -> None:
        """Remove the graphs."""
        shutil.rmtree(self.path, ignore_errors=True)

    def read(self) -> StoredSplits:
        """Return the graphs."""
        manifest = json.loads((self.path / MANIFEST).read_text("utf-8"))
        splits = {split: GraphStore(self.path / split) for split in manifest["splits"]}
        failures = tuple(Failure(**failure) for failure in manifest["failures"])
        return StoredSplits(splits, failures, manifest["one_chain"], tuple(manifest["label_notes"]))

    @contextmanager
    def writer(self, splits: Sequence[str]) -> Iterator[SplitWriter]:
        """Write all graphs at once, at the end of the block; of two processes, the graphs of the first are kept.

        ``splits``: split of each example.
        """
        try:
            with atomic_write(self.path, folder=True) as part:
                yield SplitWriter(part, splits)
        except OSError:
            if not (self.path / MANIFEST).is_file():
                raise


class SplitWriter:
    """Write graphs to the store of their split; only the shards in progress are in memory.

    ``folder``: folder of the stores. ``splits``: split of each example, in the order of the graphs. ``one_chain``: True
    if every training graph so far is of a single chain.

    Notes
    -----
    Files with several proteins are read once, so graphs may come before their turn. They are kept until then.
    """

    def __init__(self, folder: Path, splits: Sequence[str]) -> None:
        self.one_chain = True
        self._folder, self._split_of = folder, splits
        self._writers: dict[str, ShardWriter] = {}
        self._waiting: dict[int, ProteinGraph | None] = {}
        self._next = 0

    def add(self, number: int, graph: ProteinGraph | None) -> None:
        """Add the graph of an example by its number; None if it has none."""
        self._waiting[number] = graph
        while self._next in self._waiting:
            self._write(self._next, self._waiting.pop(self._next))
            self._next += 1

    def close(self, splits: Sequence[str], failures: Sequence[Failure] = (), notes: Sequence[str] = ()) -> None:
        """Complete the stores, and write the manifest.

        ``splits``: all splits, in order. ``failures``: proteins that could not be used. ``notes``: messages for the
        user of every run on these graphs.
        """
        for number in sorted(self._waiting):
            self._write(number, self._waiting[number])
        for writer in self._writers.values():
            writer.close()
        manifest = {
            "splits": [split for split in splits if split in self._writers],
            "one_chain": self.one_chain,
            "failures": [asdict(failure) for failure in failures],
            "label_notes": list(notes),
        }
        (self._folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")

    def _write(self, number: int, graph: ProteinGraph | None) -> None:
        if graph is None:
            return
        split = self._split_of[number]
        self.one_chain = self.one_chain and (split != "train" or is_one_chain(graph))
        if split not in self._writers:
            self._writers[split] = ShardWriter(self._folder / split)
        self._writers[split].add(graph)


def is_one_chain(graph: ProteinGraph) -> bool:
    """Return True for a graph of a single chain, or without chains."""
    return "chain" not in graph or int(graph.chain.max()) == 0

"""Writing of prepared graphs to one graph store per split, in the order of the dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protgraph.data.datasets.dataset import Example
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.store_writer import ShardWriter

__all__ = ["SplitWriter", "is_one_chain"]


class SplitWriter:
    """Write graphs to the store of their split; only the shards in progress are in memory.

    Parameters
    ----------
    folder : Path
        Folder of the stores.
    examples : sequence of Example
        Define the split and the order of the graphs.

    Attributes
    ----------
    one_chain : bool
        True if every training graph so far is of a single chain.

    Notes
    -----
    Files with several proteins are read once, so graphs may come before their turn. They are kept until then.
    """

    def __init__(self, folder: Path, examples: Sequence[Example]) -> None:
        self.folder, self.examples, self.one_chain = folder, examples, True
        self._writers: dict[str, ShardWriter] = {}
        self._waiting: dict[int, ProteinGraph | None] = {}
        self._next = 0

    @property
    def splits(self) -> list[str]:
        """Splits that have a graph."""
        return list(self._writers)

    def add(self, number: int, graph: ProteinGraph | None) -> None:
        """Add the graph of an example by its number; None if it has none."""
        self._waiting[number] = graph
        while self._next in self._waiting:
            self._write(self._next, self._waiting.pop(self._next))
            self._next += 1

    def close(self) -> None:
        """Complete the stores."""
        for number in sorted(self._waiting):
            self._write(number, self._waiting[number])
        for writer in self._writers.values():
            writer.close()

    def _write(self, number: int, graph: ProteinGraph | None) -> None:
        if graph is None:
            return
        split = self.examples[number].split
        self.one_chain = self.one_chain and (split != "train" or is_one_chain(graph))
        if split not in self._writers:
            self._writers[split] = ShardWriter(self.folder / split)
        self._writers[split].add(graph)


def is_one_chain(graph: ProteinGraph) -> bool:
    """Return True for a graph of a single chain, or without chains."""
    return "chain" not in graph or int(graph.chain.max()) == 0

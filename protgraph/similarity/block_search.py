"""Searches of all pairs, in blocks that worker processes share and that a folder keeps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from protgraph.file_io import atomic_write
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied

__all__ = ["Block", "BlockSearch", "run_blocks"]


class Block(NamedTuple):
    """Queries from ``start`` to ``stop``, each with all later items of its window."""

    start: int
    stop: int


class BlockSearch(Protocol):
    """Search whose result is the union of those of its blocks."""

    def run(self, block: Block) -> np.ndarray:
        """Return the rows of a block, ``(P, F)``."""


def run_blocks(
    search: BlockSearch, blocks: list[Block], workers: int, folder: Path | None
) -> Iterator[tuple[Block, np.ndarray]]:
    """Yield every block and its result ``(P, F)``: from the folder if it is there, else computed.

    Parameters
    ----------
    search : BlockSearch
        Picklable, if there are several workers.
    blocks : list of Block
    workers : int
        Number of processes.
    folder : Path, optional
        Finished blocks are kept here, so that an interrupted search continues. Its name must depend on the search.
    """
    todo = []
    for block in blocks:
        path = None if folder is None else folder / f"{block.start}.npz"
        if path is not None and path.exists():
            with np.load(path) as saved:
                yield block, saved["rows"]
        else:
            todo.append(block)
    compute = partial(_compute, search, folder)
    if workers == 1 or len(todo) < 2:
        yield from zip(todo, map(compute, todo), strict=True)
        return
    for block, result in WorkerPool(compute, workers=min(workers, len(todo))).run(todo, in_order=True):
        yield block, compute(block) if isinstance(result, WorkerDied) else result


def _compute(search: BlockSearch, folder: Path | None, block: Block) -> np.ndarray:
    rows = search.run(block)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / f"{block.start}.npz", overwrite=True) as temporary, temporary.open("wb") as file:
            np.savez(file, rows=rows)
    return rows

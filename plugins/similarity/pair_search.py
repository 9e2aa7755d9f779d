"""Searches of all pairs of items, in blocks that worker processes share and that a folder keeps; clusters of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protgraph.file_io import atomic_write
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied

__all__ = ["PairSearch", "cluster_pairs", "saved_rows", "search_pairs"]

Rows = list[tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class PairSearch:
    """Comparison of each of N items with later ones.

    Parameters
    ----------
    lengths : ndarray
        ``(N,)`` int64, not decreasing.
    last : ndarray
        ``(N,)`` int64: item i is compared with the items from i + 1 to ``last[i]``, exclusive.
    compare : callable
        Function of an item and of those that it is compared with, ``(K,)``, which returns rows of numbers. Picklable,
        if there are several workers.
    groups : ndarray, optional
        ``(N,)`` int64: items of one group are not compared; −1 is no group.
    """

    lengths: np.ndarray
    last: np.ndarray
    compare: Callable[[int, np.ndarray], Rows]
    groups: np.ndarray | None = None

    def partners(self, item: int) -> np.ndarray:
        """Return the items that an item is compared with, ``(K,)`` int64."""
        partners = np.arange(item + 1, max(int(self.last[item]), item + 1))
        if self.groups is None or self.groups[item] < 0:
            return partners
        return partners[self.groups[partners] != self.groups[item]]

    def rows(self, block: Block) -> np.ndarray:
        """Return the rows of the items of a block, ``(P, F)``."""
        rows: Rows = []
        for item in range(block.start, block.stop):
            rows += self.compare(item, self.partners(item))
        return np.array(rows, np.float64)

    def blocks(self, cells: int) -> list[Block]:
        """Return blocks of at least ``cells`` products of two lengths, but for the last one."""
        blocks, start, pairs, work = [], 0, 0, 0
        for item in range(len(self.lengths)):
            partners = self.partners(item)
            pairs += len(partners)
            work += int(self.lengths[item]) * int(self.lengths[partners].sum())
            if work >= cells or item == len(self.lengths) - 1:
                blocks.append(Block(start, item + 1, pairs))
                start, pairs, work = item + 1, 0, 0
        return blocks


class Block(NamedTuple):
    """Items from ``start`` to ``stop``, which are compared with ``pairs`` others in all."""

    start: int
    stop: int
    pairs: int


def search_pairs(
    search: PairSearch,
    *,
    cells: int,
    workers: int = 1,
    folder: Path | None = None,
    report: Callable[[int, int], None] | None = None,
) -> tuple[np.ndarray, int]:
    """Return the rows of all comparisons, ``(P, F)``, and the number of compared pairs.

    Parameters
    ----------
    search : PairSearch
    cells : int
        Products of two lengths in a block.
    workers : int
        Number of processes.
    folder : Path, optional
        Finished blocks are kept here, so that an interrupted search continues. Its name must depend on the search.
    report : callable, optional
        Called with the numbers of finished and of all pairs.
    """
    blocks = search.blocks(cells)
    total, done, rows_of_blocks = sum(block.pairs for block in blocks), 0, []
    for block, rows in _run_blocks(search, blocks, workers, folder):
        done += block.pairs
        if len(rows):
            rows_of_blocks.append(rows)
        if report is not None:
            report(done, total)
    return (np.concatenate(rows_of_blocks) if rows_of_blocks else np.zeros((0, 0))), total


def _run_blocks(
    search: PairSearch, blocks: list[Block], workers: int, folder: Path | None
) -> Iterator[tuple[Block, np.ndarray]]:
    """Yield every block and its rows: finished ones first, then those that are computed."""
    compute = partial(_rows_of_block, search, folder)
    is_finished = {block: folder is not None and _file(folder, block).exists() for block in blocks}
    unfinished = [block for block in blocks if not is_finished[block]]
    yield from ((block, compute(block)) for block in blocks if is_finished[block])
    if workers == 1 or len(unfinished) < 2:
        yield from ((block, compute(block)) for block in unfinished)
        return
    pool = WorkerPool(compute, workers=min(workers, len(unfinished)))
    for block, rows in pool.run(unfinished, in_order=True):
        yield block, compute(block) if isinstance(rows, WorkerDied) else rows


def _rows_of_block(search: PairSearch, folder: Path | None, block: Block) -> np.ndarray:
    compute = partial(search.rows, block)
    return compute() if folder is None else saved_rows(_file(folder, block), compute)


def _file(folder: Path, block: Block) -> Path:
    return folder / f"{block.start}.npz"


def saved_rows(path: Path, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the rows of a file; if there is none, compute and write them."""
    if path.exists():
        with np.load(path) as saved:
            return saved["rows"]
    rows = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, overwrite=True) as temporary, temporary.open("wb") as file:
        np.savez(file, rows=rows)
    return rows


def cluster_pairs(number: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the connected component of each item: no linked items are in different ones.

    Clusters of a greedy method (MMseqs2, CD-HIT) are smaller, and may have relatives in others.

    Parameters
    ----------
    number : int
        Number of items N.
    first, second : ndarray
        ``(P,)`` linked items.

    Returns
    -------
    ndarray
        ``(N,)`` int64, numbered in order of appearance.

    Examples
    --------
    >>> cluster_pairs(4, np.array([0]), np.array([2])).tolist()
    [0, 1, 0, 2]
    """
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(number, number))
    component = connected_components(graph, directed=False)[1] if number else np.zeros(0, np.int64)
    _, start, label = np.unique(component, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(start))[label]

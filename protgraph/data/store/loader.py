"""Batches of proteins: which proteins go together in an epoch, and torch's ``DataLoader`` over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler
from torch_geometric.data import Batch

from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import OptionError

__all__ = ["ProteinBatches", "loader", "pack"]

WINDOW = 32  # bucketing sorts this many batches' worth of proteins by length at a time


T = TypeVar("T")


def pack(
    items: Iterable[T], size: Callable[[T], int], *, max_size: int | None = None, max_items: int | None = None
) -> Iterator[list[T]]:
    """Pack items into batches in order, within a budget of residues or of items.

    Parameters
    ----------
    items : iterable
    size : callable
        Size of an item, e.g. its number of residues.
    max_size : int, optional
        Largest sum of sizes of a batch; a larger item is a batch of its own.
    max_items : int, optional
        Largest number of items of a batch.

    Examples
    --------
    >>> list(pack([3, 4, 9, 1, 2], int, max_size=7))
    [[3, 4], [9], [1, 2]]
    """
    batch: list[T] = []
    total = 0
    for item in items:
        own = size(item)
        too_large = max_size is not None and total + own > max_size
        if batch and (too_large or (max_items is not None and len(batch) >= max_items)):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += own
    if batch:
        yield batch


class _Source(Protocol):
    sizes: Sequence[int]

    def collate(self, indices: Sequence[int]) -> Batch: ...


class ProteinBatches(Sampler[list[int]]):
    """Which proteins make each batch of an epoch; the same seed and epoch give the same batches.

    Parameters
    ----------
    sizes : sequence of int
        Nodes of every protein of the source.
    indices : sequence of int, optional
        The proteins to take; all by default.
    batch_size : int, optional
        Proteins a batch.
    max_nodes : int, optional
        Instead of ``batch_size``: as many proteins as fit into this many nodes. A larger protein goes alone.
    shuffle : bool
        Another order every epoch.
    bucket : bool
        Put proteins of similar length together (padded layers waste less), in random order of batches if shuffled.
    seed, epoch : int
        Of the shuffling; :meth:`set_epoch` changes the latter.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        indices: Sequence[int] | None = None,
        batch_size: int | None = None,
        max_nodes: int | None = None,
        shuffle: bool = False,
        bucket: bool = False,
        seed: int = 0,
        epoch: int = 0,
    ) -> None:
        if (batch_size is None) == (max_nodes is None):
            raise OptionError(f"give batch_size or max_nodes, one of them; got {batch_size=}, {max_nodes=}")
        if (max_nodes if batch_size is None else batch_size) < 1:
            raise OptionError(f"a batch holds at least 1; got {batch_size=}, {max_nodes=}")
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.indices = np.arange(len(self.sizes)) if indices is None else np.asarray(indices, dtype=np.int64)
        self.batch_size, self.max_nodes = batch_size, max_nodes
        self.shuffle, self.bucket = shuffle, bucket
        self.seed, self.epoch = seed, epoch
        self._made: tuple[int, list[list[int]]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Which epoch's order comes next."""
        self.epoch = epoch

    @property
    def sampler(self) -> ProteinBatches:
        """Itself: where Lightning looks for the ``set_epoch`` that it calls before every epoch."""
        return self

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches())

    def __len__(self) -> int:
        return len(self._batches())

    def _batches(self) -> list[list[int]]:
        if self._made is None or self._made[0] != self.epoch:
            self._made = self.epoch, self._make()
        return self._made[1]

    def _make(self) -> list[list[int]]:
        rng = np.random.default_rng([self.seed, self.epoch])
        order = rng.permutation(self.indices) if self.shuffle else self.indices
        if self.bucket and len(order):
            window = len(order) if not self.shuffle else self._window(order)
            parts = np.split(order, range(window, len(order), window))
            order = np.concatenate([part[np.argsort(self.sizes[part], kind="stable")] for part in parts])
        sizes = self.sizes.tolist()
        limits = {"max_size": self.max_nodes, "max_items": self.batch_size}
        batches = list(pack(order.tolist(), sizes.__getitem__, **limits))
        if self.bucket and self.shuffle:
            batches = [batches[i] for i in rng.permutation(len(batches))]
        return batches

    def _window(self, order: np.ndarray) -> int:
        a_batch = self.batch_size or max(1, round(self.max_nodes / max(self.sizes[order].mean(), 1)))
        return WINDOW * a_batch


def loader(
    source: _Source | Sequence[ProteinGraph],
    *,
    indices: Sequence[int] | None = None,
    batch_size: int | None = None,
    max_nodes: int | None = None,
    shuffle: bool = False,
    bucket: bool = False,
    seed: int = 0,
    epoch: int = 0,
    num_workers: int = 0,
    pin_memory: bool = False,
) -> DataLoader:
    """Batches of a :class:`~protgraph.data.store.graph_store.GraphStore` or of a list of graphs.

    Parameters
    ----------
    source : Store or sequence of ProteinGraph
        The proteins.
    indices, batch_size, max_nodes, shuffle, bucket, seed, epoch
        See :class:`ProteinBatches`.
    num_workers : int
        Processes that make batches ahead; a store is read from shared memory by each.
    pin_memory : bool
        Page-locked batches, which copy to a GPU while it computes.

    Returns
    -------
    DataLoader
        Each item a batch; the global random state is left alone.
    """
    sizes, joined = _opened(source)
    batches = ProteinBatches(
        sizes,
        indices=indices,
        batch_size=batch_size,
        max_nodes=max_nodes,
        shuffle=shuffle,
        bucket=bucket,
        seed=seed,
        epoch=epoch,
    )
    return DataLoader(
        range(len(sizes)),
        batch_sampler=batches,
        collate_fn=joined,
        num_workers=num_workers,
        pin_memory=pin_memory,
        persistent_workers=num_workers > 0,
        generator=torch.Generator(),  # else torch draws from the global one at the start of every epoch
    )


def _opened(source: _Source | Sequence[ProteinGraph]) -> tuple[Sequence[int], Callable[[Sequence[int]], Batch]]:
    if hasattr(source, "collate"):
        return source.sizes, source.collate
    return [graph.num_nodes for graph in source], _Listed(source)


class _Listed:
    """Collates from a list; a class, so that worker processes can be given it."""

    def __init__(self, graphs: Sequence[ProteinGraph]) -> None:
        self.graphs = graphs

    def __call__(self, indices: Sequence[int]) -> Batch:
        return collate([self.graphs[i] for i in indices])

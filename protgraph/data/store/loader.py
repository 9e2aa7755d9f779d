"""Batching: proteins packed into batches by residues.

Not PyG's DynamicBatchSampler: it has no order by seed and epoch, no buckets of similar length, and cannot be resumed
(PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from torch.utils.data import Sampler

from protgraph.errors import OptionError

__all__ = ["ProteinBatches", "pack"]

_WINDOW = 32  # batches whose proteins are sorted by length together

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


class ProteinBatches(Sampler[list[int]]):
    """Sampler of batches of proteins; the same seed and epoch give the same batches.

    Parameters
    ----------
    sizes : sequence of int
        Number of nodes of every protein of the source.
    indices : sequence of int, optional
        Proteins to use; all by default.
    batch_size : int, optional
        Proteins per batch.
    max_nodes : int, optional
        Largest number of nodes per batch, instead of ``batch_size``. A larger protein is a batch of its own.
    shuffle : bool
        Random order, by seed and epoch.
    bucket : bool
        Batch proteins of similar length (less padding); the order of batches is random if ``shuffle``.
    seed, epoch : int
        Seed and epoch of the order.
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
            raise OptionError(f"ProteinBatches: {batch_size=}, {max_nodes=}. Give exactly one of them.")
        if (max_nodes if batch_size is None else batch_size) < 1:
            raise OptionError(f"ProteinBatches: {batch_size=}, {max_nodes=}. Allowed: 1 or more.")
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.indices = np.arange(len(self.sizes)) if indices is None else np.asarray(indices, dtype=np.int64)
        self.batch_size, self.max_nodes = batch_size, max_nodes
        self.shuffle, self.bucket = shuffle, bucket
        self.seed, self.epoch = seed, epoch

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    @cached_property
    def _batches(self) -> list[list[int]]:
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
        per_batch = self.batch_size or max(1, round(self.max_nodes / max(self.sizes[order].mean(), 1)))
        return _WINDOW * per_batch

"""Reductions of rows by segment: sum, mean, max, softmax and their inverse, expand.

Rows of one segment are contiguous (or are sorted once), so a row pointer gives the start of each segment. The fastest
exact method is chosen: a reshape to ``(S, K, …)`` for segments of equal length K; for other segments and for wide rows
torch's ``embedding_bag`` on CPU, and a kernel of :mod:`protgraph.ops.kernels` on GPUs; ``index_add`` otherwise.
Sum and expand are each other's derivatives, so backward is as fast as forward, and both can be differentiated to any
order.
"""

# Not PyG's scatter and softmax: softmax takes 2.5 times, sums 0.8–2.4 times the time (`python -m benchmarks edges`, PyG
# 2.8.1, 2026-11-23).

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from protgraph.errors import FieldError, IndexRangeError
from protgraph.ops.computed_once import computed_once
from protgraph.ops.kernels.autograd_function import AutogradFunction
from protgraph.ops.kernels.gpu_kernels import segment_sum, uses_kernels

__all__ = ["Segments"]

_WIDE = 64  # channels from which embedding_bag is faster than a reshape for segments of equal length


class Segments:
    """Assignment of R rows to S segments.

    The values of ``index`` are checked on the CPU. On a GPU their range is checked without waiting for the device, by
    ``torch._assert_async``. On "meta" and within a compiled function there are no values to check.

    ``index``: ``(R,)`` int64, the segment of each row. ``num_segments``: number of segments, S; segments may be empty.
    ``length``: rows per segment, K, if all segments have the same number; reductions become reshapes. ``is_sorted``:
    True if ``index`` ascends. If not, rows are sorted when first needed. ``ptr``: ``(S + 1,)`` int64 row pointer, if it
    is known. ``number_name``: what a number of ``index`` is, for errors. Raises :class:`IndexRangeError` if a number of
    ``index`` is negative, or ``num_segments`` or more. Raises :class:`FieldError` if ``index`` is not sorted as stated,
    or does not have ``length`` rows for each segment.
    """

    def __init__(
        self,
        index: Tensor,
        num_segments: int,
        *,
        length: int | None = None,
        is_sorted: bool = True,
        ptr: Tensor | None = None,
        number_name: str = "segment",
    ) -> None:
        if length is not None and num_segments * length != index.numel():
            raise FieldError(f"{index.numel()} rows are not {num_segments} segments of {length} rows")
        _check_index(index, num_segments, length, is_sorted, number_name)
        self.index, self.num_segments = index, num_segments
        self._device = index.device  # a compiled function that reads `index` for it alone would take it as an input
        self.is_sorted = is_sorted
        self.length = length if num_segments > 0 else None
        if ptr is not None and not torch.compiler.is_compiling():
            vars(self)["ptr"] = ptr  # the value of the property

    @computed_once
    def order(self) -> Tensor:
        """``(R,)`` int64, row numbers sorted by segment."""
        if self.is_sorted:
            return torch.arange(self.index.numel(), device=self._device)
        return torch.argsort(self.index.to(torch.int32), stable=True)  # fewer radix passes than int64

    @computed_once
    def ptr(self) -> Tensor:
        """``(S + 1,)`` int64 row pointer: segment s has the rows ``order[ptr[s]:ptr[s + 1]]``."""
        each = torch.arange(self.num_segments + 1, device=self._device)
        if self.length is not None:
            return each * self.length
        return torch.searchsorted(self._sorted(self.index).contiguous(), each)

    @computed_once
    def count(self) -> Tensor:
        """``(S,)`` int64, number of rows per segment."""
        return self.ptr.diff()

    @computed_once
    def longest(self) -> int:
        """Rows of the longest segment; synchronizes with the device unless all have equal length."""
        if self.length is not None or not self.num_segments:
            return self.length or 0
        return int(self.count.max())

    def expand(self, x: Tensor) -> Tensor:
        """Copy each segment's value to its rows, ``(S, …)`` to ``(R, …)``."""
        return _Expand.run(self, x) if x.requires_grad and self._uses_kernel(x) else self._expand(x)

    def sum(self, m: Tensor) -> Tensor:
        """Sum the rows of each segment, ``(R, …)`` to ``(S, …)``; 0 for empty segments."""
        if self._uses_kernel(m):
            return _Sum.run(self, m)
        if self.length is not None:
            return m.reshape(self.num_segments, self.length, *m.shape[1:]).sum(1)
        return m.new_zeros(self.num_segments, *m.shape[1:]).index_add_(0, self.index, m)

    def mean(self, m: Tensor) -> Tensor:
        """Average the rows of each segment, ``(R, …)`` to ``(S, …)``; 0 for empty segments."""
        count = self.count.clamp(min=1).to(m.dtype)
        return self.sum(m) / count.view(-1, *[1] * (m.dim() - 1))

    def max(self, m: Tensor) -> Tensor:
        """Take the maximum over each segment, ``(R, …)`` to ``(S, …)``; 0 for empty segments."""
        if self.length is not None and self.length > 0:
            return m.reshape(self.num_segments, self.length, *m.shape[1:]).amax(1)
        index = self.index.view(-1, *[1] * (m.dim() - 1)).expand_as(m)
        return m.new_zeros(self.num_segments, *m.shape[1:]).scatter_reduce_(0, index, m, "amax", include_self=False)

    def softmax(self, logits: Tensor) -> Tensor:
        """Apply softmax within each segment, ``(R, …)`` to ``(R, …)``."""
        if self.length is not None:
            return logits.reshape(self.num_segments, self.length, *logits.shape[1:]).softmax(1).reshape(logits.shape)
        shifted = (logits - self.expand(self.max(logits.detach()))).exp()
        return shifted / self.expand(self.sum(shifted))

    def _sorted(self, m: Tensor) -> Tensor:
        return m if self.is_sorted else m.index_select(0, self.order)

    def _uses_kernel(self, m: Tensor) -> bool:
        if torch.compiler.is_compiling():  # the compiler fuses the plain operations and derives their gradients
            return False
        if not m.numel():
            return False
        if m.is_cuda:
            return self.length is None and uses_kernels(m)
        if m.device.type != "cpu" or m.dtype not in (torch.float32, torch.float64):
            return False
        return self.length is None or m.shape[1:].numel() >= _WIDE

    def _expand(self, x: Tensor) -> Tensor:
        if self.length is None:
            return x.index_select(0, self.index)
        wide = x.unsqueeze(1).expand(self.num_segments, self.length, *x.shape[1:])  # (S, K, …)
        return wide.reshape(-1, *x.shape[1:])


class _Sum(AutogradFunction):
    @staticmethod
    def forward(segments: Segments, m: Tensor) -> Tensor:
        table = m.reshape(m.size(0), -1).contiguous()
        if uses_kernels(m):
            summed = segment_sum(table.unsqueeze(1), segments.order, segments.ptr)
        else:
            summed = embedding_bag(segments.order, table, segments.ptr[:-1], mode="sum")
        return summed.view(-1, *m.shape[1:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.segments = inputs[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.segments.expand(grad)


class _Expand(AutogradFunction):
    @staticmethod
    def forward(segments: Segments, x: Tensor) -> Tensor:
        return segments._expand(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.segments = inputs[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.segments.sum(grad)


def _has_values(index: Tensor) -> bool:
    """Return True if NumPy can read the values: tensors of torch.compile and torch.func have none."""
    if index.device.type != "cpu" or torch.compiler.is_compiling() or type(index) is not Tensor:
        return False
    result = index.detach()
    return torch.func.debug_unwrap(result) is result


def _check_index(index: Tensor, num_segments: int, length: int | None, is_sorted: bool, number_name: str) -> None:
    """Check range and order of ``index (R,)``; an error names the largest number that is out of range."""
    if torch.compiler.is_compiling():  # before any size, which may depend on data there
        return
    rows = index.numel()
    if rows == 0:
        return
    if index.is_cuda:
        low, high = torch.aminmax(index)
        torch._assert_async((low >= 0) & (high < num_segments), f"a {number_name} is not in 0 to {num_segments - 1}")
        return
    if not _has_values(index):
        return
    numbers = index.detach().numpy()
    first_descent = _first_descent(numbers) if is_sorted else None
    _check_range(numbers, num_segments, number_name, is_ascending=is_sorted and first_descent is None)
    if first_descent is not None:
        row = first_descent
        raise FieldError(
            f"{number_name} {numbers[row]} (row {row} of {rows}) follows {numbers[row - 1]}. Allowed: ascending. Sort "
            f"the rows by {number_name}, or create Segments with is_sorted=False."
        )
    if length is None:
        return
    segments = np.arange(num_segments)  # sorted numbers are equal within a segment if its first and last row are
    if (numbers[::length] != segments).any() or (numbers[length - 1 :: length] != segments).any():
        raise FieldError(f"not every {number_name} has {length} rows. Leave out the number of rows.")


def _first_descent(numbers: np.ndarray) -> int | None:
    """Return the first row whose number is smaller than that of the row before; None if they ascend."""
    descents = np.flatnonzero(numbers[1:] < numbers[:-1])
    return int(descents[0]) + 1 if len(descents) else None


def _check_range(numbers: np.ndarray, num_segments: int, number_name: str, *, is_ascending: bool) -> None:
    low, high = (numbers[0], numbers[-1]) if is_ascending else (numbers.min(), numbers.max())
    if low < 0 or high >= num_segments:
        number = high if high >= num_segments else low
        row = np.flatnonzero(numbers == number)[0]
        raise IndexRangeError(
            f"{number_name} {number} (row {row} of {len(numbers)}). Allowed: 0 to {num_segments - 1}."
        )

"""Reductions of rows that belong to segments: the arithmetic below :class:`Edges` and :class:`Proteins`.

Where rows of one segment stand together, a row pointer says where each begins. Exact ways to sum, picked by what
measures faster: a reshape to ``(S, K, …)`` for segments of one length K; torch's ``embedding_bag`` on CPU for the
others and for wide rows (on 2 cores 0.4–0.8 of the reshape's time from 64 channels on, 0.1–0.6 of ``index_add``'s);
native ``index_add``; and torch-scatter's ``segment_csr`` where that is asked for. Summing and expanding are each
other's derivatives, so both are as fast backward, and differentiate to any order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from protgraph.errors import MissingExtraError, OptionError

__all__ = ["Backend", "Segments"]

Backend = Literal["auto", "native", "scatter"]

_WIDE = 64  # channels from which embedding_bag sums segments of one length faster than a reshape


class Segments:
    """R rows, each in one of S segments.

    Parameters
    ----------
    index : Tensor
        ``(R,)`` int64, the segment of each row.
    num : int
        S; segments may be empty.
    length : int, optional
        K, where every segment has exactly K rows: reductions become reshapes.
    is_sorted : bool
        Whether ``index`` ascends; False has the rows sorted when first needed.
    backend : {"auto", "native", "scatter"}
        "auto" picks the fastest way; the other two force one (for tests and speed).
    """

    def __init__(
        self,
        index: Tensor,
        num: int,
        *,
        length: int | None = None,
        is_sorted: bool = True,
        backend: Backend = "auto",
    ) -> None:
        if backend not in ("auto", "native", "scatter"):
            raise OptionError(f"backend {backend!r} is none of 'auto', 'native', 'scatter'")
        if length is not None and num * length != index.numel():
            raise ValueError(f"{index.numel()} rows are not {num} segments of {length}")
        self.index, self.num, self.is_sorted, self.backend = index, num, is_sorted, backend
        self.length = length if backend == "auto" and num > 0 else None

    @cached_property
    def order(self) -> Tensor:
        """``(R,)`` int64: the rows, segment after segment."""
        if self.is_sorted:
            return torch.arange(self.index.numel(), device=self.index.device)
        return torch.argsort(self.index.int(), stable=True)  # int32 keys: half the radix passes

    @cached_property
    def ptr(self) -> Tensor:
        """``(S + 1,)`` int64: segment s holds the rows ``order[ptr[s]:ptr[s + 1]]``."""
        each = torch.arange(self.num + 1, device=self.index.device)
        if self.length is not None:
            return each * self.length
        return torch.searchsorted(self._in_order(self.index).contiguous(), each)

    @cached_property
    def count(self) -> Tensor:
        """``(S,)`` int64, the rows of each segment."""
        return self.ptr.diff()

    @cached_property
    def longest(self) -> int:
        """Rows of the largest segment; asks the device where they are not of one length."""
        if self.length is not None or not self.num:
            return self.length or 0
        return int(self.count.max())

    def expand(self, x: Tensor) -> Tensor:
        """Each segment's value on each of its rows, ``(S, …)`` to ``(R, …)``."""
        return _Expand.apply(self, x) if x.requires_grad and self._in_bags(x) else self._expand(x)

    def sum(self, m: Tensor) -> Tensor:
        """Sum over each segment, ``(R, …)`` to ``(S, …)``; 0 for an empty one."""
        if self._in_bags(m):
            return _Sum.apply(self, m)
        if self.length is not None:
            return m.reshape(self.num, self.length, *m.shape[1:]).sum(1)
        if self.backend == "scatter":
            return _segment_csr(self._in_order(m), self.ptr, "sum")
        return m.new_zeros(self.num, *m.shape[1:]).index_add_(0, self.index, m)

    def mean(self, m: Tensor) -> Tensor:
        """Mean over each segment, ``(R, …)`` to ``(S, …)``; 0 for an empty one."""
        count = self.count.clamp(min=1).to(m.dtype)
        return self.sum(m) / count.view(-1, *[1] * (m.dim() - 1))

    def max(self, m: Tensor) -> Tensor:
        """Largest value of each segment, ``(R, …)`` to ``(S, …)``; 0 for an empty one."""
        if self.length is not None and self.length > 0:
            return m.reshape(self.num, self.length, *m.shape[1:]).amax(1)
        if self.backend == "scatter":
            return _segment_csr(self._in_order(m), self.ptr, "max")
        index = self.index.view(-1, *[1] * (m.dim() - 1)).expand_as(m)
        return m.new_zeros(self.num, *m.shape[1:]).scatter_reduce_(0, index, m, "amax", include_self=False)

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax within each segment, ``(R, …)`` to ``(R, …)``."""
        if self.length is not None:
            return logits.reshape(self.num, self.length, *logits.shape[1:]).softmax(1).reshape(logits.shape)
        shifted = (logits - self.expand(self.max(logits.detach()))).exp()
        return shifted / self.expand(self.sum(shifted))

    def _in_order(self, m: Tensor) -> Tensor:
        return m if self.is_sorted else m.index_select(0, self.order)

    def _in_bags(self, m: Tensor) -> bool:
        if self.backend != "auto" or m.device.type != "cpu" or m.dtype not in (torch.float32, torch.float64):
            return False
        return m.numel() > 0 and (self.length is None or m.shape[1:].numel() >= _WIDE)

    def _expand(self, x: Tensor) -> Tensor:
        if self.length is None:
            return x.index_select(0, self.index)
        wide = x.unsqueeze(1).expand(self.num, self.length, *x.shape[1:])  # (S, K, …)
        return wide.reshape(-1, *x.shape[1:])


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(segments: Segments, m: Tensor) -> Tensor:
        summed = embedding_bag(segments.order, m.reshape(m.size(0), -1).contiguous(), segments.ptr[:-1], mode="sum")
        return summed.view(-1, *m.shape[1:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.segments = inputs[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.segments.expand(grad)


class _Expand(torch.autograd.Function):
    @staticmethod
    def forward(segments: Segments, x: Tensor) -> Tensor:
        return segments._expand(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.segments = inputs[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.segments.sum(grad)


def _segment_csr(m: Tensor, ptr: Tensor, reduce: str) -> Tensor:
    try:
        from torch_scatter import segment_csr
    except ImportError as e:
        raise MissingExtraError("backend='scatter' needs torch-scatter: pip install 'protgraph-pyg[scatter]'") from e
    return segment_csr(m.contiguous(), ptr, reduce=reduce)

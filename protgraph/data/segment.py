"""Reductions of consecutive rows: the arithmetic below :class:`Edges` and :class:`Proteins`.

Rows of one segment stand together (``index`` is sorted), so a row pointer says where each begins. Three exact
ways, fastest first where they apply: a reshape to ``(S, K, …)`` for segments of one length K, native
``index_add_``/``scatter_reduce``, and torch-scatter's ``segment_csr`` where that is asked for.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from protgraph.errors import MissingExtraError, OptionError

__all__ = ["Backend", "Segments"]

Backend = Literal["auto", "native", "scatter"]


class Segments:
    """Rows grouped into S consecutive segments.

    Parameters
    ----------
    index : Tensor
        ``(R,)`` int64, the segment of each row, ascending.
    num : int
        S; segments may be empty.
    length : int, optional
        K, where every segment has exactly K rows: reductions become reshapes.
    ptr : Tensor, optional
        ``(S + 1,)`` int64 row pointer; computed from ``index`` when first needed.
    backend : {"auto", "native", "scatter"}
        "auto" reshapes where it can and is native otherwise; the other two force one way (for tests and speed).
    """

    def __init__(
        self,
        index: Tensor,
        num: int,
        *,
        length: int | None = None,
        ptr: Tensor | None = None,
        backend: Backend = "auto",
    ) -> None:
        if backend not in ("auto", "native", "scatter"):
            raise OptionError(f"backend {backend!r} is none of 'auto', 'native', 'scatter'")
        if length is not None and num * length != index.numel():
            raise ValueError(f"{index.numel()} rows are not {num} segments of {length}")
        self.index, self.num, self.backend = index, num, backend
        self.length = length if backend == "auto" and num > 0 else None
        self._ptr = ptr
        self._count: Tensor | None = None

    @property
    def ptr(self) -> Tensor:
        """``(S + 1,)`` int64: segment s holds the rows ``ptr[s]:ptr[s + 1]``."""
        if self._ptr is None:
            self._ptr = torch.cat([self.index.new_zeros(1), self.count.cumsum(0)])
        return self._ptr

    @property
    def count(self) -> Tensor:
        """``(S,)`` int64, the rows of each segment."""
        if self._count is None:
            if self.length is not None:
                self._count = self.index.new_full((self.num,), self.length)
            elif self._ptr is not None:
                self._count = self._ptr.diff()
            else:
                zeros = self.index.new_zeros(self.num)
                self._count = zeros.index_add_(0, self.index, torch.ones_like(self.index))
        return self._count

    def expand(self, x: Tensor) -> Tensor:
        """Each segment's value on each of its rows, ``(S, …)`` to ``(R, …)``."""
        if self.length is not None:
            wide = x.unsqueeze(1).expand(self.num, self.length, *x.shape[1:])  # (S, K, …)
            return wide.reshape(-1, *x.shape[1:])
        return x.index_select(0, self.index)

    def sum(self, m: Tensor) -> Tensor:
        """Sum over each segment, ``(R, …)`` to ``(S, …)``; 0 for an empty one."""
        if self.length is not None:
            return m.reshape(self.num, self.length, *m.shape[1:]).sum(1)
        if self.backend == "scatter":
            return _segment_csr(m, self.ptr, "sum")
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
            return _segment_csr(m, self.ptr, "max")
        index = self.index.view(-1, *[1] * (m.dim() - 1)).expand_as(m)
        return m.new_zeros(self.num, *m.shape[1:]).scatter_reduce_(0, index, m, "amax", include_self=False)

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax within each segment, ``(R, …)`` to ``(R, …)``."""
        if self.length is not None:
            return logits.reshape(self.num, self.length, *logits.shape[1:]).softmax(1).reshape(logits.shape)
        shifted = (logits - self.expand(self.max(logits.detach()))).exp()
        return shifted / self.expand(self.sum(shifted))


def _segment_csr(m: Tensor, ptr: Tensor, reduce: str) -> Tensor:
    try:
        from torch_scatter import segment_csr
    except ImportError as e:
        raise MissingExtraError("backend='scatter' needs torch-scatter: pip install 'protgraph-pyg[scatter]'") from e
    return segment_csr(m.contiguous(), ptr, reduce=reduce)

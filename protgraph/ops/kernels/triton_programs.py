"""Programs of :mod:`protgraph.ops.kernels.gpu_kernels`; the only module that imports Triton."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["edge_dot_program", "segment_sum_program"]


@triton.jit
def segment_sum_program(
    x,
    rows,
    ptr,
    weight,
    out,
    width,
    channels,
    head_stride,
    row_stride,
    HAS_WEIGHT: tl.constexpr,
    IS_DOUBLE: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Sum the rows of one segment, a block of channels of all heads."""
    segment = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    is_column = column < width
    start, end = tl.load(ptr + segment), tl.load(ptr + segment + 1)
    total = tl.zeros((CHANNELS,), dtype=tl.float64 if IS_DOUBLE else tl.float32)
    for first in range(start, end, ROWS):
        row = first + tl.arange(0, ROWS)
        is_row = row < end
        source = tl.load(rows + row, mask=is_row, other=0)
        mask = is_row[:, None] & is_column[None, :]
        value = tl.load(x + source[:, None] * width + column[None, :], mask=mask, other=0.0).to(total.dtype)
        if HAS_WEIGHT:
            place = (column // channels).to(tl.int64)[None, :] * head_stride + row[:, None] * row_stride
            value *= tl.load(weight + place, mask=mask, other=0.0).to(total.dtype)
        total += tl.sum(value, 0)
    tl.store(out + segment * width + column, total.to(out.dtype.element_ty), mask=is_column)


@triton.jit
def edge_dot_program(
    a,
    b,
    sources,
    targets,
    out,
    edges,
    heads,
    channels,
    IS_DOUBLE: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Multiply the rows of some edges for one head."""
    head = tl.program_id(1)
    edge = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_edge = edge < edges
    source = tl.load(sources + edge, mask=is_edge, other=0)
    target = tl.load(targets + edge, mask=is_edge, other=0)
    total = tl.zeros((ROWS,), dtype=tl.float64 if IS_DOUBLE else tl.float32)
    for first in range(0, channels, CHANNELS):
        column = first + tl.arange(0, CHANNELS)
        mask = is_edge[:, None] & (column < channels)[None, :]
        left = tl.load(a + ((target * heads + head) * channels)[:, None] + column[None, :], mask=mask, other=0.0)
        right = tl.load(b + ((source * heads + head) * channels)[:, None] + column[None, :], mask=mask, other=0.0)
        total += tl.sum(left.to(total.dtype) * right.to(total.dtype), 1)
    tl.store(out + edge * heads + head, total.to(out.dtype.element_ty), mask=is_edge)

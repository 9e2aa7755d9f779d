"""Layers that act on each node or edge alone: linear map, multi-layer perceptron, layer normalization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn import mlp as dense
from protgraph.nn.module import GraphLayer

__all__ = ["MLP", "LayerNorm", "Linear"]
ENTRY_POINTS = {"protgraph.layers": {"layer_norm": "LayerNorm", "linear": "Linear", "mlp": "MLP"}}


class Linear(GraphLayer):
    """Linear map ``h'_i = W h_i + b``.

    Parameters
    ----------
    dim : int
        Width of the output.
    bias : bool
        Add b.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 64, bias: bool = True) -> None:
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim, bias=bias)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``."""
        return {"h": self.linear(f["h"])}


class MLP(GraphLayer):
    """Multi-layer perceptron ``h'_i = W_n act(… act(W_1 h_i + b_1) …) + b_n``.

    The defaults are the feed-forward network of a transformer.

    Parameters
    ----------
    dim : int, optional
        Width of the output; None: width of h.
    hidden : int, optional
        Width of the hidden layers; None: 4 dim.
    depth : int
        Number of linear maps, at least 1.
    act : str
        Activation function.
    dropout : float
        Dropout probability after each activation.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, eq. 2 (there with ReLU).
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int | None = None,
        hidden: int | None = None,
        depth: int = 2,
        act: str = "gelu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        dim = dim or width
        inner = [hidden or 4 * dim] * (depth - 1)
        self.mlp = dense.mlp([width, *inner, dim], act=act, dropout=dropout)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return ``h'`` ``(N, dim)``."""
        return {"h": self.mlp(f["h"])}


class LayerNorm(GraphLayer):
    """Layer normalization ``h'_i = γ (h_i - mean(h_i)) / sqrt(var(h_i) + 1e-5) + β`` over channels.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars. Writes: ``h`` ``(N, C)``, ``C x 0e``.

    References
    ----------
    Ba, Kiros & Hinton 2016, arXiv:1607.06450, eq. 4.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.norm = nn.LayerNorm(width)
        self.declare(h=f"{width}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Normalize each row of ``h (N, C)``."""
        return {"h": self.norm(f["h"])}

"""Layers that treat each row alone: ``linear``, ``mlp``, ``layer_norm``. Rows are nodes, or edges where wired so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn import mlp as dense
from protgraph.nn.module import GraphLayer

__all__ = ["MLP", "LayerNorm", "Linear"]
ENTRY_POINTS = {"protgraph.layers": {"layer_norm": "LayerNorm", "linear": "Linear", "mlp": "MLP"}}


class Linear(GraphLayer):
    """``h'_i = W h_i + b``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the result.
    bias : bool
        Whether to add b.

    Notes
    -----
    Reads: h ``(N, C)``, scalars. Writes: h ``(N, dim)``, ``dim x 0e``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 64, bias: bool = True) -> None:
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim, bias=bias)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": self.linear(f["h"])}


class MLP(GraphLayer):
    """``h'_i = W_n act(… act(W_1 h_i + b_1) …) + b_n``; its defaults are the transformer's feed-forward block.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int, optional
        Width of the result; None keeps the width of h.
    hidden : int, optional
        Width of the hidden layers; None takes four times that of the result.
    depth : int
        Linear maps, at least 1.
    act : str
        Activation between them.
    dropout : float
        Probability, after each activation.

    Notes
    -----
    Reads: h ``(N, C)``, scalars. Writes: h ``(N, dim)``, ``dim x 0e``.

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

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": self.mlp(f["h"])}


class LayerNorm(GraphLayer):
    """``h'_i = γ (h_i - mean(h_i)) / sqrt(var(h_i) + 1e-5) + β``, over the channels of each node.

    Notes
    -----
    Reads: h ``(N, C)``, scalars. Writes: h ``(N, C)``, ``C x 0e``.

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

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": self.norm(f["h"])}

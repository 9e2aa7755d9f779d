"""Layer of the graph isomorphism network (Xu et al. 2019).

Not PyG's ``GINConv``: its network is an argument, and its sum makes a row per edge (PyG 2.8.1, 2026-11-23). Tests
compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.batch_norm import RowBatchNorm
from protgraph.nn.mlp import activation
from protgraph.nn.module import GraphLayer

__all__ = ["GIN"]
ENTRY_POINTS = {"protgraph.layers": {"gin": "GIN"}}

_LEAKY = Conformity(expected_failures={"no_leak": "batch normalization in training, as in the paper"})
_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "batch": RowBatchNorm,
    "layer": nn.LayerNorm,
    "none": lambda _: nn.Identity(),
}


class GIN(GraphLayer):
    """Layer of the graph isomorphism network (Xu et al. 2019).

    ``h'_i = act(norm(W_2 act(norm(W_1 ((1 + ε) h_i + Σ_{j ∈ N(i)} h_j) + b_1)) + b_2))``.

    Parameters
    ----------
    dim : int
        Width of the hidden layer and of the output.
    act : str
        Activation function, after both linear maps.
    norm : {"none", "layer", "batch"}
        Normalization before it. "batch", that of the paper, is over the nodes of a batch: in training, the output for a
        protein depends on the others.
    learn_eps : bool
        Learn ε; it starts at 0.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Xu et al. 2019, arXiv:1810.00826, eq. 4.1, and sec. 7 (two linear maps, batch normalization on each).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        act: str = "relu",
        norm: Literal["batch", "layer", "none"] = "none",
        learn_eps: bool = False,
    ) -> None:
        super().__init__(fields)
        make_norm = _NORMS[norm]
        if norm == "batch":
            self.conformity = _LEAKY
        self.eps = nn.Parameter(torch.zeros(())) if learn_eps else None
        width = self.scalar_width("h")
        self.mlp = nn.Sequential(
            *(nn.Linear(width, dim), make_norm(dim), activation(act)),
            *(nn.Linear(dim, dim), make_norm(dim), activation(act)),
        )
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: an MLP of the node plus the sum of its neighbors."""
        h, edges = f["h"], f["edges"]
        own = h if self.eps is None else (1 + self.eps) * h
        return {"h": self.mlp(own + edges.gather_sum(h))}

"""Embedding of the features of context atoms: ``context_embed``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from protgraph_plugins.ligandmpnn.fields import CONTEXT_GROUP, CONTEXT_RBF
from torch import Tensor, nn

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import WiringError

__all__ = ["ContextEmbed"]
ENTRY_POINTS = {"protgraph.layers": {"context_embed": "ContextEmbed"}}


class ContextEmbed(GraphLayer):
    """Embedding ``W₂ norm(W₁ [one-hot(c_1), …, x_1, x_2, …] + b₁) + b₂`` of each context atom of each residue.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Categories ``(N, k)`` and scalars ``(N, k, F)`` of context atoms.
    dim : int
        Width of the result.

    Notes
    -----
    Reads (variadic): any such fields. Writes: context ``(N, k, dim)``, scalars.

    The columns of W₁ for a category are an embedding table. Missing atoms have values too; layers that read
    ``context_mask`` ignore them.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("context",)
    conformity: ClassVar[Conformity] = Conformity(
        inputs={
            "context_group": CONTEXT_GROUP.as_("context_group", shape=(25,)),
            "context_rbf": CONTEXT_RBF.as_("context_rbf", shape=(25, 80)),
        }
    )

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 128) -> None:
        super().__init__(fields)
        k = _num_atoms(fields)
        self.tables = nn.ModuleDict()
        self.real: tuple[str, ...] = ()
        width = 0
        for name, spec in fields.items():
            if spec.is_category:
                self.tables[name] = nn.Embedding(spec.classes, dim)
            else:
                self.real += (name,)
                width += spec.trailing_shape[1]
        self.linear = nn.Linear(width, dim) if width else None
        self.norm, self.out_map = nn.LayerNorm(dim), nn.Linear(dim, dim)
        self.declare(context=FieldSpec("context", "node", f"{k * dim}x0e", shape=(k, dim)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Embed the context atoms of each residue, ``context (N, M, dim)``."""
        parts = [table(f[name]) for name, table in self.tables.items()]
        if self.linear is not None:
            parts.append(self.linear(torch.cat([f[name].to(self.linear.weight.dtype) for name in self.real], -1)))
        return {"context": self.out_map(self.norm(sum(parts[1:], start=parts[0])))}


def _num_atoms(fields: Mapping[str, FieldSpec]) -> int:
    """Return the number of context atoms of each residue, k, of categories ``(N, k)`` and scalars ``(N, k, F)``."""
    numbers, is_valid = set(), True
    for spec in fields.values():
        shape = spec.trailing_shape if spec.is_tensor and spec.is_scalar else ()
        is_valid = is_valid and len(shape) == (1 if spec.is_category else 2)
        numbers.add(shape[0] if shape else 0)
    if is_valid and len(numbers) == 1:
        return numbers.pop()
    shapes = [f"{name} (N, {', '.join(map(str, spec.trailing_shape))})" for name, spec in fields.items()]
    raise WiringError(
        f"wrong inputs of context_embed: {', '.join(shapes) or 'none'}. Required: categories (N, k) and scalars "
        "(N, k, F) of the same k context atoms, e.g. 'context_element' and 'context_rbf'."
    )

"""Head for mutations: difference of the scores of two residue types, antisymmetric by construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph import FieldSpec, register_field
from protgraph.errors import WiringError
from protgraph.nn import Head, activation, invariant_width, invariants, invariants_are_chiral

if TYPE_CHECKING:
    from protgraph.data.datasets import Target

__all__ = ["MutationHead"]
ENTRY_POINTS = {"protgraph.heads": {"mutation": "MutationHead"}}

_TYPES = 20
_SMALL = 0.01  # standard deviation of the initial product, so that training starts near 0

register_field(
    FieldSpec(
        "wild_type",
        "node",
        "0e",
        "int64",
        shape=(),
        classes=21,
        doc="type before a mutation; 20: not a mutated residue",
    )
)
register_field(
    FieldSpec("mutant", "node", "0e", "int64", shape=(), classes=21, doc="type after it; 20: not a mutated residue")
)


class MutationHead(Head):
    """Sum over mutated residues of ``φ(h_i, mutant_i) − φ(h_i, wild_type_i)``.

    ``φ(h, a) = MLP(W x + T_a + S s_a) + V s_a + b_a`` with ``x = invariants(h)`` and the features ``s_a`` of type a.
    Without hidden layers ``φ(h, a) = s_aᵀ B x``, which has fewer parameters, is linear in each of x and s_a, and 0
    where x is 0.

    Parameters
    ----------
    target : Target
        Its size C is the width of the logits.
    hidden : sequence of int
        Widths of the hidden layers of φ. Empty: the product above, which needs ``type_features``.
    act : str
        Activation function of the hidden layers.
    dropout : float
        Dropout probability after each activation.

    Raises
    ------
    WiringError
        ``type_features`` is not a multiple of 20 columns, or missing without hidden layers.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``wild_type`` and ``mutant`` ``(N,)`` int64, 20 at residues that are not
    mutated; ``proteins``. Optional: ``type_features`` ``(N, 20 · K)``, K features of each of the 20 types, type by
    type. Writes: ``logits`` ``(B, C)``.

    If ``h`` does not depend on the type of a mutated residue, as with the inputs of a task with
    mutations of this package, then exchanging wild type and mutant gives exactly the negative, a
    synonymous mutation exactly 0, and single mutations of a residue are transitive: A → B plus B → C is A → C, as free
    energies are. Bit by bit, because the two scores are always subtracted in the order of the types.

    For regression, the output is multiplied by ``scale`` ``(C,)``, the standard deviation of the training labels. There
    is no constant: it would break the antisymmetry.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "wild_type", "mutant", "proteins")
    optional: ClassVar[tuple[str, ...]] = ("type_features",)
    level = "graph"
    task_fields: ClassVar[tuple[str, ...]] = ("wild_type", "mutant")

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        target: Target,
        *,
        hidden: Sequence[int] = (64,),
        act: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields, target)
        if target.kind == "regression":
            self.register_buffer("scale", torch.ones(target.size))
        width = self.scalar_width("type_features")
        if width % _TYPES:
            raise WiringError(f"mutation: type_features has {width} columns. Allowed: a multiple of {_TYPES}.")
        features = width // _TYPES
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "graph", f"{target.size}x0e", chiral=chiral))
        self.product = None
        if not hidden:
            if not features:
                raise WiringError("mutation: hidden is empty, and there are no type_features. Give one of them.")
            self.product = nn.Linear(invariant_width(fields["h"]), features * target.size, bias=False)
            nn.init.normal_(self.product.weight, std=_SMALL)
            return
        first, *widths = [*hidden, target.size]
        self.node_linear = nn.Linear(invariant_width(fields["h"]), first)
        self.type_table = nn.Embedding(_TYPES, first)
        self.type_offset = nn.Embedding(_TYPES, target.size)
        self.feature_linear = nn.Linear(features, first, bias=False) if features else None
        self.feature_slope = nn.Linear(features, target.size, bias=False) if features else None
        self.act, self.dropout = activation(act), nn.Dropout(dropout)
        # The difference cancels a bias of the last map.
        self.mlp = nn.ModuleList(
            nn.Linear(a, b, bias=number < len(widths))
            for number, (a, b) in enumerate(zip([first, *widths], widths, strict=False), 1)
        )
        nn.init.zeros_(self.type_offset.weight)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits`` ``(B, C)``; see Notes."""
        wild_type, mutant = f["wild_type"], f["mutant"]
        x = invariants(f["h"], self.fields["h"])
        x = self.node_linear(x) if self.product is None else self.product(x)  # (N, H) or (N, K · C)
        # subtracted in the order of the types, so that the reverse mutation has exactly the negative
        difference = self._score(x, torch.maximum(wild_type, mutant), f)  # (N, C)
        difference = difference - self._score(x, torch.minimum(wild_type, mutant), f)
        is_mutated = (wild_type < _TYPES) & (mutant < _TYPES)
        sign = (mutant - wild_type).sign() * is_mutated
        return {"logits": self.rescale(f["proteins"].sum(difference * sign[:, None].to(x.dtype)))}

    def _score(self, x: Tensor, types: Tensor, f: Mapping[str, Any]) -> Tensor:
        """Compute φ of one type of each node, ``(N, C)``; types that are unknown count as the last one."""
        types = types.clamp(max=_TYPES - 1)
        if self.product is not None:
            features = _of_type(f["type_features"], types)  # (N, K)
            return (features[:, :, None] * x.view(len(x), features.size(1), -1)).sum(1)
        z, score = x + self.type_table(types), self.type_offset(types)
        if self.feature_linear is not None:
            features = _of_type(f["type_features"], types)  # (N, K)
            z, score = z + self.feature_linear(features), score + self.feature_slope(features)
        for linear in self.mlp:
            z = linear(self.dropout(self.act(z)))
        return score + z


def _of_type(features: Tensor, types: Tensor) -> Tensor:
    """Return the features ``(N, K)`` of types ``(N,)`` from ``(N, 20 · K)``."""
    return features.view(len(features), _TYPES, -1)[torch.arange(len(types), device=types.device), types]

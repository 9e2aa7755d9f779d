"""Input layers: embedding of fields, constant features, and positional encoding added to features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.module import GraphLayer
from protgraph.nn.positional_encoding import CHAINS_IN_ORDER, LearnedPositions, PositionCode, position_index, sinusoid
from protgraph.nn.standardize import Standardize

__all__ = ["Constant", "Embed", "Position"]

ENTRY_POINTS = {"protgraph.layers": {"constant": "Constant", "embed": "Embed", "position": "Position"}}


class Embed(GraphLayer):
    """Linear embedding of all fields that it reads: ``h = W [one-hot(c_1), …, x_1, x_2, …] + b``.

    Training may standardize columns of x (``FitConfig.standardize``, :class:`protgraph.nn.standardize.Standardize`).

    The columns of W for a category are an embedding table; no one-hot matrix is materialized. Fields of edges are
    embedded in the same way: ``component("embed", reads=["edge_rbf", "edge_offset"], writes={"h": "edge_attr"})``.

    Parameters
    ----------
    dim : int
        Width of the output.
    dropout : float
        Dropout probability of each column of x, after standardization.

    Notes
    -----
    Reads (variadic): scalar fields ``(N, F)`` or categories ``(N,)``, all of nodes or all of edges; a mask counts as 0
    or 1. Missing values are 0 with a mask beside them, since fields are finite.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 64, dropout: float = 0.0) -> None:
        super().__init__(fields)
        if not fields:
            raise WiringError(
                "embed reads no fields. Wire some, e.g. component('embed', reads=['aatype', 'dihedral'])."
            )
        level = self.common_level()
        for name, spec in fields.items():
            _check(name, spec)
        self.tables = nn.ModuleDict({n: nn.Embedding(s.dim, dim) for n, s in fields.items() if s.is_category})
        self.real = {n: s.width for n, s in fields.items() if not s.is_category}
        self._order = (*self.tables.keys(), *self.real)
        width = sum(self.real.values())
        self.linear = nn.Linear(width, dim) if width else None
        self.standardize = Standardize(self.real)
        self.dropout = nn.Dropout(dropout)
        self.declare(h=FieldSpec("h", level, f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: embeddings of categorical fields plus a linear map of the others."""
        return {"h": self._embed(*(f[name] for name in self._order))}

    def _embed(self, *values: Tensor) -> Tensor:
        """Embed rows of the categories and then of the real fields, ``(M, dim)``."""
        terms = [table(x) for table, x in zip(self.tables.values(), values[: len(self.tables)], strict=True)]
        if self.linear is not None:
            real = zip(values[len(self.tables) :], self.real.values(), strict=True)
            x = [value.reshape(-1, width).to(self.linear.weight.dtype) for value, width in real]
            terms.append(self.linear(self.dropout(self.standardize(torch.cat(x, 1)))))
        return sum(terms[1:], start=terms[0])


def _check(name: str, spec: FieldSpec) -> None:
    if not spec.is_tensor or spec.irreps in ("point", "index"):
        raise WiringError(f"embed reads {name!r}, of irreps {spec.irreps}. It embeds scalars and categories only.")
    if not spec.is_scalar:
        raise WiringError(
            f"embed reads {name!r}, which is {spec.irreps}: a linear map of vector components breaks rotation "
            "equivariance. Add a layer 'invariants' before, or use an equivariant layer."
        )
    if not spec.is_category and spec.dtype.startswith("int"):
        raise WiringError(
            f"embed reads {name!r}, integers that are not categories. Use a featurizer that encodes them."
        )


class Constant(GraphLayer):
    """Constant features ``h_i = c``, for baselines that depend on the labels only.

    Parameters
    ----------
    dim : int
        Width of the output.
    learned : bool
        Learn c, starting from ones.

    Notes
    -----
    Reads: ``proteins``. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.
    """

    reads: ClassVar[tuple[str, ...]] = ("proteins",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 1, learned: bool = False) -> None:
        super().__init__(fields)
        if learned:
            self.value = nn.Parameter(torch.ones(dim))
        else:
            self.register_buffer("value", torch.ones(dim), persistent=False)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return ``h (N, dim)``, the same learned vector for each node."""
        return {"h": self.value.expand(f["proteins"].batch.numel(), -1)}


class Position(GraphLayer):
    """Positional encoding added to features: ``h_i ← h_i + P[p_i]``, p the position of residue i along the sequence.

    Parameters
    ----------
    kind : {"learned", "sinusoidal"}
        A learned vector per position, or its sines and cosines.
    max_len : int
        Number of learned positions.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``seq_pos`` ``(N,)`` int64, which counts unresolved residues; ``proteins``.
    Optional: ``chain`` ``(N,)``: chains follow each other with :data:`~protgraph.nn.positional_encoding.CHAIN_GAP`
    positions between them.
    Writes: ``h`` ``(N, C)``, ``C x 0e``.

    Rotary positions and offset biases are options of the attention layers.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.5 (sinusoidal); Devlin et al. 2019, arXiv:1810.04805 (learned).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "seq_pos", "proteins")
    optional: ClassVar[tuple[str, ...]] = ("chain",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        kind: Literal["learned", "sinusoidal"] = "learned",
        max_len: int = 4096,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        learned = kind == "learned"
        self.table = LearnedPositions(max_len, width) if learned else None
        self.declare(h=f"{width}x0e")
        if "chain" in fields:
            self.conformity = Conformity(expected_failures=CHAINS_IN_ORDER)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Add the code of the position in the chain to ``h (N, C)``."""
        h = f["h"]
        index = position_index(f["seq_pos"], f["proteins"], f.get("chain"))
        code = sinusoid(index, h.size(1), h.dtype) if self.table is None else self.table(index)
        return {"h": h + code}

    def position_code(self, length: int) -> PositionCode | None:
        """Return the sinusoids; learned positions return their own code."""
        if self.table is not None:
            return None
        width = self.scalar_width("h")
        return PositionCode("sinusoidal", sinusoid(torch.arange(length), width, torch.float64))

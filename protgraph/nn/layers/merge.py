"""Where branches meet: ``residual`` and ``gru`` join an update to h, ``add`` and ``concat`` any fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.mlp import activation, check_choice
from protgraph.nn.module import GraphLayer

__all__ = ["GRU", "Add", "Concat", "Residual"]
ENTRY_POINTS = {"protgraph.layers": {"add": "Add", "concat": "Concat", "gru": "GRU", "residual": "Residual"}}


class Residual(GraphLayer):
    """``h' = norm(h + dropout(act(update)))``: what turns the formula of a layer into a block of a network.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        h and update of equal width.
    act : str
        Activation of the update.
    dropout : float
        Probability.
    norm : {"layer", "none"}
        Normalization of the sum.

    Notes
    -----
    Reads: h ``(N, C)``, update ``(N, C)``, scalars. Writes: h ``(N, C)``, ``C x 0e``.

    References
    ----------
    He et al. 2016, arXiv:1512.03385; Ba, Kiros & Hinton 2016, arXiv:1607.06450.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "update")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, act: str = "relu", dropout: float = 0.0, norm: str = "layer"
    ) -> None:
        super().__init__(fields)
        width = _equal_widths(self)
        self.act, self.dropout = activation(act), nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width) if check_choice("norm", norm, ("layer", "none")) == "layer" else nn.Identity()
        self.declare(h=f"{width}x0e")

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": self.norm(f["h"] + self.dropout(self.act(f["update"])))}


class GRU(GraphLayer):
    """``h' = GRU(update, h)``: a gated skip; after ``edge_network`` it makes the network of Gilmer et al. 2017.

    Notes
    -----
    Reads: h ``(N, C)``, update ``(N, D)``, scalars. Writes: h ``(N, C)``, ``C x 0e``.

    References
    ----------
    Cho et al. 2014, arXiv:1406.1078, eqs. 5–8; Gilmer et al. 2017, arXiv:1704.01212, sec. 5 (update function).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "update")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.cell = nn.GRUCell(self.scalar_width("update"), width)
        self.declare(h=f"{width}x0e")

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": self.cell(f["update"], f["h"])}


class Add(GraphLayer):
    """``h = x_1 + x_2 + …``, of fields with equal irreps; vectors may be added too.

    Notes
    -----
    Reads (variadic): fields ``(N, C)``. Writes: h ``(N, C)`` with their irreps.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        spec = _common(self)
        odd = [n for n, s in fields.items() if s.o3.simplify() != spec.o3.simplify()]
        if odd:
            raise WiringError(f"add reads { {n: s.irreps for n, s in fields.items()} }: they must have equal irreps")
        self.declare(h=FieldSpec("h", spec.level, spec.irreps, chiral=spec.chiral))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        first, *rest = (f[name].flatten(1) for name in self.fields)
        return {"h": sum(rest, start=first)}


class Concat(GraphLayer):
    """``h = [x_1, x_2, …]``, columns in the order of the fields; vectors may be joined too.

    Notes
    -----
    Reads (variadic): fields ``(N, C_k)``. Writes: h ``(N, Σ C_k)`` with their irreps, one after another.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        spec = _common(self)
        self.declare(h=FieldSpec("h", spec.level, "+".join(s.irreps for s in fields.values()), chiral=spec.chiral))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": torch.cat([f[name].flatten(1) for name in self.fields], 1)}


def _equal_widths(layer: Residual) -> int:
    widths = {name: layer.scalar_width(name) for name in layer.reads}
    if widths["h"] != widths["update"]:
        raise WiringError(
            f"residual adds update of width {widths['update']} to h of width {widths['h']}: give the layer before it "
            f"dim={widths['h']}, or change h by a 'linear' first"
        )
    return widths["h"]


def _common(layer: GraphLayer) -> FieldSpec:
    """The first field's spec, chiral if any is; all must be real features of one level."""
    who, specs = type(layer).__name__.lower(), layer.fields
    if len(specs) < 2:
        raise WiringError(f"{who} reads {sorted(specs)}: give it two fields or more")
    unfit = [n for n, s in specs.items() if s.irreps in ("point", "index", "object") or s.dtype != "float32"]
    if unfit:
        raise WiringError(f"{who} reads {unfit[0]!r}, which holds no real features: take it through 'embed' first")
    if len({s.level for s in specs.values()}) > 1:
        raise WiringError(f"{who} reads fields of different levels: { {n: s.level for n, s in specs.items()} }")
    first = next(iter(specs.values()))
    return first.as_(first.name, chiral=any(s.chiral for s in specs.values()))

"""Layers that join branches: residual sum, gated recurrent unit, sum, concatenation, mean probability of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, logsigmoid

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.mlp import activation
from protgraph.nn.module import GraphLayer

__all__ = ["GRU", "Add", "Concat", "MeanProbability", "Residual"]
ENTRY_POINTS = {
    "protgraph.layers": {
        "add": "Add",
        "concat": "Concat",
        "gru": "GRU",
        "mean_probability": "MeanProbability",
        "residual": "Residual",
    }
}


class Residual(GraphLayer):
    """Residual connection ``h' = norm(h + dropout(act(update)))``; turns the formula of a layer into a network block.

    Parameters
    ----------
    act : str
        Activation function of the update.
    dropout : float
        Dropout probability of the update.
    norm : {"layer", "none"}
        Normalization of the sum.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` and ``update`` ``(N, C)``, scalars. Writes: ``h`` ``(N, C)``, ``C x 0e``.

    References
    ----------
    He et al. 2016, arXiv:1512.03385; Ba, Kiros & Hinton 2016, arXiv:1607.06450.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "update")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        act: str = "relu",
        dropout: float = 0.0,
        norm: Literal["layer", "none"] = "layer",
    ) -> None:
        super().__init__(fields)
        width, update_width = self.scalar_width("h"), self.scalar_width("update")
        if width != update_width:
            raise WiringError(
                f"residual cannot add update of width {update_width} to h of width {width}. Give the layer that writes "
                f"update dim={width}, or add a layer 'linear'."
            )
        self.act, self.dropout = activation(act), nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width) if norm == "layer" else nn.Identity()
        self.declare(h=f"{width}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)``: the norm of ``h`` plus the update."""
        return {"h": self.norm(f["h"] + self.dropout(self.act(f["update"])))}


class GRU(GraphLayer):
    """Gated update ``h' = GRU(update, h)``; after ``edge_network`` it makes the network of Gilmer et al. 2017.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` and ``update`` ``(N, D)``, scalars. Writes: ``h`` ``(N, C)``, ``C x 0e``.

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

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)``: a gated recurrent unit with the update as its input."""
        run = self._plain if torch.compiler.is_compiling() else self.cell  # torch cannot trace its kernel for GPUs
        return {"h": run(f["update"], f["h"])}

    def _plain(self, x: Tensor, h: Tensor) -> Tensor:
        """Compute the formula of the cell: reset and update gates r and z, candidate n."""
        cell = self.cell
        of_x = linear(x, cell.weight_ih, cell.bias_ih).chunk(3, 1)
        of_h = linear(h, cell.weight_hh, cell.bias_hh).chunk(3, 1)
        r = torch.sigmoid(of_x[0] + of_h[0])
        z = torch.sigmoid(of_x[1] + of_h[1])
        n = torch.tanh(of_x[2] + r * of_h[2])
        return n + z * (h - n)


class Add(GraphLayer):
    """Sum ``h = x_1 + x_2 + …`` of fields with equal irreps, vectors included.

    Notes
    -----
    Reads (variadic): fields ``(N, C)``. Writes: ``h`` ``(N, C)``, of their irreps.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        spec = _common_spec(self)
        irreps = spec.o3.simplify()
        if any(other.o3.simplify() != irreps for other in fields.values()):
            irreps_of_fields = {name: other.irreps for name, other in fields.items()}
            raise WiringError(f"add reads {irreps_of_fields}. They must have equal irreps.")
        self.declare(h=FieldSpec("h", spec.level, spec.irreps, chiral=spec.chiral))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)``, the sum of all inputs."""
        h = None
        for name in self.fields:
            x = f[name].flatten(1)
            h = x if h is None else h + x
        assert h is not None  # contract: a variadic layer has inputs
        return {"h": h}


class Concat(GraphLayer):
    """Concatenation ``h = [x_1, x_2, …]`` in the order of the fields, vectors included.

    Notes
    -----
    Reads (variadic): fields ``(N, C_k)``. Writes: ``h`` ``(N, Σ C_k)``, their irreps in this order.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        spec = _common_spec(self)
        self.declare(h=FieldSpec("h", spec.level, "+".join(s.irreps for s in fields.values()), chiral=spec.chiral))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, ΣC)``, all inputs side by side."""
        return {"h": torch.cat([f[name].flatten(1) for name in self.fields], 1)}


class MeanProbability(GraphLayer):
    """Mean probability of several networks: ``p_i = mean_n σ(x_n,i)``, or its log-odds ``log(p_i / (1 − p_i))``.

    For ensembles that were published as one model. A checkpoint with several members averages logits instead.

    Parameters
    ----------
    log_odds : bool
        Write the log-odds, which are exact also for probabilities that round to 0 or 1.

    Notes
    -----
    Reads (variadic): for each network one logit of yes ``(N, 1)``, or the logits of no and yes ``(N, 2)``.
    Writes: ``h`` ``(N, 1)``, ``1x0e``.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(
        inputs={"first": FieldSpec("first", "node", "2x0e"), "second": FieldSpec("second", "node", "2x0e")}
    )

    def __init__(self, fields: Mapping[str, FieldSpec], *, log_odds: bool = False) -> None:
        super().__init__(fields)
        level = self.common_level()
        widths = {name: self.scalar_width(name) for name in fields}
        if set(widths.values()) not in ({1}, {2}):
            raise WiringError(
                f"mean_probability reads fields of widths {widths}. Allowed: one logit of each network, or two."
            )
        self.log_odds = log_odds
        self.declare(h=FieldSpec("h", level, "1x0e", chiral=any(spec.chiral for spec in fields.values())))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, 1)``."""
        of_networks = torch.stack([_log_probabilities(f[name]) for name in self.fields])  # (networks, N, 2)
        log_sum = of_networks.logsumexp(0)
        if self.log_odds:
            return {"h": log_sum[:, 1:] - log_sum[:, :1]}
        return {"h": log_sum[:, 1:].exp() / len(self.fields)}


def _log_probabilities(logits: Tensor) -> Tensor:
    """Return the log-probabilities of no and yes, ``(N, 2)``, from one or two logits."""
    if logits.size(1) == 2:
        return logits.log_softmax(1)
    return torch.cat([logsigmoid(-logits), logsigmoid(logits)], 1)


def _common_spec(layer: GraphLayer) -> FieldSpec:
    """Return the first field's spec, chiral if any field is; all must be real features of one level."""
    who, specs = type(layer).__name__.lower(), layer.fields
    if len(specs) < 2:
        raise WiringError(f"{who} reads {sorted(specs)}. It needs at least two fields.")
    unfit = [n for n, s in specs.items() if s.irreps in ("point", "index", "object") or s.dtype != "float32"]
    if unfit:
        raise WiringError(f"{who} reads {unfit[0]!r}, which has no real features. Add a layer 'embed' before.")
    layer.common_level()
    first = next(iter(specs.values()))
    return first.as_(first.name, chiral=any(s.chiral for s in specs.values()))

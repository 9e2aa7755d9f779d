"""Any convolution of PyTorch Geometric by its name: ``pyg_conv``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError, UnknownNameError, WiringError, suggest
from protgraph.nn.mlp import mlp
from protgraph.nn.module import GraphLayer

__all__ = ["PygConv"]
ENTRY_POINTS = {"protgraph.layers": {"pyg_conv": "PygConv"}}

# What this layer gives a convolution itself; the rest of its arguments are options.
_GIVEN = ("self", "in_channels", "out_channels", "channels", "edge_dim", "kwargs")
_EDGE_NAMES = ("edge_attr", "edge_weight")


class PygConv(GraphLayer):
    """``h' = conv(h, edge_index[, pos][, edge_attr])``, conv being a class of ``torch_geometric.nn.conv``.

    ``node("pyg_conv", conv="SAGEConv", dim=64, options={"aggr": "max"})``

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    conv : str
        Name of the class.
    dim : int
        Its ``out_channels``. The width of the result is measured, so ``heads=4`` with concatenation gives 4 dim.
    options : mapping, optional
        More of its arguments, by name. Where it wants a network (``nn``, ``local_nn``, …), the widths of a perceptron,
        input and output included: ``conv="GINConv", options={"nn": [64, 128, 64]}``.

    Notes
    -----
    Reads: h ``(N, C)`` scalars, edges; optionally edge_attr ``(E, D)`` scalars, edge_weight ``(E, 1)`` and pos
    ``(N, 3)`` Å, which must be wired if and only if the convolution takes them. Writes: h, scalars.

    When built, the convolution runs once on a graph of three nodes, so one that cannot run says so then. A
    convolution that works on raw positions is not rotation equivariant; the conformity suite shows it.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr", "edge_weight", "pos")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        conv: str = "SAGEConv",
        dim: int = 64,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(fields)
        kind = _conv_class(conv)
        self.takes = [n for n in (*_EDGE_NAMES, "pos") if n in fields]
        accepted = inspect.signature(kind.forward).parameters
        for name in self.takes:
            if name not in accepted:
                raise WiringError(f"pyg_conv: {conv}.forward takes {', '.join(list(accepted)[1:])}; it has no {name!r}")
        widths = {"h": self.scalar_width("h")} | {n: self.scalar_width(n) for n in self.takes if n in _EDGE_NAMES}
        self.conv = _make(kind, widths, dim, dict(options or {}))
        self.declare(h=f"{self._measure(conv, widths)}x0e")

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        more = {n: f[n] for n in self.takes}
        if "edge_weight" in more:
            more["edge_weight"] = more["edge_weight"].flatten()
        return {"h": self.conv(f["h"], edge_index=f["edges"].index, **more)}

    def _measure(self, name: str, widths: Mapping[str, int]) -> int:
        """Width of the result, from a run on the ring of three nodes; also fills lazy parameters."""
        ring = torch.tensor([[1, 2, 0], [0, 1, 2]])
        more = {n: torch.ones(3, widths.get(n, 3)) for n in self.takes}
        if "edge_weight" in more:
            more["edge_weight"] = more["edge_weight"].flatten()
        try:
            with torch.no_grad():
                out = self.conv.eval()(torch.ones(3, widths["h"]), edge_index=ring, **more)
        except Exception as e:
            inputs = ", ".join(("h", "edges", *self.takes))
            raise WiringError(f"pyg_conv: {name} cannot run on {inputs}: {type(e).__name__}: {e}") from e
        self.conv.train()
        if not isinstance(out, Tensor) or out.dim() != 2 or out.size(0) != 3:
            raise WiringError(f"pyg_conv: {name} gives no (N, C) features of nodes; write a layer of its own for it")
        return out.size(1)


def _conv_class(name: str) -> type[nn.Module]:
    from torch_geometric.nn import conv as room

    known = [n for n in room.__all__ if inspect.isclass(getattr(room, n))]
    if name not in known:
        raise UnknownNameError(f"pyg_conv: torch_geometric.nn.conv has no class {name!r}.{suggest(name, known)}")
    return getattr(room, name)


def _make(kind: type[nn.Module], widths: Mapping[str, int], dim: int, options: dict[str, Any]) -> nn.Module:
    """The convolution, with the widths under the names that its constructor has for them."""
    takes = inspect.signature(kind.__init__).parameters
    allowed = {n: p for n, p in takes.items() if n not in _GIVEN}
    known = [*allowed, *(["aggr"] if "kwargs" in takes and "aggr" not in allowed else [])]
    odd = [n for n in options if n not in known]
    if odd:
        hint = "; its out_channels is our option dim" if odd[0] == "out_channels" else ""
        raise OptionError(f"pyg_conv: got option {odd[0]!r}; {kind.__name__} takes {', '.join(known)}{hint}")
    given = {"in_channels": widths["h"], "out_channels": dim, "channels": widths["h"]}
    if "edge_attr" in widths:
        given["edge_dim"] = widths["edge_attr"]
    arguments = {n: v for n, v in given.items() if n in takes} | options
    lacking = [n for n, p in allowed.items() if p.default is p.empty and n not in options]
    if lacking:
        how = "a network as its widths" if any(n.endswith("nn") for n in lacking) else "it"
        raise OptionError(f"pyg_conv: {kind.__name__} needs {', '.join(lacking)}: give {how}, options={{…}}")
    networks = {n: mlp(v) for n, v in options.items() if n.endswith("nn") and isinstance(v, list | tuple)}
    return kind(**arguments | networks)

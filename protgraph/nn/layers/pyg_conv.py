"""Convolutions of PyTorch Geometric by class name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError, UnknownNameError, WiringError, suggest
from protgraph.nn.mlp import mlp
from protgraph.nn.module import GraphLayer

__all__ = ["PygConv"]
ENTRY_POINTS = {"protgraph.layers": {"pyg_conv": "PygConv"}}

# Arguments that this layer sets; all others are options.
_GIVEN = ("self", "in_channels", "out_channels", "channels", "edge_dim", "kwargs")
_EDGE_NAMES = ("edge_attr", "edge_weight")


class PygConv(GraphLayer):
    """Convolution of PyTorch Geometric: ``h' = conv(h, edge_index[, pos][, edge_attr])``.

    For example ``component("pyg_conv", conv="SAGEConv", dim=64, options={"aggr": "max"})``.

    Parameters
    ----------
    conv : str
        Class name in ``torch_geometric.nn.conv``.
    dim : int
        Its ``out_channels``. The width of the output is measured: ``heads=4`` with concatenation gives 4 dim.
    options : mapping, optional
        Further arguments by name. For a network (``nn``, ``local_nn``, …) give the widths of a perceptron, input and
        output included: ``conv="GINConv", options={"nn": [64, 128, 64]}``.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``. Optional: ``edge_attr`` ``(E, D)`` scalars, ``edge_weight`` ``(E, 1)``
    and ``pos`` ``(N, 3)``, Å, to be wired if and only if the convolution takes them.
    Writes: ``h``, scalars.

    The convolution runs once on a graph of three nodes when it is built, so that an invalid choice fails there. A
    convolution on raw positions is not rotation-equivariant; the conformity suite reports it.
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
                raise WiringError(f"pyg_conv: {conv}.forward takes {', '.join(list(accepted)[1:])}, not {name!r}.")
        widths = {"h": self.scalar_width("h")}
        for name in self.takes:
            if name in _EDGE_NAMES:
                widths[name] = self.scalar_width(name)
        self.conv = _make(kind, widths, dim, dict(options or {}))
        self.declare(h=f"{self._measure(conv, widths)}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Call the PyG convolution with ``h (N, C)`` and ``edge_index (2, E)``."""
        more = {n: f[n] for n in self.takes}
        if "edge_weight" in more:
            more["edge_weight"] = more["edge_weight"].flatten()
        return {"h": self.conv(f["h"], edge_index=f["edges"].index, **more)}

    def _measure(self, name: str, widths: Mapping[str, int]) -> int:
        """Return the width of the output on a ring of three nodes; initializes lazy parameters."""
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
            raise WiringError(f"pyg_conv: {name} does not return (N, C) node features. Write a layer for it.")
        return out.size(1)


def _conv_class(name: str) -> type[nn.Module]:
    from torch_geometric.nn import conv as package

    classes = [n for n in package.__all__ if inspect.isclass(getattr(package, n))]
    if name not in classes:
        raise UnknownNameError(f"pyg_conv: torch_geometric.nn.conv has no class {name!r}.{suggest(name, classes)}")
    return getattr(package, name)


def _make(kind: type[nn.Module], widths: Mapping[str, int], dim: int, options: dict[str, Any]) -> nn.Module:
    """Build the convolution, with widths under the argument names of its constructor."""
    takes = inspect.signature(kind.__init__).parameters
    _check_options(kind, takes, options)
    widths_by_name = {"in_channels": widths["h"], "out_channels": dim, "channels": widths["h"]}
    if "edge_attr" in widths:
        widths_by_name["edge_dim"] = widths["edge_attr"]
    arguments: dict[str, Any] = {name: width for name, width in widths_by_name.items() if name in takes}
    for name, value in options.items():
        is_network = name.endswith("nn") and isinstance(value, list | tuple)
        arguments[name] = mlp(value) if is_network else value
    return kind(**arguments)


def _check_options(kind: type[nn.Module], takes: Mapping[str, inspect.Parameter], options: Mapping[str, Any]) -> None:
    """Raise if the constructor of a convolution does not take an option, or needs one that is not given."""
    allowed = {name: parameter for name, parameter in takes.items() if name not in _GIVEN}
    accepted = list(allowed)
    if "kwargs" in takes and "aggr" not in allowed:
        accepted.append("aggr")
    for name in options:
        if name not in accepted:
            hint = " Set out_channels with dim." if name == "out_channels" else ""
            names = ", ".join(accepted)
            raise OptionError(f"pyg_conv: {kind.__name__} has no option {name!r}. Options: {names}.{hint}")
    _check_required(kind, [name for name, p in allowed.items() if p.default is p.empty and name not in options])


def _check_required(kind: type[nn.Module], missing: Sequence[str]) -> None:
    if missing:
        how = "the widths of a network" if any(name.endswith("nn") for name in missing) else "a value"
        raise OptionError(f"pyg_conv: {kind.__name__} needs {', '.join(missing)}. Give {how} in options={{…}}.")

"""Integrated gradients of a model's output over its node features and embedded categories.

Not captum: it interpolates tensors that are arguments of ``forward``; here inputs are fields of a graph, and categories
inside layers, of several members at once (captum 0.8, 2026-11-23).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph.errors import OptionError
from protgraph.model.build import ProteinModel
from protgraph.nn.layers.embed import Embed

__all__ = ["IntegratedGradients", "integrate_gradients"]

FEWEST, MOST = 16, 512  # steps
TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class IntegratedGradients:
    """Attributions of one output to the inputs of one protein.

    Parameters
    ----------
    parts : mapping of str to Tensor
        Field → ``(N,)`` float64, the attribution of each node's field.
    difference : float
        Output for the inputs minus output for the baseline.
    steps : int
        Points of the integral.
    """

    parts: Mapping[str, Tensor]
    difference: float
    steps: int

    @property
    def total(self) -> float:
        """Sum of all attributions; equal to the difference if the integral is exact."""
        return float(sum(part.sum() for part in self.parts.values()))

    @property
    def error(self) -> float:
        """Absolute difference of the two."""
        return abs(self.total - self.difference)

    @property
    def is_complete(self) -> bool:
        """True if the error is at most 1 % of the difference, or 0.001."""
        return self.error <= max(TOLERANCE * abs(self.difference), 1e-3)


def integrate_gradients(
    members: Sequence[ProteinModel], graph: Data, output: Callable[[Tensor], Tensor]
) -> IntegratedGradients:
    """Integrate the gradients of an output between the baseline and the inputs of a protein.

    The attribution of an input x is ``(x − x') ∫₀¹ ∂F/∂x (x' + α (x − x')) dα``, by Gauss–Legendre quadrature, with
    twice as many points until the attributions sum to F(x) − F(x').

    Parameters
    ----------
    members : sequence of ProteinModel
        In evaluation mode, on one device; F is computed of the mean of their logits.
    graph : Data
        Graph of one protein, on the same device.
    output : callable
        ``(N, C)`` mean logits to a scalar, F.

    Notes
    -----
    Inputs are the node features that layers or the head read, and the embedded categories of nodes. The baseline x' of
    scalars and embeddings is their mean over the nodes of the protein, that of vectors is 0. Edges, their features,
    coordinates and masks are those of the protein.

    References
    ----------
    Sundararajan et al. 2017, arXiv:1703.01365.
    """
    states = [_Inputs(member, graph) for member in members]
    for state in states:
        if not state.fields and not state.tables:
            raise OptionError(f"model {state.network.spec.name!r} reads no node features: nothing to attribute to.")
    with torch.no_grad():
        ends = [float(output(_mean_logits([state.at(alpha) for state in states]))) for alpha in (0.0, 1.0)]
    steps = FEWEST
    while True:
        result = IntegratedGradients(_integral(states, output, steps), ends[1] - ends[0], steps)
        if result.is_complete or steps >= MOST:
            return result
        steps *= 2


def _mean_logits(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts)).mean(0)


def _integral(states: Sequence[_Inputs], output: Callable[[Tensor], Tensor], steps: int) -> dict[str, Tensor]:
    """Return the sum over quadrature points of weighted gradients times differences, by field."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    parts: dict[str, Tensor] = {}
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        value = output(_mean_logits([state.at(float(point), gradient=True) for state in states]))
        for state in states:
            for name, own in state.attributions(value).items():
                parts[name] = parts.get(name, 0) + weight * own
    return parts


class _Inputs:
    """Inputs of one model for one protein, at a point between baseline and input."""

    def __init__(self, network: ProteinModel, graph: Data) -> None:
        self.network = network
        self.graph = graph
        with torch.no_grad():
            self.plain = network.fields_of(graph)
        read = {name for wires in network.wires for name in wires.reads.values()} | set(network.head_reads.values())
        self.fields = {name: self.plain[name] for name in sorted(read) if self._is_feature(name)}
        self.tables = [
            (name, layer.tables[local])
            for wires, layer in zip(network.wires, network.layers, strict=True)
            if isinstance(layer, Embed)
            for local, name in wires.reads.items()
            if local in layer.tables and network.plan.fields[name].level == "node"
        ]
        self.points: list[tuple[str, Tensor, Tensor]] = []  # field, interpolated input, difference from the baseline

    def _is_feature(self, name: str) -> bool:
        spec, value = self.network.plan.fields.get(name), self.plain.get(name)
        if spec is None or spec.level != "node" or spec.irreps in ("point", "index", "object") or spec.is_category:
            return False
        return isinstance(value, Tensor) and value.is_floating_point() and not name.endswith("_mask")

    def at(self, alpha: float, *, gradient: bool = False) -> Tensor:
        """Return the logits at ``x' + alpha (x − x')``, with gradients of the interpolated inputs if required."""
        self.points = []
        f: dict[str, Any] = dict(self.plain)
        for name, value in self.fields.items():
            f[name] = self._interpolate(name, value, alpha, gradient=gradient)
        with ExitStack() as stack:
            for name, table in self.tables:
                stack.enter_context(_hooked(table, partial(self._replace, name, alpha, gradient)))
            return self.network.head_outputs(self.network.embed_fields(f))["logits"].float()

    def _replace(
        self, name: str, alpha: float, gradient: bool, module: nn.Module, inputs: tuple[Tensor, ...], value: Tensor
    ) -> Tensor:
        return self._interpolate(name, value, alpha, gradient=gradient)

    def _interpolate(self, name: str, value: Tensor, alpha: float, *, gradient: bool) -> Tensor:
        value = value.detach()
        base = self._baseline(name, value)
        point = (base + alpha * (value - base)).requires_grad_(gradient)
        self.points.append((name, point, value - base))
        return point

    def _baseline(self, name: str, value: Tensor) -> Tensor:
        spec = self.network.plan.fields[name]
        mean = value.mean(0, keepdim=True).expand_as(value)
        if spec.is_category or spec.is_scalar:
            return mean
        scalar = torch.tensor(spec.scalar_columns, device=value.device).reshape(value.shape[1:])
        return torch.where(scalar, mean, 0.0)

    def attributions(self, value: Tensor) -> dict[str, Tensor]:
        """Return gradient times difference of each input, summed over its columns, ``(N,)`` float64 on the CPU."""
        gradients = torch.autograd.grad(
            value, [point for _, point, _ in self.points], retain_graph=True, allow_unused=True
        )
        found: dict[str, Tensor] = {}
        for (name, _, difference), gradient in zip(self.points, gradients, strict=True):
            if gradient is None:
                continue
            own = (gradient * difference).double().flatten(1).sum(1).cpu()
            found[name] = found.get(name, 0) + own
        return found


@contextmanager
def _hooked(module: nn.Module, hook: Callable[..., Tensor]) -> Iterator[None]:
    """Register a forward hook for a block."""
    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()

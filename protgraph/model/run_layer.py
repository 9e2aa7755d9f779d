"""Run one layer or head of a model and check what it returns; faults name the layer, its place and the line of code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from protgraph.featurize.run_featurizer import check_returned_fields, check_returned_tensor
from protgraph.nn.module import GraphLayer
from protgraph.registry.component_fault import ComponentScope

__all__ = ["run_head", "run_layer"]


def run_layer(
    layer: GraphLayer, f: Mapping[str, Any], scope: ComponentScope, rows: Mapping[str, int]
) -> dict[str, Tensor]:
    """Return the outputs of a layer by local name, all of the shapes of their specs."""
    outputs = _call(layer, f, scope)
    for local, spec in layer.out.items():
        check_returned_tensor(scope, local, outputs[local], spec.trailing_shape, spec.level, rows)
    return outputs


def run_head(
    head: GraphLayer,
    f: Mapping[str, Any],
    scope: ComponentScope,
    rows: Mapping[str, int],
    shape: tuple[int, ...],
    level: str,
) -> dict[str, Tensor]:
    """Return ``{"logits": (M, *shape)}`` of a head; ``shape`` and ``level`` are the target's. See :func:`run_layer`."""
    outputs = _call(head, f, scope)
    check_returned_tensor(scope, "logits", outputs["logits"], shape, level, rows)
    return outputs


def _call(layer: GraphLayer, f: Mapping[str, Any], scope: ComponentScope) -> dict[str, Tensor]:
    has_gradients = torch.is_grad_enabled()
    try:
        outputs = layer(f)
    except (Exception, SystemExit) as e:
        torch.set_grad_enabled(has_gradients)
        if scope.is_fault(e):
            raise scope.raised(e) from e
        raise
    if torch.is_grad_enabled() != has_gradients:
        torch.set_grad_enabled(has_gradients)
        raise scope.returned("changes the gradient mode of torch", allowed="Use it as a context: with torch.no_grad().")
    return check_returned_fields(scope, outputs, layer.writes, may_have_more=True)

"""Find the featurizer or layer of a model that gives the first value that is not finite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph.errors import ComponentError
from protgraph.model.build import ProteinModel
from protgraph.registry.component_fault import ComponentScope

__all__ = ["find_nonfinite_component", "nonfinite_error"]

_MAY_BE_NAN = ("backbone",)  # missing atoms


def nonfinite_error(model: ProteinModel, batch: Data, protein: str) -> ComponentError:
    """Return the error of a trained model whose prediction for a protein is not finite.

    It names the featurizer, layer or head at fault, or else the weight or feature that is not finite.

    ``batch``: graph or batch of the protein. ``protein``: name for the message.
    """
    hint = "Correct the component, or train the model again."
    fault = find_nonfinite_component(model, batch, protein=protein, hint=hint)
    if fault is not None:
        return fault
    name = model.spec.name
    weights = (n for n, x in model.named_parameters() if not bool(torch.isfinite(x).all()))
    fields = (n for n, x in _floats(model.fields_of(batch)) if n not in _MAY_BE_NAN and not torch.isfinite(x).all())
    cause = next((f"the weight {n!r} is not finite" for n in weights), "")
    cause = cause or next((f"the input field {n!r} is not finite" for n in fields), "the numbers are too large")
    text = f"model {name!r} predicts values that are not finite on {protein!r}: {cause}. Train the model again."
    return ComponentError(text, kind="model", name=name, protein=protein)


def find_nonfinite_component(
    model: ProteinModel,
    batch: Data,
    *,
    protein: str = "",
    hint: str = "If its weights have become large, use a smaller lr.",
) -> ComponentError | None:
    """Return the error of the first tensor featurizer, layer or head that makes NaN or infinity of finite values."""
    with torch.no_grad():
        f = model.fields_of(batch)
        fault = _featurizer_at_fault(model, f, protein)
        if fault is not None:
            return fault
        for wire, layer in model.steps:
            inputs = {local: f[name] for local, name in wire.reads.items()}
            outputs = layer(inputs)
            path = f"{wire.path} of model {model.spec.name!r}"
            scope = ComponentScope("layer", wire.component.name, layer.forward, path=path, protein=protein)
            fault = _fault(layer, inputs, outputs, scope, hint)
            if fault is not None:
                return fault
            f |= {name: outputs[local] for local, name in wire.writes.items()}
        inputs = {local: f[name] for local, name in model.head_reads.items()}
        path = f"model {model.spec.name!r}"
        scope = ComponentScope("head", model.target.head_name, model.head.forward, path=path, protein=protein)
        return _fault(model.head, inputs, model.head(inputs), scope, hint)


def _featurizer_at_fault(model: ProteinModel, f: Mapping[str, Any], protein: str) -> ComponentError | None:
    """Return the error of the first tensor featurizer with finite inputs that returns NaN or infinity."""
    bad = {name for name, x in _floats(f) if name not in _MAY_BE_NAN and not bool(torch.isfinite(x).all())}
    for component, featurizer in model.plan.tensor:
        wrong = [local for local in featurizer.out if component.output_field(local) in bad]
        if wrong and not bad & {component.input_field(local) for local in featurizer.reads}:
            scope = ComponentScope("featurizer", component.name, featurizer.__call__, protein=protein)
            return scope.returned(f"returns {wrong[0]!r} with values that are not finite")
    return None


def _fault(
    module: nn.Module, f: Mapping[str, Any], outputs: Mapping[str, Any], scope: ComponentScope, hint: str
) -> ComponentError | None:
    """Return the error of a layer or head that makes values that are not finite of finite weights and inputs."""
    bad = [name for name, x in _floats(outputs) if not bool(torch.isfinite(x).all())]
    if not bad or not _is_finite(module, f):
        return None
    return scope.returned(f"returns {bad[0]!r} with values that are not finite", allowed=hint)


def _is_finite(module: nn.Module, f: Mapping[str, Any]) -> bool:
    """Return True if the weights and inputs of a layer are finite."""
    values = [*module.parameters(), *(x for name, x in _floats(f) if name not in _MAY_BE_NAN)]
    return all(bool(torch.isfinite(x).all()) for x in values)


def _floats(values: object) -> Iterator[tuple[str, Tensor]]:
    for name, x in values.items() if isinstance(values, Mapping) else ():
        if isinstance(x, Tensor) and x.is_floating_point():
            yield name, x

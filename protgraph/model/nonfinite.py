"""Find the featurizer or layer of a model that gives the first value that is not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from protgraph.errors import ComponentError
from protgraph.model.build import ProteinModel
from protgraph.registry.component_fault import ComponentScope

__all__ = ["ComponentTrace", "describe_nonfinite", "find_nonfinite_component", "nonfinite_error", "trace_step"]

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


class ComponentTrace(NamedTuple):
    """Largest absolute values of a layer or head in one training step; NaN or infinite if one value is.

    ``gradient``: of the loss with respect to the outputs. ``parameter_gradient``: with respect to the parameters. Both
    are 0 if the loss does not depend on them.
    """

    path: str  # "layers[2]" or "head"
    name: str
    output: float
    gradient: float
    parameter_gradient: float


def trace_step(
    model: ProteinModel,
    batch: Data,
    output_gradients: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
) -> list[ComponentTrace]:
    """Run a forward and a backward pass, and return the largest values of each layer and of the head, in order.

    ``output_gradients``: gradients of the loss with respect to the outputs of the head, by name.
    """
    with torch.enable_grad():
        components, outputs = _run_components(model, batch)
        gradients = _gradients(model, components, outputs, output_gradients(outputs))
    traces = []
    for component in components:
        gradient = _largest([gradients.get(id(x)) for x in component.tensors])
        of_parameters = _largest([gradients.get(id(x)) for x in component.module.parameters()])
        largest = _largest(component.tensors)
        traces.append(ComponentTrace(component.path, component.name, largest, gradient, of_parameters))
    return traces


class _RunComponent(NamedTuple):
    """A layer or head, and the floating-point tensors that it returned."""

    path: str
    name: str
    module: nn.Module
    tensors: list[Tensor]


def _run_components(model: ProteinModel, batch: Data) -> tuple[list[_RunComponent], Mapping[str, Tensor]]:
    """Run all layers and the head; return them with their outputs, and the outputs of the head by name."""
    f = model.fields_of(batch)
    components = []
    for wire, layer in model.steps:
        outputs = layer({local: f[name] for local, name in wire.reads.items()})
        f |= {name: outputs[local] for local, name in wire.writes.items()}
        tensors = [tensor for _, tensor in _floats(outputs)]
        components.append(_RunComponent(wire.path, wire.component.name, layer, tensors))
    outputs = model.head({local: f[name] for local, name in model.head_reads.items()})
    tensors = [tensor for _, tensor in _floats(outputs)]
    components.append(_RunComponent("head", model.target.head_name, model.head, tensors))
    return components, outputs


def _gradients(
    model: ProteinModel,
    components: Sequence[_RunComponent],
    outputs: Mapping[str, Tensor],
    output_gradients: Mapping[str, Tensor],
) -> dict[int, Tensor | None]:
    """Return the gradient of each output and parameter by its ``id``, from one backward pass."""
    names = [name for name in output_gradients if outputs[name].requires_grad]
    if not names:
        return {}
    inputs: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for component in components:
        inputs += [tensor for tensor in component.tensors if tensor.requires_grad]
    results = torch.autograd.grad(
        [outputs[name] for name in names],
        inputs,
        grad_outputs=[output_gradients[name].to(outputs[name]) for name in names],
        allow_unused=True,
    )
    return {id(tensor): result for tensor, result in zip(inputs, results, strict=True)}


def describe_nonfinite(traces: Sequence[ComponentTrace]) -> str:
    """Return what becomes NaN or infinite first: an output, then the loss, then a gradient; "" if nothing does.

    Gradients are computed from the last component to the first one.
    """
    for trace in traces:
        if not math.isfinite(trace.output):
            return f"the output of {trace.path} ({trace.name})"
    if traces and not math.isfinite(traces[-1].gradient):
        return "the gradient of the loss with respect to the logits"
    for number in range(len(traces) - 1, -1, -1):
        trace = traces[number]
        earlier = traces[number - 1].gradient if number else 0.0
        if not (math.isfinite(trace.parameter_gradient) and math.isfinite(earlier)):
            return f"the gradient in the backward pass of {trace.path} ({trace.name})"
    return ""


def _largest(tensors: Sequence[Tensor | None]) -> float:
    """Return the largest absolute value, NaN if there is one; 0 without values."""
    largest = 0.0
    for tensor in tensors:
        if tensor is None or not tensor.numel():
            continue
        value = float(tensor.detach().abs().max())
        if math.isnan(value):
            return math.nan
        largest = max(largest, value)
    return largest

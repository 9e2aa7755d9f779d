"""Check that ``torch.compile`` traces a layer as one graph that serves batches of every size."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from protgraph.testing.fault_location import require_finite
from protgraph.testing.runner import (
    EXACT,
    NotApplicable,
    Runner,
    difference,
    sum_of_outputs,
)
from protgraph.testing.symmetry import rotations
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = ["compiled", "compiled_error"]


def compiled(runner: Runner) -> float:
    """Check that ``torch.compile`` traces forward and backward without graph breaks, once for all sizes of batches.

    Values and gradients of the traced graph are compared with those without ``torch.compile``. The graph is run by
    torch's backend "aot_eager", which generates no code. In it, a Python number such as a slope is a constant:
    by default, torch traces such a layer twice, first with a symbol for the number, then with its value, to the same
    graph. The symbols are traced for the first wiring, without the backward graph, which takes less time; so is every
    wiring in which an expected failure is looked for.
    """
    expects_failure = "compiled" in runner.conformity.expected_failures
    worst = 0.0
    for i, wiring in enumerate(runner.component.small_wirings):
        if wiring.tensors is None:
            raise NotApplicable("it computes with NumPy, before a batch is moved to a device")
        if i == 0 or expects_failure:
            worst = max(worst, compiled_error(runner, wiring, backend="eager"))
        with torch._dynamo.config.patch(specialize_float=True):
            worst = max(worst, compiled_error(runner, wiring, backend="aot_eager"))
    return worst


def compiled_error(runner: Runner, wiring: Wiring, *, backend: str, limit: float = EXACT) -> float:
    """Return the largest relative error of a compiled layer's values and gradients, for two batches."""
    torch._dynamo.reset()
    module = runner.private_module(wiring).eval()
    traced = torch.compile(module, fullgraph=True, dynamic=True, backend=backend)
    assert isinstance(traced, nn.Module)
    first = wiring.regular or wiring.tensors
    assert first is not None
    worst = 0.0
    try:
        for inputs, settings in ((first, {}), (first.moved(rotations()[:3]), {"error_on_recompile": True})):
            expected = _values_and_gradients(module, inputs, runner)
            try:
                with torch._dynamo.config.patch(settings):
                    got = _values_and_gradients(traced, inputs, runner)
            except Exception as e:
                raise runner.failure(
                    f"compiled{wiring.suffix}: {_reason(e)}. If it cannot be compiled, state the "
                    "reason in Conformity(expected_failures={'compiled': …})."
                ) from e
            outputs = wiring.outputs(module)
            require_finite(runner, wiring, expected[0], inputs=inputs, when="before compiling")
            worst = max(worst, difference(got[0], expected[0], outputs), _largest(got[1], expected[1]))
    finally:
        torch._dynamo.reset()
    return runner.at_most(worst, wiring, "compiled", limit=limit)


def _values_and_gradients(
    module: nn.Module, inputs: TensorInputs, runner: Runner
) -> tuple[dict[str, Tensor], list[Tensor]]:
    argument: Any = inputs.argument(runner.device, runner.dtype)
    leaves = [x.requires_grad_() for x in argument.values() if torch.is_tensor(x) and x.is_floating_point()]
    out = module(argument)
    total = sum_of_outputs(out)
    wrt = leaves + [p for p in module.parameters() if p.requires_grad]
    if total is None or not wrt:
        return dict(out), []
    grads = torch.autograd.grad(total, wrt, allow_unused=True)
    values = {name: x.detach() for name, x in out.items()}
    return values, [torch.zeros_like(x) if g is None else g for g, x in zip(grads, wrt, strict=True)]


def _largest(got: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference of gradients, relative to the largest gradient."""
    sizes = [float(x.abs().max()) for x in expected if x.numel()]
    if not sizes or max(sizes) == 0:
        return 0.0
    return max(float((a - b).abs().max()) for a, b in zip(got, expected, strict=True) if b.numel()) / max(sizes)


def _reason(error: Exception) -> str:
    """Return the first line of an error of torch.compile, and the place in the code that it names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    place = next((line for line in lines if line.startswith(("- 0/", "File ", "#  File"))), "")
    return f"{type(error).__name__}: {lines[0]} {place}".strip()

"""Check of gradients against finite differences in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from protgraph.testing.runner import NotApplicable, Runner, weighted_total
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = ["gradients"]

#: Steps of the central difference, relative to the size of the values. The smaller ones avoid kinks, e.g. of ReLU.
_STEPS = (1e-5, 1e-6, 1e-7)
_LIMIT = 1e-6
#: Share of the outputs' size below which a derivative is rounding error.
_FLOOR = 1e-3
#: Factor on the gradient of the output that the gradients of inputs and parameters must have, too.
_LARGE = 1e6
#: Largest distance of gradients in float32 and float64, relative to their length: kinks may lie between both values.
_SINGLE = 0.05


def gradients(runner: Runner) -> float:
    """Check the gradients of inputs and parameters against central differences in float64.

    A difference in the values of float64 also shows a part that is computed in float32, float16 or bfloat16. Two more
    backward passes find gradients that are clipped where they are large, and others in float32 than in float64.
    """
    worst = None
    for wiring in runner.wirings:
        if wiring.tensors is None:
            raise NotApplicable("it computes with NumPy")
        if runner.is_large(wiring):
            raise NotApplicable("its parameters take more than 100 MB; its layers are checked alone")
        error = _largest_error(runner, wiring)
        if error is not None:
            worst = error if worst is None else max(worst, error)
            _require_no_clipping(runner, wiring)
            _require_same_in_float32(runner, wiring)
    if worst is None:
        raise NotApplicable("no output has a gradient")
    return worst


def _largest_error(runner: Runner, wiring: Wiring) -> float | None:
    """Return the largest error of the directional derivatives along each input and along all parameters."""
    module = runner.private_module(wiring, dtype=torch.float64)
    inputs = wiring.tensors
    assert inputs is not None
    parameters = [p for p in module.parameters() if p.requires_grad and p.numel()]
    argument = inputs.argument(runner.device)
    leaves = _leaves(argument)
    with runner.errors_as_failures(f"backward{wiring.suffix}"):
        out = module(argument)
        exact = _exact_gradients(out, [*leaves.values(), *parameters])
    if exact is None:
        return None
    floor = _FLOOR * _size(out)
    errors = {}
    for name, gradient in zip(leaves, exact, strict=False):
        errors[f"gradient of {name!r}"] = _error_along_input(runner, module, inputs, name, gradient, floor=floor)
    if parameters:
        of_parameters = exact[len(leaves) :]
        error = _error_along_parameters(runner, module, inputs, parameters, of_parameters, floor=floor)
        errors["gradient of the parameters"] = error
    return max(runner.at_most(error, wiring, change, limit=_LIMIT) for change, error in errors.items())


def _require_no_clipping(runner: Runner, wiring: Wiring) -> None:
    """Require that a large gradient of the output gives gradients that are larger by the same factor."""
    usual = _all_gradients(runner, wiring, torch.float64)
    large = _all_gradients(runner, wiring, torch.float64, factor=_LARGE)
    large = {name: gradient / _LARGE for name, gradient in large.items()}
    when = f"for an output's gradient of {_LARGE:.0e}"
    _require_equal_gradients(runner, wiring, large, usual, when, limit=_LIMIT)


def _require_same_in_float32(runner: Runner, wiring: Wiring) -> None:
    exact = _all_gradients(runner, wiring, torch.float64)
    single = _all_gradients(runner, wiring, torch.float32)
    _require_equal_gradients(runner, wiring, single, exact, "in float32", limit=_SINGLE)


def _require_equal_gradients(
    runner: Runner,
    wiring: Wiring,
    got: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    when: str,
    *,
    limit: float,
) -> None:
    """Compare gradients by name, relative to their length; those that are rounding errors only count as 0."""
    lengths = {name: float(gradient.norm()) for name, gradient in expected.items()}
    floor = _FLOOR * max(lengths.values(), default=0.0)
    for name, gradient in expected.items():
        distance = float((got[name].double() - gradient).norm())
        error = distance / max(lengths[name], floor, 1e-30)
        runner.at_most(error, wiring, f"the gradient of {name!r} {when}", limit=limit)


def _all_gradients(runner: Runner, wiring: Wiring, dtype: torch.dtype, *, factor: float = 1.0) -> dict[str, Tensor]:
    """Return the gradients of inputs and parameters that are not 0, by name."""
    module = runner.private_module(wiring, dtype=dtype)
    inputs = wiring.tensors
    assert inputs is not None
    argument = inputs.argument(runner.device, dtype)
    sources = {**_leaves(argument), **{n: p for n, p in module.named_parameters() if p.requires_grad and p.numel()}}
    total = _weighted_total(module(argument))
    if total is None or not total.requires_grad:
        return {}
    (factor * total).backward()
    gradients_by_name = {name: x.grad for name, x in sources.items() if x.grad is not None}
    for x in sources.values():
        x.grad = None
    return gradients_by_name


def _exact_gradients(out: Mapping[str, Tensor], wrt: list[Tensor]) -> tuple[Tensor | None, ...] | None:
    """Return the gradients of the weighted sum of the outputs; None if there is nothing to differentiate."""
    total = _weighted_total(out)
    if total is None or not wrt:
        return None
    if not total.requires_grad:
        return (None,) * len(wrt)
    total.backward()  # not autograd.grad, after which hooks that change an accumulated gradient do not run
    exact = tuple(x.grad for x in wrt)
    for x in wrt:  # the parameters are shared with other checks
        x.grad = None
    return exact


def _leaves(argument: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the inputs that are numbers, which collect gradients from now on."""
    numbers = {n: x for n, x in argument.items() if torch.is_tensor(x) and x.is_floating_point() and x.numel()}
    return {name: x.requires_grad_() for name, x in numbers.items()}


def _size(out: Mapping[str, Tensor]) -> float:
    """Return the Euclidean norm of all numbers of the outputs."""
    return math.sqrt(sum(float(x.detach().square().sum()) for x in out.values() if x.is_floating_point()))


def _error_along_input(
    runner: Runner, module: nn.Module, inputs: TensorInputs, name: str, gradient: Tensor | None, *, floor: float
) -> float:
    """Return the error of the derivative along a random change of one input."""
    direction = _direction(inputs.argument(runner.device)[name])

    def value(step: float) -> Tensor:
        argument = inputs.argument(runner.device)
        argument[name] += step * direction
        return _total(module, argument)

    return _smallest_error(value, [(gradient, direction)], floor=floor)


def _error_along_parameters(
    runner: Runner,
    module: nn.Module,
    inputs: TensorInputs,
    parameters: list[nn.Parameter],
    gradients_of_parameters: tuple[Tensor | None, ...],
    *,
    floor: float,
) -> float:
    """Return the error of the derivative along a random change of all parameters at once."""
    directions = [_direction(p.detach()) for p in parameters]

    def value(step: float) -> Tensor:
        with _shifted(parameters, directions, step):
            return _total(module, inputs.argument(runner.device))

    return _smallest_error(value, list(zip(gradients_of_parameters, directions, strict=True)), floor=floor)


@contextmanager
def _shifted(parameters: list[nn.Parameter], directions: list[Tensor], step: float) -> Iterator[None]:
    """Change parameters in place within the context."""
    before = [p.detach().clone() for p in parameters]
    for p, direction in zip(parameters, directions, strict=True):
        p.data.add_(step * direction)
    try:
        yield
    finally:
        for p, values in zip(parameters, before, strict=True):
            p.data.copy_(values)


def _direction(x: Tensor) -> Tensor:
    """Return a random change of the size of the values; none where a value is 0 or not finite, as in a one-hot code."""
    generator = torch.Generator().manual_seed(31)
    noise = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.device)
    is_changed = x.isfinite() & (x != 0)
    size = float(x[is_changed].square().mean().sqrt()) if bool(is_changed.any()) else 0.0
    return noise * size * is_changed


def _total(module: nn.Module, argument: Any) -> Tensor:
    """Return the weighted sum of the outputs whose gradient was computed."""
    total = _weighted_total(module(argument))
    assert total is not None
    return total.detach()


def _weighted_total(out: Mapping[str, Tensor]) -> Tensor | None:
    """Return the sum of the numbers in all outputs, each with its own weight; None if there are none.

    Unlike the sum for other checks, it has outputs without a gradient: they may lack one that they should have.
    """
    terms = [weighted_total(x) for x in out.values() if x.is_floating_point() and x.numel()]
    return sum(terms[1:], start=terms[0]) if terms else None


def _smallest_error(
    value: Callable[[float], Tensor], terms: list[tuple[Tensor | None, Tensor]], *, floor: float
) -> float:
    """Return the error of ``Σ gradient · direction``, relative to the sum of the terms' sizes, for the best step."""
    products = [gradient * direction for gradient, direction in terms if gradient is not None]
    exact = sum(float(x.sum()) for x in products)
    size = sum(float(x.abs().sum()) for x in products)
    errors = []
    for step in _STEPS:
        difference = float(value(step) - value(-step)) / (2 * step)
        errors.append(abs(difference - exact) / max(size, abs(difference), floor))
        if errors[-1] <= _LIMIT:
            break
    return min(errors)

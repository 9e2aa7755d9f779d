"""Checks of training and saving: gradients, degenerate proteins, state, random numbers and single precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from protgraph.testing.fault_location import require_finite
from protgraph.testing.runner import (
    NotApplicable,
    Runner,
    difference,
    release_modules,
    sum_of_outputs,
)
from protgraph.testing.symmetry import rotations
from protgraph.testing.wiring import Wiring

__all__ = ["degenerate", "every_parameter_learns", "float32", "seed", "state_dict"]

#: A gradient this much smaller than the largest one is rounding error of float64.
_NO_GRADIENT = 1e-13
#: Relative difference of channels that are equal but for rounding.
_EQUAL = 1e-9
#: Numbers that can look random by accident, e.g. a few slopes.
_FEW = 6


def every_parameter_learns(runner: Runner) -> None:
    """Check that every parameter is trained and gets a gradient, and that no two channels start equal."""
    has_parameters = False
    for wiring in runner.wirings:
        module = runner.private_module(wiring)
        if runner.component.kind != "model":  # which may freeze published weights by an option of a layer
            _require_no_frozen(runner, wiring, module)
            _require_different_channels(runner, wiring)
        parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not parameters:
            continue
        has_parameters = True
        with runner.errors_as_failures(f"backward{wiring.suffix}"), _largest_gradients(module) as gradients:
            _backward(module(wiring.inputs.argument(runner.device, runner.dtype)))
        sizes = {name: gradients.get(name, 0.0) for name, p in parameters.items() if p.numel()}
        _require_gradients(runner, wiring, sizes)
    if not has_parameters:
        raise NotApplicable("it has no parameters")


def _require_gradients(runner: Runner, wiring: Wiring, sizes: Mapping[str, float]) -> None:
    """Raise if the largest gradient of a parameter is not finite, or 0."""
    for name, size in sizes.items():
        if not math.isfinite(size):
            raise runner.failure(f"the gradient of {name!r} is not finite{wiring.suffix}")
    least = _NO_GRADIENT * max(sizes.values())
    for name, size in sizes.items():
        if size <= least:
            raise runner.failure(f"parameter {name!r} gets no gradient{wiring.suffix}")


def _require_no_frozen(runner: Runner, wiring: Wiring, module: nn.Module) -> None:
    for name, p in module.named_parameters():
        if not p.requires_grad:
            raise runner.failure(
                f"parameter {name!r} is frozen{wiring.suffix}. Use a buffer for numbers that are not trained; "
                "'train --freeze' is for users."
            )


def _require_different_channels(runner: Runner, wiring: Wiring) -> None:
    """Require that the scalar channels of an output are not all equal with the initial weights; they would stay so."""
    module = wiring.sample().to(runner.device, runner.dtype).eval()
    if not any(p.requires_grad for p in module.parameters()):
        return
    out = wiring.run(module, device=runner.device, dtype=runner.dtype)
    for name, spec in wiring.outputs(module).items():
        if not spec.is_scalar or not out[name].is_floating_point() or out[name].dim() < 2 or out[name].size(-1) < 2:
            continue
        values = out[name].flatten(0, -2)  # (rows, channels)
        largest = values.abs().max()
        if len(values) > 1 and largest > 0 and (values - values[:, :1]).abs().max() < _EQUAL * largest:
            raise runner.failure(
                f"all channels of {name!r} are equal with its initial weights{wiring.suffix}, so that their gradients "
                "are equal, too. Draw weights at random."
            )


def degenerate(runner: Runner) -> None:
    """Check values and gradients: one residue, no edges, coincident, collinear or missing atoms, no chain name."""
    for wiring in runner.wirings:
        for case, inputs in wiring.make_degenerate().items():
            module = runner.private_module(wiring)
            with runner.errors_as_failures(f"on {case}{wiring.suffix}"), _largest_gradients(module) as gradients:
                argument = inputs.argument(runner.device, runner.dtype)
                leaves = dict(_leaves(argument))
                out = module(argument)
                _backward(out)
            require_finite(runner, wiring, out, inputs=inputs, when=f"on {case}")
            for name, x in leaves.items():
                if x.grad is not None and x.numel():
                    gradients[name] = float(x.grad.abs().max())
            infinite = [name for name, size in gradients.items() if not size < float("inf")]
            if infinite:
                raise runner.failure(f"the gradient of {infinite[0]!r} is not finite on {case}{wiring.suffix}")


def _leaves(argument: Any) -> Iterator[tuple[str, Tensor]]:
    """Make floating inputs collect gradients."""
    for name, x in argument.items() if hasattr(argument, "items") else ():
        if torch.is_tensor(x) and x.is_floating_point():
            yield name, x.requires_grad_()


@contextmanager
def _largest_gradients(module: nn.Module) -> Iterator[dict[str, float]]:
    """Record the largest absolute gradient of each parameter within the context; NaN if one is NaN.

    Each gradient is freed as soon as it is recorded: those of a large model take as much memory as the model.
    """
    sizes: dict[str, float] = {}

    def record(name: str, p: Tensor) -> None:
        if p.grad is not None and p.numel():
            sizes[name] = float(p.grad.abs().max())
        p.grad = None

    trained = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
    hooks = [p.register_post_accumulate_grad_hook(lambda p, n=n: record(n, p)) for n, p in trained]
    try:
        yield sizes
    finally:
        for hook in hooks:
            hook.remove()


def _backward(out: dict[str, Tensor]) -> None:
    total = sum_of_outputs(out)
    if total is not None:
        total.backward()


def state_dict(runner: Runner) -> None:
    """Check that ``state_dict`` saves everything that the output depends on; in float32 for a large module."""
    for wiring in runner.wirings:
        fast_runner = replace(runner, dtype=torch.float32) if runner.is_large(wiring) else runner
        expected = fast_runner.run(wiring)
        other = wiring.build(seed=1, dtype=fast_runner.dtype).to(fast_runner.device)
        _run(fast_runner, wiring, other)  # values that are cached in the forward pass belong to the old weights
        with runner.errors_as_failures("state_dict"):
            other.load_state_dict(fast_runner.module(wiring).state_dict())
        error = difference(_run(fast_runner, wiring, other), expected, wiring.outputs(other))
        # On a GPU the kernel of a matrix product depends on the addresses of the weights.
        limit = 1e-12 if fast_runner.device == "cpu" else fast_runner.limit(wiring)
        fast_runner.at_most(error, wiring, "loaded from its state_dict", limit=limit)
        if fast_runner is not runner:
            release_modules()


def seed(runner: Runner) -> None:
    """Check that a seed gives the same weights and output, and that two seeds give different weights, also later on."""
    for wiring in runner.wirings:
        _require_other_weights(runner, wiring)
        if runner.is_large(wiring):
            release_modules()
        module = wiring.build(seed=7, dtype=runner.dtype).to(runner.device)
        outputs = wiring.outputs(module)
        first, second = (_run_with_seed(runner, wiring, module, number) for number in (0, 1))
        del module
        rebuilt = wiring.build(seed=7, dtype=runner.dtype).to(runner.device)
        third = _run_with_seed(runner, wiring, rebuilt, 2)
        for out, what in ((second, "the same call again"), (third, "the same seed again")):
            error = difference(out, first, outputs)
            runner.at_most(error, wiring, what, limit=1e-12)


def _require_other_weights(runner: Runner, wiring: Wiring) -> None:
    """Compare the weights of two seeds, and the random numbers that the next layer would get."""
    weights, later = [], []
    for number in (0, 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(number)
            module = wiring.create({})
            later.append(torch.rand(4))
        weights.append({n: p.detach() for n, p in module.named_parameters() if p.requires_grad})
    if torch.equal(*later):
        raise runner.failure(
            f"it seeds torch in __init__{wiring.suffix}: later layers get the same weights for every seed. Use a "
            "torch.Generator, or no seed."
        )
    if runner.conformity.offline or runner.component.is_model:  # weights of a checkpoint; each layer is checked alone
        return
    first, second = weights
    fixed = [n for n, p in first.items() if torch.equal(p, second[n]) and _looks_random(p)]
    if fixed:
        raise runner.failure(
            f"parameter {fixed[0]!r} has the same random numbers for every seed{wiring.suffix}. Draw them from torch's "
            "global generator, which training seeds."
        )


def _looks_random(p: Tensor) -> bool:
    """Return False for constants and for ascending or descending numbers, e.g. centers of basis functions."""
    steps = p.flatten().double().diff()
    return p.numel() >= _FEW and bool((steps > 0).any()) and bool((steps < 0).any()) and len(p.unique()) > _FEW


def _run_with_seed(runner: Runner, wiring: Wiring, module: nn.Module, number: int) -> dict[str, Tensor]:
    with torch.random.fork_rng(devices=[runner.device] if runner.device.startswith("cuda") else []):
        torch.manual_seed(number)
        return _run(runner, wiring, module)


def _run(runner: Runner, wiring: Wiring, module: nn.Module) -> dict[str, Tensor]:
    return wiring.run(module, device=runner.device, dtype=runner.dtype)


def float32(runner: Runner) -> float:
    """Check that float32, in place and moved by 100 to 300 Å, stays within the tolerance of the result in float64."""
    worst = 0.0
    single, transforms = replace(runner, dtype=torch.float32), rotations()[:8]
    for wiring in single.wirings:
        if not single.component.is_model:  # errors of all layers add up
            exact = single.reference(wiring)
            error = difference(single.run(wiring), exact, wiring.outputs(single.module(wiring)))
            worst = max(worst, single.at_most(error, wiring, "float32 against float64"))
        error = single.transform_error(wiring, transforms) or 0.0
        worst = max(worst, single.at_most(error, wiring, "float32"))
    return worst

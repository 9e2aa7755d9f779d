"""Checks of copies: pickling, instances with parameters in common, and automatic mixed precision."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from protgraph.testing.fault_location import require_finite
from protgraph.testing.runner import NotApplicable, Runner, difference, sum_of_outputs
from protgraph.testing.wiring import Wiring

__all__ = ["autocast", "copies"]

#: bfloat16 has 8 bits of precision; errors add up over the steps of a layer.
_COARSE = 0.5


def copies(runner: Runner) -> None:
    """Check that it can be pickled and copied, as worker processes need, and that instances share no parameter."""
    for wiring in runner.wirings:
        if runner.is_large(wiring):
            raise NotApplicable("its parameters take more than 100 MB; its layers are checked alone")
        module = runner.module(wiring)
        if "<locals>" in _class_of(module).__qualname__:
            raise NotApplicable("its class is defined in a function, which pickle does not find")
        expected = runner.run(wiring)
        methods: dict[str, Callable[[nn.Module], nn.Module]] = {"pickled": _pickled, "copied": copy.deepcopy}
        for name, method in methods.items():
            with runner.errors_as_failures(f"it cannot be {name}"):
                other = method(module)
            got = wiring.run(other, device=runner.device, dtype=runner.dtype)
            error = difference(got, expected, wiring.outputs(module))
            runner.at_most(error, wiring, f"a {name} instance", limit=1e-12)
        _require_own_parameters(runner, wiring)


def _class_of(module: nn.Module) -> type:
    return type(getattr(module, "featurizer", module))


def _pickled(module: nn.Module) -> nn.Module:
    # Reads what was just written in this process.
    return pickle.loads(pickle.dumps(module))


def _require_own_parameters(runner: Runner, wiring: Wiring) -> None:
    first, second = wiring.sample(), wiring.sample()
    of_first = {p.data_ptr() for p in first.parameters() if p.numel()}
    shared = [n for n, p in second.named_parameters() if p.numel() and p.data_ptr() in of_first]
    if shared:
        raise runner.failure(f"parameter {shared[0]!r} is shared by two instances{wiring.suffix}")


def autocast(runner: Runner) -> float:
    """Check that it runs forward and backward in automatic mixed precision with bfloat16."""
    worst = 0.0
    for wiring in runner.wirings:
        module = runner.private_module(wiring, dtype=torch.float32)
        expected = replace(runner, dtype=torch.float32).run(wiring)
        with runner.errors_as_failures(f"{_WHEN}{wiring.suffix}"):
            out = _autocast_step(runner, wiring, module)
        require_finite(replace(runner, dtype=torch.float32), wiring, out, when=_WHEN)
        for name, x in out.items():
            if x.is_floating_point() and x.numel():
                size = expected[name].norm().clamp(min=1e-30)
                error = float((x.detach().cpu().double() - expected[name]).norm() / size)
                worst = max(worst, runner.at_most(error, wiring, f"{name!r} {_WHEN}", limit=_COARSE))
    return worst


_WHEN = "under torch.autocast with bfloat16"


def _autocast_step(runner: Runner, wiring: Wiring, module: nn.Module) -> dict[str, Tensor]:
    """Return the outputs of a forward pass after a backward pass."""
    argument = wiring.inputs.argument(runner.device, torch.float32)
    with torch.autocast(runner.device.partition(":")[0], torch.bfloat16):
        out = module(argument)
    total = sum_of_outputs(out)
    parameters = [p for p in module.parameters() if p.requires_grad]
    if total is not None and parameters:
        torch.autograd.grad(total, parameters, allow_unused=True)
    return out

"""Checks of copies: pickling, instances with parameters in common, and automatic mixed precision."""

from __future__ import annotations

import atexit
import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from protgraph.nn.pickled import run_pickled_module
from protgraph.testing.fault_location import require_finite
from protgraph.testing.runner import NotApplicable, Runner, difference, sum_of_outputs
from protgraph.testing.wiring import Wiring
from protgraph.worker_process import WorkerDied, WorkerProcess, WorkerRaised

__all__ = ["autocast", "copies", "other_process"]

#: bfloat16 has 8 bits of precision; errors add up over the steps of a layer.
_COARSE = 0.5
_NO_HOME = "its class is in no module that another process can import"
#: Another process has one thread, which changes the order of sums.
_OTHER_PROCESS = 1e-9
_PATIENCE = 60.0  # seconds, with the imports of the process


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


def other_process(runner: Runner) -> None:
    """Check that another process, in which Python's hashes differ and no layer sees the suite, computes the same."""
    for wiring in runner.wirings:
        if runner.is_large(wiring):
            raise NotApplicable("its parameters take more than 100 MB; its layers are checked alone")
        module = runner.module(wiring, device="cpu")
        home = _class_of(module)
        if home.__module__ == "__main__" or "<locals>" in home.__qualname__:
            raise NotApplicable(_NO_HOME)
        argument = wiring.inputs.argument("cpu", runner.dtype)
        with runner.errors_as_failures(f"it cannot be sent to another process{wiring.suffix}"):
            worker = _worker(runner.component.kind == "featurizer")
            answer = worker.run(pickle.dumps((module, argument)), time_limit=_PATIENCE)
            if isinstance(answer, WorkerRaised):
                if isinstance(answer.error, ModuleNotFoundError) and answer.error.name == home.__module__:
                    raise NotApplicable(_NO_HOME)
                raise answer.error
        if isinstance(answer, WorkerDied):
            raise runner.failure(f"another process that ran it {answer.reason}{wiring.suffix}")
        expected = wiring.run(module, dtype=runner.dtype)
        error = difference(answer, expected, wiring.outputs(module))
        limit = max(_OTHER_PROCESS, 0.0 if runner.dtype == torch.float64 else runner.conformity.tolerance)
        runner.at_most(error, wiring, "another process", limit=limit)


@cache
def _worker(_imports_suite: bool) -> WorkerProcess:
    """Return the process that computes the outputs of all components; it ends with this one.

    Featurizers are wrapped in modules of the suite, and have a process of their own.
    """
    worker = WorkerProcess(run_pickled_module)
    atexit.register(worker.close)
    return worker


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

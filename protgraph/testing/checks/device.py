"""Check that everything runs on one device, on torch's ``meta`` device, without any GPU."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext

import torch
from torch import nn

from protgraph.errors import ComponentError
from protgraph.testing.device_guard import DeviceGuard, HostCopyGuard, MixedDevicesError, fault_of, source_line
from protgraph.testing.runner import NotApplicable, Runner
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = ["device"]

_DEVICE, _DTYPE = "meta", torch.float32


def device(runner: Runner) -> None:
    """Check that forward and backward stay on one device: no value is read on the host, no tensor is on the CPU.

    Numbers that a batch counts while it is collated are on the host by declaration, as plain Python attributes:
    ``Proteins.sizes``, ``Edges.degree`` and ``Edges.max_degree``. Indices that are computed from them on the host go
    to the device with ``non_blocking=True``. Constants may be moved to the device once, in the first call.

    Coordinates of a model require no gradients, as in training: with them, the model computes features of the structure
    stage again, with neighbors and chain breaks found on the host. Its layers and tensor featurizers are checked alone
    with gradients of all inputs.
    """
    for wiring in runner.wirings:
        if wiring.tensors is None:
            raise NotApplicable("it computes with NumPy, before a batch is moved to a device")
        module = runner.private_module(wiring, dtype=_DTYPE).to(_DEVICE)
        for inputs in (wiring.tensors.without_degree(), *([] if wiring.regular is None else [wiring.regular])):
            for is_training in (True, False):
                _run_guarded(runner, wiring, module.train(is_training), inputs)


def _run_guarded(runner: Runner, wiring: Wiring, module: nn.Module, inputs: TensorInputs) -> None:
    mode = "training" if module.training else "evaluation"
    try:
        try:
            out = _guarded(module, inputs, allow_copies=False)
        except (MixedDevicesError, ComponentError) as e:
            if not isinstance(fault_of(e), MixedDevicesError):
                raise
            # permitted in a first call: constants are moved to the device
            _guarded(module, inputs, allow_copies=True)
            out = _guarded(module, inputs, allow_copies=False)
    except Exception as error:
        fault = fault_of(error)
        text = (str(fault).splitlines() or ["no message"])[0].partition(". ")[0]
        problem = f"{source_line(fault)}: {type(fault).__name__}: {text}"
        raise runner.failure(f"on device 'meta', in {mode}: {problem}") from error
    on_cpu = sorted(name for name, x in out.items() if x.device.type != _DEVICE)
    if on_cpu:
        raise runner.failure(f"output {on_cpu[0]!r} is on the CPU{wiring.suffix}")


def _guarded(module: nn.Module, inputs: TensorInputs, *, allow_copies: bool) -> dict[str, torch.Tensor]:
    argument = inputs.argument(_DEVICE, _DTYPE)
    constant = ("pos", "backbone") if inputs.is_batch else ()
    with DeviceGuard(allow_copies=allow_copies), nullcontext() if allow_copies else HostCopyGuard():
        return _forward_backward(module, argument, constant)


def _forward_backward(module: nn.Module, argument: object, constant: Collection[str]) -> dict[str, torch.Tensor]:
    """Run forward, with gradients in training only, and backward through all that has one; not of constant inputs."""
    with torch.set_grad_enabled(module.training):
        if module.training and hasattr(argument, "items"):
            for name, x in argument.items():
                if torch.is_tensor(x) and x.is_floating_point() and name not in constant:
                    x.requires_grad_()
        out = module(argument)
        terms = [x.sum() for x in out.values() if x.requires_grad]
        if terms:
            sum(terms[1:], start=terms[0]).backward()
    return out

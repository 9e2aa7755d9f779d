"""Check that everything runs on one device, on torch's ``meta`` device, without any GPU.

Tensors on ``meta`` have shapes and types but no values, so that reading a value (``.item()``, ``bool(x)``,
``nonzero``, ``.cpu()``) raises in torch itself. Torch is silent about two other faults, which :class:`DeviceGuard`
reports: operations that mix devices (``matmul``, ``embedding`` and ``einsum`` do not check on ``meta``), and blocking
copies of host data.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protgraph.errors import ComponentError
from protgraph.testing.runner import NotApplicable, Runner
from protgraph.testing.tensor_inputs import TensorInputs
from protgraph.testing.wiring import Wiring

__all__ = ["DeviceGuard", "HostCopyGuard", "MixedDevicesError", "device"]

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
            if not isinstance(_fault_of(e), MixedDevicesError):
                raise
            # permitted in a first call: constants are moved to the device
            _guarded(module, inputs, allow_copies=True)
            out = _guarded(module, inputs, allow_copies=False)
    except Exception as error:
        fault = _fault_of(error)
        text = (str(fault).splitlines() or ["no message"])[0].partition(". ")[0]
        problem = f"{_source_line(fault)}: {type(fault).__name__}: {text}"
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


# --- guards: torch modes that raise where a GPU would wait for the host ----------------------------------------------


_FROM_HOST_DATA = (torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor)


class MixedDevicesError(RuntimeError):
    """An operation reads tensors on the host and on the device."""


class DeviceGuard(TorchDispatchMode):
    """Raise :class:`MixedDevicesError` where an operation mixes devices; single numbers on the CPU are allowed.

    ``allow_copies``: allow blocking copies from the CPU, as of constants that a first call moves to the device.
    """

    def __init__(self, *, allow_copies: bool) -> None:
        super().__init__()
        self.allow_copies = allow_copies

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs or {})
        inputs = _tensors_of((args, kwargs))
        if _mix_devices(inputs):
            raise MixedDevicesError(f"{func} reads a tensor on the CPU")
        out = func(*args, **kwargs)
        is_allowed = self.allow_copies or kwargs.get("non_blocking")
        if inputs and not is_allowed:
            on_device = [x for x in _tensors_of(out) if x.device.type != "cpu"]
            if on_device and all(x.device.type == "cpu" for x in inputs):
                raise MixedDevicesError("a tensor is copied from the CPU to the device in every call")
        return out


def _mix_devices(tensors: list[Tensor]) -> bool:
    """Return True if tensors are on several devices; single numbers may be on any."""
    return len({x.device for x in tensors if x.dim()}) > 1


def _tensors_of(values: object) -> list[Tensor]:
    return [x for x in tree_leaves(values) if isinstance(x, Tensor)]


class HostCopyGuard(TorchFunctionMode):
    """Raise :class:`MixedDevicesError` where Python numbers become a tensor on the device: a blocking copy."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in _FROM_HOST_DATA and isinstance(out, Tensor) and out.device.type != "cpu":
            data = args[1 if func is Tensor.new_tensor else 0]
            if not isinstance(data, Tensor) or data.device.type == "cpu":
                raise MixedDevicesError(f"{func.__name__}() copies numbers from the host to the device in every call")
        return out


def _fault_of(error: BaseException) -> BaseException:
    """Return the error that a component of a model raised, or the error itself."""
    return error.__cause__ if isinstance(error, ComponentError) and error.__cause__ is not None else error


def _source_line(error: BaseException) -> str:
    """Return ``file.py:12 `code```, the innermost frame outside torch and the guards."""
    torch_folder = str(Path(torch.__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        is_guard = frame.filename == __file__ and frame.name in ("__torch_dispatch__", "__torch_function__")
        if not frame.filename.startswith((torch_folder, "<")) and not is_guard:
            return f"{Path(frame.filename).name}:{frame.lineno} `{frame.line}`"
    return "in torch"

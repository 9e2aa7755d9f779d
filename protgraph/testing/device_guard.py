"""Run on torch's ``meta`` device and raise where a GPU would wait for the host or find a tensor on the CPU.

Tensors on ``meta`` have shapes and types but no values, so that reading a value (``.item()``, ``bool(x)``,
``nonzero``, ``.cpu()``) raises in torch itself. Torch is silent about two other faults, which :class:`DeviceGuard`
reports: operations that mix devices (``matmul``, ``embedding`` and ``einsum`` do not check on ``meta``), and blocking
copies of host data.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protgraph.errors import ComponentError

__all__ = ["DeviceGuard", "HostCopyGuard", "MixedDevicesError", "fault_of", "source_line"]

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


def fault_of(error: BaseException) -> BaseException:
    """Return the error that a component of a model raised, or the error itself."""
    return error.__cause__ if isinstance(error, ComponentError) and error.__cause__ is not None else error


def source_line(error: BaseException) -> str:
    """Return ``file.py:12 `code```, the innermost frame outside torch and this module."""
    torch_folder = str(Path(torch.__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((torch_folder, "<")) and frame.filename != __file__:
            return f"{Path(frame.filename).name}:{frame.lineno} `{frame.line}`"
    return "in torch"

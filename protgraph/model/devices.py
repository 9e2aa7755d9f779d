"""Devices that models run on, and compilation of their layers with ``torch.compile``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from protgraph.errors import OptionError, suggest

if TYPE_CHECKING:
    from protgraph.model.build import ProteinModel

__all__ = ["compile_layers", "find_device", "uncompile_layers", "uncompiled_layers"]


def find_device(name: str) -> torch.device:
    """Return the device of a name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as e:
        hint = suggest(name, ("auto", "cpu", "cuda"))
        raise OptionError(f"Unknown device: {name!r}.{hint} Allowed: 'auto', 'cpu', 'cuda', 'cuda:1'.") from e
    count = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        raise OptionError(f"Device {name!r} does not exist: {count} CUDA devices found. Use 'auto' or 'cpu'.")
    if device.type not in ("cpu", "cuda"):
        raise OptionError(f"Device {name!r} is not supported. Allowed: 'auto', 'cpu', 'cuda', 'cuda:1'.")
    return device


def compile_layers(model: ProteinModel, *, backend: str = "inductor") -> None:
    """Compile each layer of a model in place, with dynamic shapes; parameters keep their names.

    A layer whose ``conformity`` expects the check "compiled" to fail is left as it is (:func:`uncompiled_layers`). Each
    layer is one graph without breaks, so one that calls code which cannot be traced raises an error.

    The first batch is slow: forward and backward of each layer are compiled, in training and in evaluation.

    ``backend``: of ``torch.compile``.
    """
    left = {place for place, _ in _exceptions(model)}
    for place, layer in enumerate(model.layers):
        if place not in left:
            layer.compile(fullgraph=True, dynamic=True, backend=backend)


def uncompile_layers(model: ProteinModel) -> None:
    """Undo :func:`compile_layers`."""
    for layer in model.layers:
        layer._compiled_call_impl = None
    torch.compiler.reset()


def uncompiled_layers(model: ProteinModel) -> list[str]:
    """Return the layers that :func:`compile_layers` leaves as they are, each with the reason."""
    first = {id(layer): w for w, layer in reversed(model.steps)}
    wirings = [(first[id(model.layers[number])], reason) for number, reason in _exceptions(model)]
    return [f"{w.path} ({w.component.name}): {reason}" for w, reason in wirings]


def _exceptions(model: ProteinModel) -> list[tuple[int, str]]:
    expected = [getattr(layer, "conformity", None) for layer in model.layers]
    reasons = [None if one is None else one.expected_failures.get("compiled") for one in expected]
    return [(place, reason) for place, reason in enumerate(reasons) if reason is not None]

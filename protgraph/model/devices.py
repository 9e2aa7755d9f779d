"""Devices that models run on."""

from __future__ import annotations

import torch

from protgraph.errors import OptionError, suggest

__all__ = ["find_device"]


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

"""Peak memory of one part of the work of a process."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

__all__ = ["peak_memory", "reset_peak_memory"]


def reset_peak_memory(device: torch.device) -> None:
    """Start a new measurement. Without Linux's /proc, CPU peaks count from the start of the process."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        # proc(5): "5" resets the peak of the resident set to its present size
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory(device: torch.device) -> float:
    """Return the largest memory since :func:`reset_peak_memory`, MiB.

    On a GPU the memory of tensors; on the CPU the resident set of the whole process with its libraries.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) / 2**10
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes on macOS, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

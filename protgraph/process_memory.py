"""Measure the peak memory of this process, and return freed memory to the operating system."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["mmap_large_blocks", "peak_memory", "release_component_dictionary", "release_memory", "reset_peak_memory"]

_M_MMAP_THRESHOLD, _MEGABYTE = -3, 1_000_000  # of mallopt(3)


def reset_peak_memory(device: torch.device) -> None:
    """Start a new measurement. Without Linux's /proc, CPU peaks count from the start of the process."""
    if device.type == "cuda":
        import torch

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
        import torch

        return torch.cuda.max_memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) / 2**10
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset / 2**20
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes on macOS, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def mmap_large_blocks() -> None:
    """Let glibc map blocks above 1 MB, so that they are returned to the system as soon as they are freed.

    By default glibc keeps freed tensors of up to 32 MB in its heap, where they are reused only by others that fit.
    Without effect on other C libraries.
    """
    if (mallopt := _libc_function("mallopt")) is not None:
        mallopt(_M_MMAP_THRESHOLD, _MEGABYTE)


def release_memory() -> None:
    """Collect garbage and return freed memory to the system (glibc only)."""
    gc.collect()
    if (malloc_trim := _libc_function("malloc_trim")) is not None:
        malloc_trim(0)


def release_component_dictionary() -> None:
    """Free biotite's copy of the Chemical Component Dictionary, 250 MB; it is read again if it is needed."""
    info = sys.modules.get("biotite.structure.info")
    for name in ("get_ccd", "get_from_ccd"):
        cached = getattr(info, name, None)
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


def _libc_function(name: str) -> ctypes._NamedFuncPointer | None:
    """Return a function of the C library; None if it has none of this name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None

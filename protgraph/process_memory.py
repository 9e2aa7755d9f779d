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

__all__ = [
    "available_memory",
    "memory_in_use",
    "mmap_large_blocks",
    "peak_memory",
    "release_component_dictionary",
    "release_memory",
    "reset_peak_memory",
]

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


def memory_in_use(device: torch.device) -> float:
    """Return the present memory, MiB, counted as in :func:`peak_memory`; its peak on a CPU without Linux's /proc."""
    if device.type == "cuda":
        import torch

        return torch.cuda.memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmRSS:\s+(\d+) kB", status.read_text())):
        return int(found[1]) / 2**10
    return peak_memory(device)


def available_memory(device: torch.device) -> float:
    """Return the memory that this process can have in total, MiB: what it uses now, and what is free.

    On the CPU the free memory is bounded by the limit of the control group (Linux), e.g. of a container or a batch job.
    """
    if device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(device)
        return (free + torch.cuda.memory_reserved(device)) / 2**20
    used = memory_in_use(device)
    meminfo = Path("/proc/meminfo")
    if meminfo.exists() and (found := re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())):
        return used + min(int(found[1]) / 2**10, *_control_group_free())
    if sys.platform == "win32":
        import psutil

        return used + psutil.virtual_memory().available / 2**20
    import os

    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20


def _control_group_free() -> list[float]:
    """Return the free memory under the limits of the control groups of this process, MiB; infinity without one."""
    free = [float("inf")]
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            texts = [Path(path).read_text().strip() for path in (limit, used)]
        except OSError:
            continue
        if texts[0] != "max":
            free.append((int(texts[0]) - int(texts[1])) / 2**20)
    return free


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
        clear = getattr(getattr(info, name, None), "cache_clear", None)
        if clear is not None:
            clear()


def _libc_function(name: str) -> ctypes._NamedFuncPointer | None:
    """Return a function of the C library; None if it has none of this name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None

"""Peak memory of this process, and the return of freed memory to the operating system."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["process_peak_memory", "release_component_dictionary", "return_freed_memory"]

_M_MMAP_THRESHOLD, _MEGABYTE = -3, 1_000_000  # of mallopt(3)


def return_freed_memory() -> bool:
    """Let glibc return every freed block above 1 MB to the system at once; return False on other C libraries.

    By default glibc keeps freed tensors of up to 32 MB in its heap, where they are reused only by others that fit.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_M_MMAP_THRESHOLD, _MEGABYTE) == 1


def release_component_dictionary() -> None:
    """Free biotite's copy of the Chemical Component Dictionary, 250 MB; it is read again if it is needed."""
    info = sys.modules.get("biotite.structure.info")
    for name in ("get_ccd", "get_from_ccd"):
        cached = getattr(info, name, None)
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


def process_peak_memory() -> float | None:
    """Return the largest resident memory of this process so far in GB; None on Windows."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kB on Linux
    return getrusage(RUSAGE_SELF).ru_maxrss * unit / 1e9

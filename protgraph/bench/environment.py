"""Software versions, machine and plugins of a benchmark run."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from protgraph import registry

__all__ = ["environment"]

_PACKAGES = ("protgraph-pyg", "torch", "torch_geometric", "e3nn", "lightning", "biotite", "numpy")


def environment() -> dict[str, Any]:
    """Return versions of the libraries, the machine, and every distribution with components; imports none of them."""
    sources = {
        kind.entry(name).source for kind in registry.registries.values() for name in kind.names()
    }  # "distribution version" or "session"
    return {
        "python": sys.version.split()[0],
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "components_from": sorted(sources),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads_per_run": 1,
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return match[1].strip() if match else platform.processor() or platform.machine()

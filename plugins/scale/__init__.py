"""Sets that are larger than one machine: graph stores at remote addresses, and featurization on a Ray cluster."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

_HOME = {
    "RemoteFiles": "protgraph_plugins.scale.remote_store",
    "run_with_ray": "protgraph_plugins.scale.ray_engine",
}

__all__ = ["RemoteFiles", "run_with_ray"]
__getattr__, __dir__ = lazy_names(__name__, _HOME)

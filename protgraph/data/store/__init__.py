"""Graph stores: many proteins in memory-mapped shards, and batches of them.

Names are imported on first use (PEP 562): cards and lists of datasets need neither torch nor biotite.
"""

from __future__ import annotations

from importlib import import_module

# Public name → module.
_HOME = {
    "GraphStore": "protgraph.data.store.graph_store",
    "ProteinBatches": "protgraph.data.store.loader",
    "ShardEntry": "protgraph.data.store.store_description",
    "is_store": "protgraph.data.store.open_store",
    "open_store": "protgraph.data.store.open_store",
    "pack": "protgraph.data.store.loader",
    "write_store": "protgraph.data.store.store_writer",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # later accesses skip this function
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

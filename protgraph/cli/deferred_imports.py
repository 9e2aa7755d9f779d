"""Defer imports of parts of libraries that predictions do not use, until they are used.

``import torch_geometric`` imports its datasets, with pandas and transformers where these are installed, and torch's
compiler: 1.6 of 4.5 s of ``protgraph predict`` (torch_geometric 2.8, torch 2.13, 2026-11-23).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

__all__ = ["DEFERRED", "defer_imports"]

#: Modules that are loaded at the first access to one of their attributes.
DEFERRED = frozenset({"torch._dynamo", "torch_geometric.datasets"})


class _DeferringFinder(MetaPathFinder):
    """Find deferred modules, and give them a loader that waits for the first access."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in DEFERRED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer_imports() -> None:
    """Defer the imports of :data:`DEFERRED` in this process. For commands; a library leaves imports as they are."""
    if not any(isinstance(finder, _DeferringFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _DeferringFinder())

"""Import libraries faster: parts that commands and worker processes do not use are imported when they are used.

``import torch`` imports its compiler, its exporter and the shapes of operators on the device "meta", ``import
torch_geometric`` its datasets, with pandas and transformers where these are installed, and ``import biotite``
networkx: half of the time of ``protgraph predict`` (torch 2.13 and 2.14, 2026-11-26). Garbage collection while a
library is imported visits its growing number of objects, all in use, again and again: 0.2 s.
"""

# Not PyG's layers and transforms, another 0.15 s: they import each other in circles, in an order that is not kept then.
# Not importlib.util.LazyLoader: inspect.getmodule, called for each operator, loads all of them (Python 3.11).

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["DEFERRED", "TORCH_VERSIONS", "allow_generators", "defer_imports", "deferred_names"]

#: Releases of torch whose modules are deferred: with one of them deferred, ``import torch`` fails in torch 2.15.
TORCH_VERSIONS = ("2.13", "2.14")

#: Modules that are loaded at the first access to one of their own attributes. Parts of torch are deferred where models
#: are only applied.
DEFERRED = frozenset(
    {
        *("networkx", "torch._dynamo", "torch._meta_registrations", "torch.export", "torch.quantization"),
        "torch_geometric.datasets",
    }
)

#: Module → one to import before it, as ``import torch`` does: the two import each other in a circle.
_BEFORE = {"torch._dynamo": "torch._prims"}

#: Libraries that are imported without garbage collection.
_LARGE = frozenset({"biotite", "e3nn", "lightning", "scipy.spatial", "torch", "torch_geometric"})

#: Attributes that the import system sets, some of which a module may lack.
_IMPORT_ATTRIBUTES = frozenset({"__path__", "__file__", "__cached__", "__package__", "__loader__", "__spec__"})


class _DeferredModule(ModuleType):
    """Module that runs its code at the first access to an attribute that the import system does not set."""

    def __getattr__(self, name: str) -> Any:
        spec = None if name in _IMPORT_ATTRIBUTES else self.__spec__
        if spec is None or not isinstance(spec.loader, _Loader):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # before its code, which may access the module
        spec.loader = self.__loader__ = spec.loader.original
        if self.__name__ in _BEFORE:
            import_module(_BEFORE[self.__name__])
        spec.loader.exec_module(self)
        return getattr(self, name)


class _Loader(Loader):
    """Loader that leaves the code of a module to its first use, or runs it without garbage collection."""

    def __init__(self, original: Loader, *, is_deferred: bool) -> None:
        self.original, self.is_deferred = original, is_deferred

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _DeferredModule(spec.name) if self.is_deferred else self.original.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if self.is_deferred:
            return
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.original
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            self.original.exec_module(module)
        finally:
            if was_enabled:
                gc.freeze()  # leaves the objects of the library out of later collections
                gc.enable()


class _DeferringFinder(MetaPathFinder):
    """Find deferred modules and large libraries, and replace their loaders."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_deferred = fullname in self.names
        if not is_deferred and fullname not in _LARGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, is_deferred=is_deferred)
        return spec


def deferred_names(torch_version: str) -> frozenset[str]:
    """Return the modules to defer: modules of torch with a release of :data:`TORCH_VERSIONS` only.

    Examples
    --------
    >>> sorted(deferred_names("2.15.0"))
    ['networkx', 'torch_geometric.datasets']
    """
    is_known = torch_version.startswith(tuple(f"{release}." for release in TORCH_VERSIONS))
    return frozenset(name for name in DEFERRED if is_known or name.partition(".")[0] != "torch")


def defer_imports(*, only_applies_models: bool) -> None:
    """Defer imports (:func:`deferred_names`), and import large libraries without garbage collection, in this process.

    For programs; a library leaves imports as they are.
    """
    finder = next((f for f in sys.meta_path if isinstance(f, _DeferringFinder)), None)
    if finder is None:
        finder = _DeferringFinder()
        sys.meta_path.insert(0, finder)
    finder.names |= deferred_names(version("torch") if only_applies_models else "")


def allow_generators() -> None:
    """Import the module without which ``torch.Generator`` raises if the shapes of operators are deferred.

    Earlier versions of torch do not need it, and may lack it (torch 2.13, 2026-11-23).
    """
    import torch  # noqa: F401

    name = "torch._prims.rng_prims"
    if find_spec(name) is not None:
        import_module(name)

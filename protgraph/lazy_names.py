"""Import the public names of a package on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names are imported from their modules on first use.

    ``package``: ``__name__`` of the package. ``home``: public name → module. No name may be that of a module of the
    package: its import would replace the name.
    """

    def getattr_(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)  # later accesses skip this function
        return value

    return getattr_, lambda: sorted(home)

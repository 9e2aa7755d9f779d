"""The packages export the public names of their modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import protgraph.nn
from protgraph.nn import heads, layers
from protgraph.nn.module import GraphLayer, Head


@pytest.mark.parametrize(("package", "base"), [(layers, GraphLayer), (heads, Head)], ids=["layers", "heads"])
def test_every_public_class_has_a_registry_name(package, base):
    public, registered = set(), set()
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        classes = {name for name in module.__all__ if inspect.isclass(getattr(module, name))}
        public |= {name for name in classes if issubclass(getattr(module, name), base)}
        for names in getattr(module, "ENTRY_POINTS", {}).values():
            registered |= set(names.values())
    assert registered == public


def test_exported_names_exist_and_are_sorted():
    for package in (protgraph.nn, heads):
        assert list(package.__all__) == sorted(package.__all__)
        assert all(hasattr(package, name) for name in package.__all__)

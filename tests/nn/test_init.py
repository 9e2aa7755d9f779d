"""The packages export the public names of their modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import protgraph.nn
from protgraph.nn import heads, layers
from protgraph.nn.module import GraphLayer, Head


def classes_of(package, base):
    """The subclasses that the modules of a package export."""
    found = {}
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        found |= {n: getattr(module, n) for n in module.__all__ if inspect.isclass(getattr(module, n))}
    return {name: kind for name, kind in found.items() if issubclass(kind, base)}


@pytest.mark.parametrize(("package", "base"), [(layers, GraphLayer), (heads, Head)], ids=["layers", "heads"])
def test_every_class_of_the_modules_is_exported(package, base):
    expected = classes_of(package, base)
    assert {n for n in package.__all__ if issubclass(getattr(package, n), base)} == set(expected)
    assert all(getattr(package, name) is kind for name, kind in expected.items())


def test_every_layer_has_a_registry_name():
    registered = set()
    for info in pkgutil.iter_modules(layers.__path__, f"{layers.__name__}."):
        entry_points = getattr(importlib.import_module(info.name), "ENTRY_POINTS", {})
        registered |= set(entry_points.get("protgraph.layers", {}).values())
    assert registered == set(layers.__all__)


def test_exported_names_exist_and_are_sorted():
    for package in (protgraph.nn, layers, heads):
        assert list(package.__all__) == sorted(package.__all__)
        assert all(hasattr(package, name) for name in package.__all__)


def test_an_unknown_layer_is_an_attribute_error_that_lists_the_layers():
    with pytest.raises(AttributeError, match="GATT") as e:
        layers.GATT  # noqa: B018
    assert "GCN" in str(e.value)

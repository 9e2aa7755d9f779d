"""Public names of ``import protgraph as pg``."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest

import protgraph as pg


@pytest.mark.parametrize("name", pg._HOME)
def test_public_name_is_exported_by_its_package(name: str) -> None:
    home = import_module(pg._HOME[name])
    assert getattr(pg, name) is getattr(home, name)
    assert name in home.__all__


@pytest.mark.parametrize("name", pg._PACKAGES)
def test_package_is_an_attribute_and_exports_names_that_exist(name: str) -> None:
    package = getattr(pg, name)
    assert isinstance(package, ModuleType)
    assert package.__all__ and all(hasattr(package, exported) for exported in package.__all__)


@pytest.mark.parametrize("package", [pg, pg.data, pg.data.datasets], ids=lambda package: package.__name__)
def test_a_name_that_is_imported_on_first_use_is_not_a_module_of_the_package(package: ModuleType) -> None:
    # Its import would set the module as the attribute, in place of the name.
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert not modules & set(package._HOME)


def test_dir_lists_all_public_names_once() -> None:
    assert dir(pg) == sorted(pg.__all__)
    assert len(set(pg.__all__)) == len(pg.__all__)


def test_names_of_functions_and_packages_differ() -> None:
    assert not set(pg._HOME) & set(pg._PACKAGES)
    import_module("protgraph.featurize.plan")
    assert callable(pg.build_graph) and isinstance(pg.featurize, ModuleType)


def test_unknown_name_raises_with_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="'layer'.*'layers'") as e:
        pg.layer  # noqa: B018
    assert e.value.name == "layer"
    with pytest.raises(AttributeError, match="build_model"):
        pg.qqqqqq  # noqa: B018
    with pytest.raises(ImportError):
        from protgraph import no_such_name  # noqa: F401

"""Public names of ``import protgraph as pg``."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import protgraph as pg
from protgraph.errors import ComponentTypeError, DuplicateNameError, PluginLoadError
from protgraph.registry.discovery import metadata_problems

Install = Callable[..., Path]


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


def test_dir_lists_all_public_names_and_functions_of_extensions_once() -> None:
    assert dir(pg) == sorted({*pg.__all__, *pg.functions.names()})
    assert len(set(pg.__all__)) == len(pg.__all__)
    assert "find_pockets" in dir(pg) and "find_pockets" not in pg.__all__


@pytest.mark.parametrize("name", pg.functions.names())
def test_a_function_of_an_extension_is_an_attribute_and_exported_by_its_package(name: str) -> None:
    package = import_module(pg.functions.entry(name).object.partition(":")[0].rpartition(".")[0])
    assert getattr(pg, name) is getattr(package, name) and name in package.__all__
    assert name not in vars(pg)


def test_functions_of_installed_packages_are_attributes_that_are_imported_on_first_use(install: Install) -> None:
    code = "def count_lengths(folder): return 7"
    points = {"count_lengths": "acme_lengths:count_lengths", "broken": "acme_broken:broken"}
    install("acme-lengths", {"protgraph.functions": points}, {"acme_lengths": code, "acme_broken": "raise OSError"})
    assert "count_lengths" in dir(pg) and "acme_lengths" not in sys.modules
    assert pg.count_lengths("folder") == 7 and "acme_lengths" in sys.modules
    with pytest.raises(AttributeError, match="count_lengths"):
        pg.count_length  # noqa: B018
    with pytest.raises(PluginLoadError, match="acme-lengths 1.2"):
        pg.broken  # noqa: B018


@pytest.mark.parametrize("name", ["embed", "structure", "cli", "find_pockets", "not-a-name"])
def test_a_function_cannot_replace_a_name_of_protgraph(install: Install, name: str, run) -> None:
    before = getattr(pg, name, None)
    install("acme-shadow", {"protgraph.functions": {name: "acme_shadow:mine"}}, {"acme_shadow": "def mine(): ..."})
    assert getattr(pg, name, None) is before and "acme_shadow" not in sys.modules
    assert dir(pg).count(name) == (0 if name in ("cli", "not-a-name") else 1)
    problems = [p.message for p in (*pg.functions.problems(), *metadata_problems()) if p.source == "acme-shadow 1.2"]
    assert len(problems) == 1 and (name in problems[0])
    listed = run("list", "functions").out
    assert "acme-shadow 1.2" in listed
    if name in ("embed", "structure", "cli"):
        with pytest.raises(DuplicateNameError, match=f"protgraph.{name} is a name of protgraph itself"):
            pg.functions.get(name)
        assert f"not available: {name!r} is a name of protgraph itself" in listed


def test_only_functions_are_attributes(install: Install) -> None:
    install("acme-class", {"protgraph.functions": {"kind": "acme_class:Kind"}}, {"acme_class": "class Kind: ..."})
    with pytest.raises(ComponentTypeError, match="Allowed: a function"):
        pg.kind  # noqa: B018


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

"""The public names of ``import protgraph as pg``."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest

import protgraph as pg


@pytest.mark.parametrize("name", pg._HOME)
def test_every_public_name_resolves_and_is_public_at_home(name: str) -> None:
    module, _, attribute = pg._HOME[name].partition(":")
    assert getattr(pg, name) is getattr(import_module(module), attribute or name)
    assert (attribute or name) in import_module(module).__all__


@pytest.mark.parametrize("name", pg._ROOMS)
def test_every_room_is_an_attribute(name: str) -> None:
    assert isinstance(getattr(pg, name), ModuleType)


def test_dir_is_what_star_import_gives() -> None:
    assert dir(pg) == sorted(pg.__all__)
    assert len(set(pg.__all__)) == len(pg.__all__)


def test_a_public_name_stays_itself_whatever_was_imported_before() -> None:
    assert not set(pg._HOME) & set(pg._ROOMS)
    import_module("protgraph.featurize.plan")
    assert callable(pg.build_graph) and isinstance(pg.featurize, ModuleType)


def test_unknown_name_is_an_attribute_error_with_a_hint() -> None:
    with pytest.raises(AttributeError, match="'layer'.*'layers'") as e:
        pg.layer  # noqa: B018
    assert e.value.name == "layer"
    with pytest.raises(AttributeError, match="build_model"):
        pg.qqqqqq  # noqa: B018
    with pytest.raises(ImportError):
        from protgraph import no_such_name  # noqa: F401

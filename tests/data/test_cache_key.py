"""Keys depend on data and code only."""

from __future__ import annotations

import json
import sys
from types import ModuleType

from protgraph.data import cache_key


def test_digests_depend_on_the_division_into_parts_and_not_on_the_order_of_keys():
    assert cache_key.digest("ab", "c") != cache_key.digest("a", "bc")
    assert cache_key.digest({"a": 1, "b": 2}) == cache_key.digest(json.loads('{"b": 2, "a": 1}'))


def test_editing_a_package_changes_its_digest(tmp_path, monkeypatch):
    package = tmp_path / "edited_for_digest"
    package.mkdir()
    (package / "__init__.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = cache_key.code_digest("edited_for_digest")
    cache_key.code_digest.cache_clear()
    assert cache_key.code_digest("edited_for_digest") == before
    (package / "__init__.py").write_text("X = 2\n")
    cache_key.code_digest.cache_clear()
    assert cache_key.code_digest("edited_for_digest") != before


def test_a_class_typed_at_a_prompt_has_no_digest():
    space: dict = {"__name__": "__main__"}
    exec("class Typed: pass", space)
    assert cache_key.component_digest(space["Typed"]()) is None


def test_plugin_families_of_one_distribution_have_different_digests():
    from protgraph_plugins.esm.featurizer import __name__ as esm

    assert cache_key.component_package(esm) == "protgraph_plugins.esm"
    assert cache_key.component_package("protgraph_datasets.pdb_core.data") == "protgraph_datasets.pdb_core"
    assert cache_key.component_package("someone.layers.gat") == "someone"
    one, other = (cache_key.code_digest(f"protgraph_plugins.{family}") for family in ("esm", "gearnet"))
    assert one != other


def test_a_component_of_a_single_module_has_the_digest_of_that_module(tmp_path, monkeypatch):
    (tmp_path / "alone_for_digest.py").write_text("class Layer:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import alone_for_digest

    assert isinstance(sys.modules["alone_for_digest"], ModuleType)
    assert cache_key.component_digest(alone_for_digest.Layer()) == cache_key.digest("class Layer:\n    pass\n")

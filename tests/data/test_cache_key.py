"""Keys depend on data and code only."""

from __future__ import annotations

import hashlib
import importlib
import json
import linecache
import sys
from types import ModuleType

import pytest

from protgraph.data import cache_key


def test_digests_depend_on_the_division_into_parts_and_not_on_the_order_of_keys():
    assert cache_key.digest("ab", "c") != cache_key.digest("a", "bc")
    assert cache_key.digest({"a": 1, "b": 2}) == cache_key.digest(json.loads('{"b": 2, "a": 1}'))


BODY = '''"""A featurizer."""
class Mine:
    """Compute nothing."""
    def compute(self, residues):
        """Return nothing."""
        return {}  # comment
'''
EDITS = [("return {}", "return {'h': 1}"), ("compute(self, residues)", "compute(self, residues, scale=1)")]


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("kind", ["package", "module"])
def test_editing_code_changes_the_digest(kind, edit, tmp_path, monkeypatch):
    name = f"edited_{kind}_for_digest"
    path = tmp_path / name / "__init__.py" if kind == "package" else tmp_path / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    digests = []
    for text in (BODY, BODY.replace(*edit)):
        path.write_text(text)
        linecache.clearcache()
        cache_key.code_digest.cache_clear()
        mine = importlib.import_module(name).Mine
        digests += [cache_key.component_digest(mine()), cache_key.component_digest(mine)]
    assert text != BODY and None not in digests
    assert digests[0] == digests[1] and digests[2] == digests[3]
    assert digests[0] != digests[2]


def test_a_class_typed_at_a_prompt_has_no_digest():
    space: dict = {"__name__": "__main__"}
    exec("class Typed: pass", space)
    assert cache_key.component_digest(space["Typed"]()) is None
    assert cache_key.component_digest(space["Typed"]) is None


def test_a_function_of_a_script_and_a_closure_have_no_digest():
    space: dict = {"__name__": "__main__"}
    exec("def derive(residues): return residues", space)
    assert cache_key.component_digest(space["derive"]) is None
    scale = 2.0
    assert cache_key.component_digest(lambda residues: residues * scale) is None


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
    assert (
        cache_key.component_digest(alone_for_digest.Layer()) == hashlib.sha256(b"class Layer:\n    pass\n").hexdigest()
    )

"""Keys depend on data and code only."""

from __future__ import annotations

import importlib
import json
import linecache
import subprocess
import sys
import textwrap
from types import ModuleType

import pytest

from protgraph.data import cache_key


def test_digests_depend_on_the_division_into_parts_and_not_on_the_order_of_keys():
    assert cache_key.digest("ab", "c") != cache_key.digest("a", "bc")
    assert cache_key.digest({"a": 1, "b": 2}) == cache_key.digest(json.loads('{"b": 2, "a": 1}'))


def test_files_that_two_digests_share_are_parsed_once(monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    cache_key.code_digest.cache_clear()
    cache_key.source_digest.cache_clear()
    parsed = []
    parse = cache_key.ast.parse
    monkeypatch.setattr(cache_key.ast, "parse", lambda text: parsed.append(text) or parse(text))
    cache_key.code_digest("protgraph.registry")
    first = len(parsed)
    cache_key.code_digest("protgraph.registry", "protgraph.data.graph")
    assert first > 0 and len(parsed) == len(set(parsed))


def test_another_process_does_not_parse_the_files_again(monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    code = "from protgraph.data import cache_key; parse = cache_key.ast.parse; parsed = []\n"
    code += "cache_key.ast.parse = lambda text: parsed.append(text) or parse(text)\n"
    code += "print(cache_key.code_digest('protgraph.registry'), len(parsed))"
    lines = [subprocess.check_output([sys.executable, "-c", code], text=True).split() for _ in range(2)]
    assert lines[0][0] == lines[1][0] and int(lines[0][1]) > 5 and lines[1][1] == "0"


BODY = '''"""A featurizer."""
class Mine:
    """Compute nothing."""
    def compute(self, residues):
        """Return nothing."""
        return {}  # comment
'''
EDITS = [
    (("return {}", "return {'h': 1}"), True),
    (("compute(self, residues)", "compute(self, residues, scale=1)"), True),
    (("Mine:\n", "Mine:\n    'text that is the docstring'\n"), True),  # the former docstring becomes an expression
    (("A featurizer.", "A featurizer without options."), False),
    (("Compute nothing.", "Compute an empty dict."), False),
    (("Return nothing.", "Return an empty dict."), False),
    (("# comment", "# another comment"), False),
    (("Mine:\n", "Mine:\n\n"), False),
]


@pytest.mark.parametrize(("edit", "changes"), EDITS)
@pytest.mark.parametrize("kind", ["package", "module"])
def test_editing_code_changes_the_digest_and_editing_text_does_not(kind, edit, changes, tmp_path, monkeypatch):
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
    assert (digests[0] != digests[2]) == changes


def test_a_method_is_not_the_same_code_as_a_function():
    method = "class A:\n    def f(self):\n        return 1\n"
    function = "class A: ...\ndef f(self):\n    return 1\n"
    assert cache_key.source_digest(method) != cache_key.source_digest(function)
    assert cache_key.source_digest(method) == cache_key.source_digest(textwrap.indent(method, "    "))


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
    assert cache_key.component_digest(alone_for_digest.Layer()) == cache_key.source_digest("class Layer: pass")

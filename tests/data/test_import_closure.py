"""Import closures contain exactly the modules that code can run."""

from __future__ import annotations

import pytest

from protgraph.data import import_closure as closure
from protgraph.registry import registries


def test_the_closure_follows_names_to_the_modules_that_define_them():
    found = closure.import_closure("protgraph.nn.layers.gcn")
    assert {"protgraph.nn.layers.gcn", "protgraph.nn.module", "protgraph.ops.edges", "protgraph.ops.spmm"} <= set(found)
    assert not [name for name in found if name.startswith(("protgraph.nn.layers.gat", "protgraph.errors"))]
    assert "protgraph.structure.descriptors.dssp" in closure.import_closure("protgraph.featurize.secondary_structure")


@pytest.mark.parametrize("kind", ["featurizers", "layers", "heads", "tasks"])
def test_every_built_in_component_has_a_closure_of_existing_modules(kind):
    for name in registries[kind]:
        module = registries[kind].entry(name).object.partition(":")[0]
        if module.startswith("protgraph."):
            found = closure.import_closure(module)
            assert module in found and all(closure._path(name) is not None for name in found)


def test_the_digest_changes_with_code_of_an_imported_module_only(monkeypatch):
    def digest_after(name: str, edit: str) -> str:
        closure.closure_digest.cache_clear()
        closure._read.cache_clear()
        read = closure._read(name)
        read.digest += edit
        return closure.closure_digest("protgraph.nn.layers.gcn")

    before = digest_after("protgraph.ops.spmm", "")
    assert digest_after("protgraph.ops.spmm", "x") != before
    assert digest_after("protgraph.nn.layers.gat", "x") == before
    closure.closure_digest.cache_clear()
    closure._read.cache_clear()

"""The registries, and the components of this distribution in them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from protgraph.registry import hooks, registries


def test_registries_with_one_entry_point_group_each() -> None:
    kinds = ["featurizers", "layers", "heads", "models", "tasks", "datasets", "trained_models", "mutation_scorers"]
    kinds += ["metrics", "readers", "commands", "functions"]
    assert list(registries) == kinds
    assert list(hooks) == ["relatives", "evaluators", "engines", "stores", "viewer_scripts"]
    for plural, registry in (registries | hooks).items():
        assert registry.group == f"protgraph.{plural}" == f"protgraph.{registry.kind}s"


def test_listing_loads_neither_torch_nor_plugins() -> None:
    code = """if True:
        import sys, protgraph as pg
        for r in pg.registry.registries.values():
            [r.entry(n) for n in r.names()], r.problems(), 'gcn' in r
        light = {'protgraph.registry', 'protgraph.errors', 'protgraph'}
        loaded = {'.'.join(m.split('.')[:2]) for m in sys.modules if m.startswith('protgraph')}
        print(loaded - light, {'torch', 'numpy', 'e3nn', 'biotite'} & set(sys.modules))
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set() set()"


@pytest.mark.parametrize("plural", registries | hooks)
def test_every_installed_component_loads(plural: str) -> None:
    assert (registries | hooks)[plural].problems(load=True) == []

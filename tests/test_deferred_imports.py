"""Deferred modules are loaded at their first use only, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from protgraph.deferred_imports import DEFERRED, TORCH_VERSIONS, deferred_names

SETUP = """
    import sys, inspect
    from protgraph import deferred_imports
    deferred_imports.DEFERRED = frozenset({"deferred_one", "deferred_two"})
    deferred_imports.defer_imports(only_applies_models=True)
    import deferred_one, deferred_two
    import deferred_two.inside
"""
USES = {
    "import alone": ("pass", []),
    "attributes of the import system": ("deferred_one.__file__, deferred_one.__path__, deferred_one.__spec__", []),
    "a search of all modules": ("inspect.getmodule(inspect.currentframe())", []),
    "an attribute": ("assert deferred_one.value == 7 == deferred_one.value", ["deferred_one"]),
    "a name": ("from deferred_one import value; assert value == 7", ["deferred_one"]),
    "all names": ("from deferred_one import *; assert value == 7", ["deferred_one"]),
    "a missing attribute": ("assert not hasattr(deferred_one, 'other')", ["deferred_one"]),
    "reload": ("import importlib; importlib.reload(deferred_one); assert deferred_one.value == 7", ["deferred_one"]),
}


@pytest.mark.parametrize(("use", "loaded"), USES.values(), ids=USES)
def test_a_module_is_loaded_at_its_first_use(tmp_path, use, loaded):
    for name in ("deferred_one", "deferred_two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"print({name!r})\nvalue = 7\n")
        (tmp_path / name / "inside.py").write_text("")
    script = dedent(SETUP) + use
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == loaded


def test_garbage_is_not_collected_while_a_large_library_is_imported(tmp_path):
    (tmp_path / "deferred_large").mkdir()
    (tmp_path / "deferred_large" / "__init__.py").write_text("import gc\nwas_enabled = gc.isenabled()\n")
    script = """
    import gc
    from protgraph import deferred_imports
    deferred_imports._LARGE = frozenset({"deferred_large"})
    deferred_imports.defer_imports(only_applies_models=False)
    frozen = gc.get_freeze_count()
    import deferred_large
    print(deferred_large.was_enabled, gc.isenabled(), gc.get_freeze_count() > frozen, deferred_large.__loader__)
    """
    command = [sys.executable, "-c", dedent(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split()[:3] == ["False", "True", "True"], done.stderr
    assert "SourceFileLoader" in done.stdout


def test_collection_that_a_program_has_disabled_remains_disabled(tmp_path):
    (tmp_path / "deferred_large.py").write_text("")
    script = """
    import gc
    gc.disable()
    frozen = gc.get_freeze_count()  # Python 3.12.1 starts with some
    from protgraph import deferred_imports
    deferred_imports._LARGE = frozenset({"deferred_large"})
    deferred_imports.defer_imports(only_applies_models=False)
    import deferred_large
    print(gc.isenabled(), gc.get_freeze_count() - frozen)
    """
    command = [sys.executable, "-c", dedent(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "0"], done.stderr


@pytest.mark.slow
def test_a_program_that_trains_imports_neither_datasets_of_other_fields_nor_transformers():
    script = """
    import sys
    from protgraph.deferred_imports import defer_imports
    defer_imports(only_applies_models=False)
    import torch_geometric, protgraph.train
    print("transformers" in sys.modules, "torch_geometric.datasets.planetoid" in sys.modules)
    print(torch_geometric.datasets.Planetoid.__name__)
    """
    command = [sys.executable, "-c", dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "False", "Planetoid"], done.stderr


def test_modules_of_torch_are_deferred_with_tested_releases_only():
    assert all(deferred_names(f"{release}.0+cpu") == DEFERRED for release in TORCH_VERSIONS)
    torch_parts = {name for name in DEFERRED if name.startswith("torch.")}
    assert torch_parts and deferred_names("2.15.0+cu132") == DEFERRED - torch_parts


def test_the_tested_release_is_that_of_the_constraints():
    constraints = (Path(__file__).resolve().parents[1] / "constraints.txt").read_text(encoding="utf-8")
    assert any(f"torch=={release}." in constraints for release in TORCH_VERSIONS)


@pytest.mark.slow
def test_predictions_leave_the_deferred_modules_unloaded(structures_dir, tmp_path):
    script = f"""
    import sys
    from protgraph import deferred_imports
    from protgraph.cli.app import main
    sys.argv = ["protgraph", "predict", "secondary_structure", r"{structures_dir / "1crn.bcif"}",
                "-o", r"{tmp_path / "out.csv"}"]
    try:
        main()
    except SystemExit as e:
        assert not e.code
    kinds = {{name: type(sys.modules[name]).__name__ for name in deferred_imports.DEFERRED if name in sys.modules}}
    assert "torch" in sys.modules and set(kinds.values()) == {{"_DeferredModule"}}, kinds
    """
    done = subprocess.run([sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_e3nn_is_imported_after_torch_whose_compiler_is_deferred():
    """e3nn compiles functions, and so runs ``torch._dynamo``, which torch imports after the module it needs."""
    script = """
    from protgraph.deferred_imports import defer_imports
    defer_imports(only_applies_models=True)
    import torch
    import e3nn.o3
    print(e3nn.o3.Irreps("1x1o").dim)
    """
    command = [sys.executable, "-c", dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3"]

"""Entry points of ``pyproject.toml`` against the code that they name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from protgraph import Dataset, Family, Task
from protgraph.data.datasets.dataset import DatasetView
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.graph_list import GraphListDataset
from protgraph.featurize import Featurizer
from protgraph.nn import GraphLayer, Head

ROOT = Path(__file__).resolve().parents[2]
#: Base class of featurizers; datasets that are made from user data or from another dataset.
UNREGISTERED = (DatasetView, Featurizer, FolderDataset, GraphListDataset)

#: The only module that cannot be imported without a library that comes with torch for GPUs alone.
NEEDS_TRITON = "protgraph.ops.kernels.triton_programs"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Return ``tools/entry_points.py`` as a module."""
    spec = importlib.util.spec_from_file_location("entry_points_tool", ROOT / "tools" / "entry_points.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_pyproject_has_the_declared_entry_points(tool) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert tool.replace_block(text, tool.block(tool.declared())) == text, "run `python tools/entry_points.py`"


@pytest.mark.slow
def test_every_component_is_declared(tool) -> None:
    modules = {name: importlib.import_module(name) for name, _ in tool.modules() if name != NEEDS_TRITON}
    references = [ref.split(":") for names in tool.declared().values() for ref in names.values()]
    registered = {id(getattr(modules[module], name)) for module, name in references}
    missing = {name for name, component in components(modules) if id(component) not in registered}
    assert not missing


def components(modules: dict[str, ModuleType]) -> Iterator[tuple[str, object]]:
    """Yield name and object: concrete layers, heads, featurizers and datasets; model families and tasks."""
    for module, content in modules.items():
        for name, value in list(vars(content).items()):
            is_class = inspect.isclass(value) and issubclass(value, (GraphLayer, Head, Featurizer, Dataset))
            if is_class and value.__module__ == module and not inspect.isabstract(value) and value not in UNREGISTERED:
                yield f"{module}:{name}", value
            if isinstance(value, (Family, Task)):
                yield f"{module}:{name}", value


def write_package(root: Path, **modules: str) -> Path:
    (root / "protgraph").mkdir()
    for name, text in modules.items():
        (root / "protgraph" / f"{name}.py").write_text(text, encoding="utf-8")
    return root


def test_names_are_sorted_and_modules_are_not_imported(tool, tmp_path) -> None:
    root = write_package(
        tmp_path,
        z='raise SystemExit\nENTRY_POINTS = {"protgraph.layers": {"b": "B", "a": "A"}}\nclass A: ...\nB = A',
        y='ENTRY_POINTS = {"protgraph.heads": {"c": "C"}}\nclass C: ...',
    )
    layers = {"a": "protgraph.z:A", "b": "protgraph.z:B"}
    assert tool.declared(root) == {"protgraph.heads": {"c": "protgraph.y:C"}, "protgraph.layers": layers}
    assert [list(names) for names in tool.declared(root).values()] == [["c"], ["a", "b"]]


def test_a_declared_object_must_exist_and_names_are_unique(tool, tmp_path) -> None:
    root = write_package(tmp_path, one='ENTRY_POINTS = {"protgraph.layers": {"a": "A"}}')
    with pytest.raises(ValueError, match="'A'"):
        tool.declared(root)
    for name in ("one", "two"):
        (root / "protgraph" / f"{name}.py").write_text('ENTRY_POINTS = {"protgraph.layers": {"a": "A"}}\nclass A: ...')
    with pytest.raises(ValueError, match=r"protgraph\.one:A"):
        tool.declared(root)

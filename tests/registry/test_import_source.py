"""Files and modules that register components: imported once, in every process, with errors that name the line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import protgraph as pg
from protgraph.data.cache_key import component_digest
from protgraph.errors import PluginLoadError
from protgraph.featurize.plan import FeaturePlan
from protgraph.registry import import_source
from protgraph.registry.provider import IMPORT_VARIABLE

FILE = """
import numpy as np
import protgraph as pg

pg.register_field(pg.FieldSpec("file_width", "node", "1x0e", doc="a test"))


@pg.featurizers.register("file_width")
class FileWidth(pg.StructureFeaturizer):
    writes = ("file_width",)

    def __call__(self, residues):
        return {"file_width": np.full((len(residues), 1), 7, np.float32)}


pg.models.register("file_model", pg.ModelSpec("file_model", ["file_width", "knn"]))
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IMPORT_VARIABLE, "")
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``write("name", "code")`` makes a file whose module is not loaded after the test."""

    def make(name: str, code: str) -> Path:
        monkeypatch.delitem(sys.modules, name, raising=False)
        path = tmp_path / f"{name}.py"
        path.write_text(code)
        return path

    yield make
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_a_file_is_imported_once_and_its_components_have_it_as_source(write) -> None:
    path = write("file_once", FILE + "COUNT = []\n")
    module = import_source(path)
    module.COUNT.append(1)
    assert import_source(path) is module and module.COUNT == [1]
    for registry, name in ((pg.featurizers, "file_width"), (pg.models, "file_model")):
        entry = registry.entry(name)
        assert (entry.source, entry.imported, entry.is_session) == ("import file_once.py", "file_once.py", False)
        assert entry.object.startswith("file_once:")
    assert os.environ[IMPORT_VARIABLE] == str(path)
    assert component_digest(pg.models.get("file_model"), module="file_once") is not None


def test_a_module_is_imported_by_name_from_the_current_folder(write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("module_of_test", FILE)
    monkeypatch.chdir(path.parent)
    import_source("module_of_test")
    assert pg.featurizers.entry("file_width").source == "import module_of_test"


def test_registries_import_what_the_variable_lists(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IMPORT_VARIABLE, str(write("file_listed", FILE)))
    assert "file_width" in pg.featurizers.names() and "file_listed" in sys.modules


def test_an_entry_that_cannot_be_imported_is_an_error_of_every_use(write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("file_broken", "import os\nraise KeyError('x')\n")
    monkeypatch.setenv(IMPORT_VARIABLE, str(path))
    for use in (pg.layers.names, lambda: pg.layers.get("gcn")):
        with pytest.raises(PluginLoadError, match=r"file_broken\.py.*KeyError.*file_broken\.py:2"):
            use()


@pytest.mark.parametrize(
    ("name", "code", "parts"),
    [
        ("file_error", "def f():\n    return 1 / 0\nf()\n", ("ZeroDivisionError", "file_error.py:2")),
        ("file_exit", "import sys\nsys.exit(5)\n", ("SystemExit: 5", "file_exit.py:2")),
        ("file_syntax", "x = = 1\n", ("SyntaxError", "file_syntax.py:1")),
        ("file_name", "import protgraph as pg\npg.models.register('gcn', pg.ModelSpec('x'))\n", ("'gcn'", ":2")),
        ("torch", "", ("another module has the name 'torch'",)),
        ("not-a-name", "", ("not-a-name.py", "Rename")),
    ],
)
def test_errors_of_a_file_name_the_line(write, name: str, code: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(code)
    try:
        with pytest.raises(PluginLoadError) as e:
            import_source(tmp_path / f"{name}.py")
    finally:
        (tmp_path / f"{name}.py").unlink()
    assert all(part in str(e.value) for part in parts) and "\n" not in str(e.value)
    assert not os.environ[IMPORT_VARIABLE]


def test_missing_files_and_modules_are_errors(write) -> None:
    path = write("file_there", "")
    with pytest.raises(PluginLoadError, match="'file_there.py'"):
        import_source(path.with_name("file_ther.py"))
    with pytest.raises(PluginLoadError, match="no_such_module_anywhere"):
        import_source("no_such_module_anywhere.layers")


def test_a_checkpoint_names_the_file_that_is_missing(write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from protgraph.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
    from protgraph.errors import CheckpointError, CodeChangeWarning

    path = write("file_model_of_test", FILE)
    import_source(path)
    embed = pg.component("embed", reads=["aatype", "file_width"], dim=8)
    spec = pg.ModelSpec("mine", ["file_width"], [embed])
    model = pg.build_model(spec, pg.Target("t", "node", "classification", 2), seed=0)
    checkpoint = save_checkpoint(tmp_path / "ck.safetensors", Checkpoint(model=model, task="t"))
    assert load_checkpoint(checkpoint).components[0].source == "import file_model_of_test.py"
    pg.featurizers.unregister("file_width")
    monkeypatch.setenv(IMPORT_VARIABLE, "")
    with pytest.raises(CheckpointError, match=r"'file_width' of file_model_of_test\.py: add --import file_model"):
        load_checkpoint(checkpoint)
    sys.modules.pop(path.stem)
    path.write_text(FILE.replace("7, np", "8, np"))
    pg.models.unregister("file_model")
    import_source(path)
    with pytest.warns(CodeChangeWarning, match="file_width"):
        load_checkpoint(checkpoint)


@pytest.mark.slow
def test_worker_processes_have_the_components(write, structures_dir: Path) -> None:
    import_source(write("file_of_workers", FILE))
    files = [structures_dir / f"{name}.bcif" for name in ("1crn", "1orc")]
    for result in pg.iter_graphs(files, FeaturePlan(["file_width"]), jobs=2):
        assert result.graph.file_width.unique().tolist() == [7.0]
    code = "import protgraph as pg; print(pg.models.entry('file_model').source)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "import file_of_workers.py"

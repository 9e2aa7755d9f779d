"""Checkpoints compare the code of their components with the installed code, and find them under qualified names."""

from __future__ import annotations

import importlib
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import torch

import protgraph as pg
from protgraph.data import import_closure
from protgraph.errors import CheckpointError, CodeChangeWarning
from protgraph.registry import registries
from protgraph.train import Checkpoint, load_checkpoint, save_checkpoint
from protgraph.train.checkpoint_header import ComponentSource
from protgraph.train.component_source import components_of, resolve_components

LAYER = '''
from torch import nn
import protgraph as pg

class Scaled(pg.GraphLayer):
    """Scale h."""
    reads, writes = ("h",), ("h",)
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim)
        self.declare(h=f"{dim}x0e")
    def forward(self, f):
        return {"h": 2 * self.linear(f["h"])}
'''
COMMENT, CODE = ("Scale h.", "Scale h twice."), ("2 * self", "3 * self")
TARGET = pg.Target("helix", "node", "classification", 2)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``install("acme-gated", "0.3.0")`` puts a distribution with the layer ``gated_conv`` on ``sys.path``."""
    installed: dict[str, Path] = {}

    def make(name: str, version: str, edit: tuple[str, str] = ("", ""), layer: str = "gated_conv") -> None:
        module = name.replace("-", "_") + "_of_test"
        site = tmp_path / f"{name}-{version}-{len(list(tmp_path.iterdir()))}"
        info = site / f"{name}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[protgraph.layers]\n{layer} = {module}:Scaled\n")
        assert edit[0] in LAYER
        (site / f"{module}.py").write_text(textwrap.dedent(LAYER.replace(*edit)))
        monkeypatch.delitem(sys.modules, module, raising=False)
        path = [part for part in sys.path if part != str(installed.get(name))]
        monkeypatch.setattr(sys, "path", [str(site), *path])
        installed[name] = site

    return make


@pytest.fixture
def save(tmp_path: Path):
    """Return a function that saves an untrained model with a layer, and returns the file."""

    def write(layer: str = "gated_conv") -> Path:
        spec = pg.ModelSpec(
            "acme", ["knn"], layers=[pg.component("embed", reads=["aatype"], dim=8), pg.component(layer)]
        )
        model = pg.build_model(spec, TARGET, seed=0)
        return save_checkpoint(tmp_path / "ck.safetensors", Checkpoint(model=model, task="secondary_structure"))

    return write


@pytest.mark.parametrize(
    ("version", "edit", "parts"),
    [
        ("0.3.0", ("", ""), None),
        ("0.3.0", COMMENT, None),
        ("0.4.0", COMMENT, None),
        ("0.3.0", CODE, ["layer 'gated_conv'", "acme-gated 0.3.0"]),
        ("0.4.0", CODE, ["layer 'gated_conv'", "acme-gated 0.3.0", "installed is acme-gated 0.4.0", "==0.3.0"]),
    ],
    ids=["same", "docstring", "version_and_docstring", "code", "version_and_code"],
)
def test_other_code_of_a_plugin_warns_and_other_versions_with_equal_code_do_not(install, save, version, edit, parts):
    install("acme-gated", "0.3.0")
    path = save()
    install("acme-gated", version, edit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_checkpoint(path)
    found = [str(w.message) for w in caught if issubclass(w.category, CodeChangeWarning)]
    assert len(found) == (parts is not None)
    if parts is not None:
        assert all(part in found[0] for part in (*parts, str(path))) and "\n" not in found[0]
        assert ("pip install" in found[0]) == (version != "0.3.0")


def test_a_command_prints_the_warning_in_one_line(install, save, capsys):
    from protgraph.cli.app import main

    install("acme-gated", "0.3.0")
    path = save()
    install("acme-gated", "0.4.0", CODE)
    with pytest.raises(SystemExit) as ended:
        main(["describe", str(path)])
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "acme-gated" in line]
    assert not ended.value.code and line.startswith("warning: ") and line.endswith("pip install acme-gated==0.3.0")


def test_a_name_that_is_claimed_later_is_loaded_from_its_distribution(install, save):
    install("acme-gated", "0.3.0")
    path = save()
    before = load_checkpoint(path)
    install("other-nets", "1.0", CODE)
    for _ in range(2):
        loaded = load_checkpoint(path)
        assert [c.name for c in loaded.model.spec.layers] == ["embed", "acme-gated/gated_conv"]
        assert all(torch.equal(v, loaded.model.state_dict()[k]) for k, v in before.model.state_dict().items())
        save_checkpoint(path, loaded)


def test_a_model_with_a_qualified_name_round_trips_and_the_built_in_layer_stays(install, save):
    install("acme-gated", "0.3.0", layer="gcn")
    assert pg.layers.get("gcn").__module__ == "protgraph.nn.layers.gcn"
    loaded = load_checkpoint(save("acme-gated/gcn"))
    assert type(loaded.model.layers[1]).__name__ == "Scaled"
    (component,) = [c for c in loaded.components if "gcn" in c.name]
    assert (component.name, component.source) == ("acme-gated/gcn", "acme-gated 0.3.0")


def test_a_missing_distribution_is_an_error_with_the_install_command(install, save):
    install("acme-gated", "0.3.0")
    path = save()
    install("acme-gated", "0.3.0", layer="renamed")
    with pytest.raises(CheckpointError, match="layer 'gated_conv' of acme-gated 0.3.0: pip install acme-gated==0.3.0"):
        load_checkpoint(path)


def test_sources_of_built_in_components_have_digests(save):
    loaded = load_checkpoint(save("gcn"))
    found = {(c.kind, c.name): c for c in loaded.components}
    assert found.keys() >= {("layer", "embed"), ("layer", "gcn"), ("task", "secondary_structure")}
    assert all(c.digest and c.source.startswith("protgraph-pyg ") for c in found.values())
    assert loaded.components == components_of(loaded.model, "secondary_structure")


@pytest.mark.parametrize(
    ("changes", "warns"),
    [
        ({"digest": None}, False),  # a checkpoint of an earlier version of the format
        ({"digest": "0" * 24}, True),
        ({"digest": None, "source": "protgraph-pyg 0.0.1"}, True),
    ],
    ids=["no_digest", "other_digest", "other_version"],
)
def test_unknown_code_is_compared_by_version(changes, warns):
    entry = registries["layers"].entry("gcn")
    installed = {"kind": "layer", "name": "gcn", "source": entry.source, "object": entry.object, "digest": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resolve_components(Path("ck.safetensors"), [ComponentSource(**(installed | changes))])
    assert len([w for w in caught if issubclass(w.category, CodeChangeWarning)]) == warns


def test_a_task_that_is_not_installed_is_ignored():
    saved = ComponentSource(kind="task", name="no_such_task", source="gone 1.0", object="gone:TASK", digest="0")
    assert resolve_components(Path("ck.safetensors"), [saved]) == {}


PACKAGE = {
    "__init__.py": "from .layers import First, Second as Twice\n",
    "layers/__init__.py": "from acme_several.layers.first import First\nfrom .second import Second\n",
    "layers/first.py": "from ..scale import factor\n\nclass First:\n    value = factor\n",
    "layers/second.py": "class Second:\n    pass\n",
    "scale.py": "from . import constants\n\nfactor = 2 * constants.ONE\n",
    "constants.py": "ONE = 1\n",
    "tools.py": "def unused():\n    return 1\n",
}
NAMES = {"First": {"first", "scale", "constants"}, "Twice": {"second"}}


@pytest.mark.parametrize("edited", [*PACKAGE, "none"])
def test_the_digest_of_a_plugin_is_of_the_modules_that_its_component_imports(tmp_path, monkeypatch, edited):
    def digests(folder: str, extra: str) -> dict[str, str | None]:
        for file, text in PACKAGE.items():
            path = tmp_path / folder / "acme_several" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + (extra if file == edited else ""))
        for cache in (import_closure.object_digest, import_closure.closure_digest, import_closure._read):
            cache.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "acme_several"]:
            del sys.modules[name]
        with monkeypatch.context() as m:
            m.syspath_prepend(str(tmp_path / folder))
            importlib.import_module("acme_several")
            return {name: import_closure.object_digest("acme_several", name) for name in NAMES}

    before, after = digests("before", ""), digests("after", "\nadded = 1\n")
    stem = Path(edited).stem
    assert {name for name in NAMES if before[name] != after[name]} == {n for n, own in NAMES.items() if stem in own}


def test_all_changed_components_are_named(save):
    kinds = [("layer", name) for name in ("gcn", "gat", "egnn", "gvp", "embed", "schnet")] + [("task", "b_factor")]
    saved = []
    for kind, name in kinds:
        entry = registries[f"{kind}s"].entry(name)
        saved.append(ComponentSource(kind=kind, name=name, source=entry.source, object=entry.object, digest="0" * 24))
    for count, end in ((6, "layer 'schnet' ("), (7, "layer 'schnet' and 1 more (")):
        with pytest.warns(CodeChangeWarning) as caught:
            resolve_components(Path("ck.safetensors"), saved[:count])
        assert end in str(caught[0].message) and "…" not in str(caught[0].message)


def test_only_the_changed_component_of_a_package_is_named(tmp_path, monkeypatch):
    def install(folder: str, edit: tuple[str, str]) -> None:
        package, info = tmp_path / folder / "acme_two_of_test", tmp_path / folder / "acme_two-1.0.dist-info"
        package.mkdir(parents=True)
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-two\nVersion: 1.0\n")
        names = [f"acme_{name} = acme_two_of_test.{name}:Scaled" for name in ("one", "two")]
        (info / "entry_points.txt").write_text("\n".join(["[protgraph.layers]", *names]))
        (package / "__init__.py").write_text("")
        (package / "one.py").write_text(LAYER)
        (package / "two.py").write_text(LAYER.replace(*edit))
        for cache in (import_closure.object_digest, import_closure.closure_digest, import_closure._read):
            cache.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "acme_two_of_test"]:
            monkeypatch.delitem(sys.modules, name)
        path = [part for part in sys.path if not part.startswith(str(tmp_path))]
        monkeypatch.setattr(sys, "path", [str(tmp_path / folder), *path])

    install("before", ("", ""))
    layers = [pg.component("embed", reads=["aatype"], dim=8), pg.component("acme_one"), pg.component("acme_two")]
    model = pg.build_model(pg.ModelSpec("acme", ["knn"], layers=layers), TARGET, seed=0)
    path = save_checkpoint(tmp_path / "ck.safetensors", Checkpoint(model=model, task="secondary_structure"))
    install("after", CODE)
    with pytest.warns(CodeChangeWarning) as caught:
        load_checkpoint(path)
    (message,) = [str(w.message) for w in caught]
    assert "layer 'acme_two'" in message and "acme_one" not in message and "embed" not in message

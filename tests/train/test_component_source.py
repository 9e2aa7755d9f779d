"""Checkpoints compare the code of their components with the installed code, and find them under qualified names."""

from __future__ import annotations

import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import torch

import protgraph as pg
from protgraph.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from protgraph.checkpoint.checkpoint_header import ComponentSource
from protgraph.checkpoint.component_source import components_of, resolve_components
from protgraph.errors import CheckpointError, CodeChangeWarning
from protgraph.registry import registries

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
CODE = ("2 * self", "3 * self")
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
        ("0.3.0", CODE, None),
        ("0.4.0", CODE, ["layer 'gated_conv'", "acme-gated 0.3.0", "installed is acme-gated 0.4.0", "==0.3.0"]),
    ],
    ids=["same", "code", "version"],
)
def test_another_version_of_a_plugin_warns(install, save, version, edit, parts):
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
    assert pg.layers.get("gcn").__module__ == "protgraph.nn.layers.convolutions"
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


def test_sources_of_built_in_components_have_versions(save):
    loaded = load_checkpoint(save("gcn"))
    found = {(c.kind, c.name): c for c in loaded.components}
    assert found.keys() >= {("layer", "embed"), ("layer", "gcn"), ("task", "secondary_structure")}
    assert all(c.digest is None and c.source.startswith("protgraph-pyg ") for c in found.values())
    assert loaded.components == components_of(loaded.model, "secondary_structure")


@pytest.mark.parametrize(
    ("changes", "warns"),
    [({"digest": "0" * 24}, False), ({"source": "protgraph-pyg 0.0.1"}, True)],
    ids=["digest_of_an_earlier_release", "other_version"],
)
def test_components_of_distributions_are_compared_by_version(changes, warns):
    entry = registries["layers"].entry("gcn")
    installed = {"kind": "layer", "name": "gcn", "source": entry.source, "object": entry.object, "digest": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resolve_components(Path("ck.safetensors"), [ComponentSource(**(installed | changes))])
    assert len([w for w in caught if issubclass(w.category, CodeChangeWarning)]) == warns


def test_a_task_that_is_not_installed_is_ignored():
    saved = ComponentSource(kind="task", name="no_such_task", source="gone 1.0", object="gone:TASK", digest="0")
    assert resolve_components(Path("ck.safetensors"), [saved]) == {}


def test_all_changed_components_are_named(save):
    kinds = [("layer", name) for name in ("gcn", "gat", "egnn", "gvp", "embed", "schnet")] + [("task", "b_factor")]
    saved = []
    for kind, name in kinds:
        entry = registries[f"{kind}s"].entry(name)
        saved.append(ComponentSource(kind=kind, name=name, source="protgraph-pyg 0.0.1", object=entry.object))
    for count, end in ((6, "layer 'schnet' may"), (7, "layer 'schnet' and 1 more may")):
        with pytest.warns(CodeChangeWarning) as caught:
            resolve_components(Path("ck.safetensors"), saved[:count])
        assert end in str(caught[0].message) and "…" not in str(caught[0].message)

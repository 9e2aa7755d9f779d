"""The components of the pages on plugins pass every check, and train together."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import protgraph as pg
from protgraph.testing import check_component, find_components
from protgraph.train import FitConfig, fit

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / f"{name}.md" for name in ("plugins", "plugin_networks", "plugin_data")]
NAMES = {
    "center_distance": "featurizer",
    "atom_contacts": "featurizer",
    "edge_inverse_square": "featurizer",
    "tips": "featurizer",
    "gated_conv": "layer",
    "vector_messages": "layer",
    "turn": "layer",
    "tip_message": "layer",
    "two_layer": "head",
    "mixture": "head",
    "acme": "model",
    "crowding_class": "task",
    "log_b": "task",
    "acme_mini": "dataset",
    "bias": "metric",
    "xyzca": "reader",
}


@pytest.fixture
def written(tmp_path, structures_dir, monkeypatch):
    """Run the Python blocks of the pages in a folder with the files that they name."""
    (tmp_path / "my_structures").mkdir()
    for name in ("1ubq", "1ajj", "1fas", "1gya"):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "my_structures")
    shutil.copy(structures_dir / "1ubq.bcif", tmp_path)
    monkeypatch.chdir(tmp_path)
    module = ModuleType("plugin_page")  # its classes are found by pickle
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for page in PAGES:
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S):
            exec(compile(block, str(page), "exec"), module.__dict__)


@pytest.mark.slow
def test_every_component_of_the_pages_passes_its_checks(written):
    for name, kind in NAMES.items():
        for component in find_components(name, kind=kind):
            assert [str(report) for report in check_component(component, full=True) if not report.ok] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gated", "vectors", "directional", "contacts", "acme", "tips_to_residues"])
def test_every_model_of_the_pages_trains(written, tmp_path, name):
    losses = fit(name, "acme_mini", "glycine", config=FitConfig(epochs=3, device="cpu"), cache=tmp_path).history
    assert losses[-1]["train_loss"] < losses[0]["train_loss"]


@pytest.mark.slow
def test_a_head_of_the_pages_with_several_outputs_trains(written, tmp_path):
    config = FitConfig(epochs=3, device="cpu")
    losses = fit("gcn", "acme_mini", "log_b", config=config, cache=tmp_path).history
    assert losses[-1]["train_loss"] < losses[0]["train_loss"]


@pytest.mark.slow
def test_the_components_of_the_pages_train_together(written, tmp_path):
    features = ["center_distance", pg.component("knn", k=8), "atom_contacts", "edge_distance", "edge_inverse_square"]
    layers = [
        pg.component("embed", reads=["aatype", "center_distance"], dim=16),
        pg.component("embed", reads=["edge_inverse_square"], dim=4, writes={"h": "edge_attr"}),
        pg.component("gated_conv", dim=16, reads={"edge_attr": "edge_attr"}),
    ]
    spec = pg.ModelSpec("page", features, layers, heads={"two_layer": {"dim": 8}})
    config = FitConfig(epochs=1, device="cpu")
    for task in ("glycine", "crowding_class"):
        result = fit(spec, "acme_mini", task, config=config, cache=tmp_path)
        assert result.test and result.failures == ()

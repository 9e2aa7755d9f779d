"""Faults of a plugin name the component, its distribution, the protein and the line; none ends the process."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import protgraph as pg
from protgraph import registry
from protgraph.errors import ComponentError, DatasetError, UnknownNameError
from protgraph.featurize.plan import FeaturePlan
from protgraph.labels import load_dataset, prepare
from protgraph.task import Metric, cross_entropy
from protgraph.train import fit
from tests.train.conftest import CHAINS, Small

PLUGIN = """
import sys
import numpy as np
import protgraph as pg


class Faulty(pg.StructureFeaturizer):
    writes = ("b_factor",)

    def __call__(self, residues):
        return fault(residues)


def fault(residues):
    raise ValueError("own bug")
"""


@pytest.fixture
def small(structures_dir) -> Small:
    return Small(structures_dir, {"train": CHAINS["train"][:3], "val": CHAINS["val"][:1]})


@pytest.fixture
def plugin(tmp_path, monkeypatch) -> Path:
    """Return the module of an installed distribution, acme-gated 0.3.0, with the featurizer ``acme_faulty``."""
    info = tmp_path / "acme_gated-0.3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-gated\nVersion: 0.3.0\n")
    (info / "entry_points.txt").write_text("[protgraph.featurizers]\nacme_faulty = acme_gated_mod:Faulty\n")
    (tmp_path / "acme_gated_mod.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_gated_mod", raising=False)
    return tmp_path / "acme_gated_mod.py"


def model(*features: str, layers: tuple = ()) -> pg.ModelSpec:
    return pg.ModelSpec("m", list(features), [pg.component("embed", reads=["aatype"], dim=8), *layers])


CONFIG = pg.FitConfig(epochs=1, device="cpu")


def test_a_fault_on_every_protein_ends_with_component_distribution_protein_and_line(small, plugin, tmp_path):
    with pytest.raises(ComponentError) as raised:
        fit(model("acme_faulty"), small, "helix", config=CONFIG, cache=tmp_path)
    error = raised.value
    assert (error.kind, error.name, error.source, error.protein) == (
        "featurizer",
        "acme_faulty",
        "acme-gated 0.3.0",
        "1crn",
    )
    line = 1 + PLUGIN.splitlines().index('    raise ValueError("own bug")')
    assert error.location == f"{plugin}:{line}" and error.location in str(error)
    assert isinstance(error.__cause__, ValueError) and "own bug" in str(error)


def register(call) -> None:
    @pg.featurizers.register("faulty")
    class Faulty(pg.StructureFeaturizer):
        writes = ("b_factor",)

        def __call__(self, residues):
            return call(residues)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: sys.exit(5), r"calls sys.exit\(5\)"),
        (lambda r: None, "returns None"),
        (lambda r: {}, "b_factor"),
        (lambda r: {"b_factor": r.b_factor}, r"\(46,\).*\(46, 1\)"),
        (lambda r: {"b_factor": r.b_factor[1:, None]}, r"\(45, 1\).*\(46, 1\)"),
        (lambda r: {"b_factor": r.res_id[:, None]}, "int64.*float32"),
        (lambda r: {"b_factor": r.b_factor[:, None] + np.nan}, "not finite in row 0"),
        (lambda r: r.pos.fill(0), "read-only: change a copy"),
        (lambda r: r.backbone.__setitem__(0, 0), "read-only: change a copy"),
    ],
)
def test_a_wrong_featurizer_is_named(structures_dir, call, words):
    register(call)
    residues = pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))
    before = residues.pos.copy()
    with pytest.raises(ComponentError, match=words) as raised:
        FeaturePlan(["faulty"]).precompute(residues)
    assert raised.value.name == "faulty" and raised.value.protein == "1crn"
    assert "test_component_faults.py:" in raised.value.location
    assert np.array_equal(residues.pos, before) and residues.pos.flags.writeable


def test_arrays_of_ligands_are_read_only(structures_dir):
    residues = pg.clean(pg.load_structure(structures_dir / "1a28.bcif"), ligands=True).read_only()
    arrays = [x for part in (residues, residues.ligands) for x in vars(part).values() if isinstance(x, np.ndarray)]
    assert len(arrays) > 15 and not any(x.flags.writeable for x in arrays)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (lambda n: None, "returns None.*EdgeList"),
        (lambda n: pg.EdgeList(np.array([0.0]), np.array([1.0])), "float64"),
        (lambda n: pg.EdgeList(np.array([0, 1]), np.array([1, 0])), "not sorted by target"),
        (lambda n: pg.EdgeList(np.array([n]), np.array([0])), "do not exist.*0 to 45"),
    ],
)
def test_wrong_edges_are_named(structures_dir, edges, words):
    @pg.featurizers.register("faulty_edges")
    class Faulty(pg.EdgeFeaturizer):
        def __call__(self, residues):
            return edges(len(residues))

    with pytest.raises(ComponentError, match=words):
        FeaturePlan(["faulty_edges"]).precompute(pg.clean(pg.load_structure(structures_dir / "1crn.bcif")))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: None, "returns None"),
        (lambda f: {"edge_dist": f["edge_vec"]}, r"\(\d+, 3\).*\(\d+, 1\)"),
        (lambda f: {"edge_dist": 3}, "'edge_dist' as a int"),
        (lambda f: f["edge_vec"] @ f["edge_vec"], "RuntimeError"),
    ],
)
def test_a_wrong_tensor_featurizer_is_named(structures_dir, call, words):
    @pg.featurizers.register("faulty_tensor")
    class Faulty(pg.TensorFeaturizer):
        reads, writes = ("edge_vec",), ("edge_dist",)

        def __call__(self, f):
            return call(f)

    residues = pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))
    with pytest.raises(ComponentError, match=words) as raised:
        pg.build_graph(residues, ["knn", "edge_vector", "faulty_tensor"])
    assert raised.value.name == "faulty_tensor"


TARGET = pg.Target("two", "node", "classification", 2)


ACCURACY = registry.metrics.get("accuracy")


def task(derive=lambda r: np.zeros(len(r), np.int64), loss=cross_entropy, metric=ACCURACY) -> pg.Task:
    return pg.Task("own", TARGET, loss, (metric,), metric.name, derive=derive)


def failing(*args):
    raise ValueError("own bug")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("derive", "words"),
    [
        (failing, "ValueError: own bug"),
        (lambda r: None, "returns None"),
        (lambda r: [0] * len(r), "a list"),
        (lambda r: np.zeros(len(r) + 1, np.int64), r"\(47,\).*\(46,\)"),
        (lambda r: np.zeros(len(r)), "float64"),
        (lambda r: np.full(len(r), 2), "lie in 2…2"),
        (lambda r: sys.exit("bye"), r"calls sys.exit\('bye'\)"),
        (lambda r: r.pos.sort(), "read-only"),
    ],
)
def test_a_wrong_derive_is_named(small, tmp_path, derive, words):
    with pytest.raises(ComponentError, match=words) as raised:
        fit(model(), small, task(derive), config=CONFIG, cache=tmp_path)
    error = raised.value
    assert (error.kind, error.name, error.protein) == ("task", "own", "1crn") and "derive" in str(error)
    assert "test_component_faults.py:" in error.location
    assert ". on '1crn'" not in str(error)


@pytest.mark.slow
def test_a_derive_that_fails_on_one_protein_is_a_failure_of_that_protein(small, tmp_path):
    def derive(residues):
        if residues.name == "2erl":
            raise ValueError("own bug")
        return np.zeros(len(residues), np.int64)

    own = task(derive)
    prepared = prepare(load_dataset(small, task=own), own, FeaturePlan([]), cache=tmp_path)
    [failure] = prepared.failures
    assert (failure.protein, failure.error_type) == ("2erl_A", "ComponentError")
    assert "'own'" in failure.message and "test_component_faults.py:" in failure.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": failing}, "loss.* failed: ValueError: own bug"),
        ({"loss": lambda x, y: nn.functional.cross_entropy(x, y, reduction="none")}, r"loss.*of shape \(\d+,\)"),
        ({"metric": Metric("mine", "max", failing)}, "metric 'mine' failed: ValueError: own bug"),
        ({"metric": Metric("mine", "max", lambda o: None)}, "metric 'mine' failed: TypeError"),
    ],
)
def test_a_wrong_loss_or_metric_is_named(small, tmp_path, changes, words):
    with pytest.raises(ComponentError, match=words) as raised:
        fit(model(), small, task(**changes), config=CONFIG, cache=tmp_path)
    assert (raised.value.kind, raised.value.name) == ("task", "own")


@pytest.mark.slow
def test_a_layer_that_returns_nan_is_named(small, tmp_path):
    @pg.layers.register("nan_layer")
    class Nan(pg.GraphLayer):
        reads, writes = ("h",), ("h",)

        def __init__(self, fields):
            super().__init__(fields)
            self.declare(h=fields["h"].irreps)

        def forward(self, f):
            return {"h": f["h"] / 0 * 0}

    with pytest.raises(ComponentError, match="'h' with values that are not finite") as raised:
        fit(model(layers=("nan_layer",)), small, "helix", config=CONFIG, cache=tmp_path)
    error = raised.value
    assert (error.kind, error.name) == ("layer", "nan_layer") and "layers[1] of model 'm'" in str(error)
    assert error.location == f"{__file__}:{inspect.getsourcelines(Nan.forward)[1]}"


def test_a_head_that_is_registered_as_a_layer_is_named_with_the_target(plugin):
    entries = plugin.parent / "acme_gated-0.3.0.dist-info" / "entry_points.txt"
    entries.write_text("[protgraph.layers]\nacme_head = acme_gated_mod:Faulty\n")
    target = pg.Target("state", "node", "classification", 3, head="acme_head")
    with pytest.raises(UnknownNameError) as raised:
        pg.build_model(model(), target)
    assert "target 'state'" in str(raised.value)
    assert "'acme_head' is a layer (acme-gated 0.3.0)." in str(raised.value)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"card": None}, DatasetError, "'Wrong' has no card"),
        ({"card": {"name": "x"}}, DatasetError, "'Wrong' has a card of type dict"),
        ({"examples": lambda e: [*e, e[0]]}, DatasetError, "two examples have the id '1crn_A'"),
        ({"examples": lambda e: [replace(e[0], split="tarin"), *e[1:]]}, DatasetError, "'1crn_A'.*'tarin'.*train, val"),
        ({"examples": lambda e: [*e, replace(e[0], id="x", split="val")]}, DatasetError, "'1crn_A'.*'x'.*same protein"),
        ({"examples": lambda e: [x.path for x in e]}, DatasetError, "PosixPath.*Example"),
        ({"examples": lambda e: e[99]}, ComponentError, "'small'.*examples failed: IndexError"),
        ({"labels": lambda x: np.zeros(3)}, DatasetError, "'small'.*'1crn_A'.*ndarray.*ResidueLabels"),
        ({"labels": lambda x: x.missing}, ComponentError, "labels failed on '1crn_A': AttributeError"),
    ],
)
def test_a_wrong_dataset_is_named(small, tmp_path, change, error, words):
    class Wrong(Small):
        def examples(self, task, split=None):
            return change.get("examples", lambda e: e)(super().examples(task, split))

        def labels(self, task, example):
            return change.get("labels", lambda x: x)(super().labels(task, example))

    wrong = Wrong.__new__(Wrong)
    vars(wrong).update(vars(small))
    if "card" in change:
        wrong.card = change["card"]
    with pytest.raises(error, match=words):
        fit(model(), wrong, "helix", config=CONFIG, cache=tmp_path)


def test_a_path_given_as_text_is_a_path(small, tmp_path):
    class Texts(Small):
        def examples(self, task, split=None):
            found = super().examples(task, split)
            return [pg.Example(e.id, str(e.path), e.chains[0], e.split) for e in found]

    texts = Texts.__new__(Texts)
    vars(texts).update(vars(small))
    assert prepare(texts, task(), FeaturePlan([]), cache=tmp_path) if "own" in texts.tasks() else True
    [first, *_] = texts.examples("helix")
    assert first == small.examples("helix")[0]


def test_a_dataset_without_the_task_is_named(small):
    with pytest.raises(UnknownNameError, match="'small'.*'helx'.*'helix'"):
        fit(model(), small, "helx", config=CONFIG)


def test_an_error_survives_pickling():
    import pickle

    error = ComponentError("m", kind="layer", name="n", source="s 1", protein="p", location="f:1")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error)) and torch.is_grad_enabled()

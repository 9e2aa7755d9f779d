"""Checks of tasks and datasets: honest ones pass, and each broken one is found by the check for its defect."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

import protgraph as pg
from protgraph import registry
from protgraph.task import Metric, binary_cross_entropy, cross_entropy, squared_error
from protgraph.testing import CHECKS, check_component, find_components

BUILT_IN = [*pg.tasks.names()]


def failed(what: object, *, full: bool = False) -> dict[str, str]:
    """Return the messages of the checks that fail, by name."""
    (component,) = find_components(what)
    return {r.check: r.message for r in check_component(component, full=full) if not r.ok}


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_task_passes_every_check(name):
    (component,) = find_components(name, kind="task")
    assert [r for r in check_component(component) if not r.ok] == []


def near(residues: pg.Residues) -> np.ndarray:
    """Return 1 for residues with more than five CA atoms within 10 Å, else 0."""
    distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
    return ((distance < 10).sum(1) > 6).astype(np.int64)


HONEST = pg.Task(
    "near",
    pg.Target("near", "node", "classification", 2),
    cross_entropy,
    (registry.metrics.get("accuracy"), registry.metrics.get("macro_f1")),
    "accuracy",
    derive=near,
    doc="Crowded residues.",
)
VALUES = pg.Task(
    "depth",
    pg.Target("depth", "node", "regression", 1),
    squared_error,
    (registry.metrics.get("rmse"),),
    "rmse",
    derive=lambda r: np.linalg.norm(r.pos - r.pos.mean(0), axis=1, keepdims=True).astype(np.float32),
    doc="Distance to the center.",
)
PER_PROTEIN = pg.Task(
    "long",
    pg.Target("long", "graph", "multilabel", 1),
    binary_cross_entropy,
    (registry.metrics.get("auroc"),),
    "auroc",
    derive=lambda r: np.array([[len(r) > 10]], np.float32),
    doc="More than ten residues.",
)


@pytest.mark.parametrize("task", [HONEST, VALUES, PER_PROTEIN], ids=lambda t: t.name)
def test_an_honest_task_passes_every_check(task):
    assert failed(task) == {}


def per_entry(logits, y):
    return functional.cross_entropy(logits, y.clamp(min=0), reduction="none")


def raising(*args):
    raise ValueError("own bug")


def seeding(logits, y):
    torch.manual_seed(0)
    return cross_entropy(logits, y)


def of_unknown(logits, y):
    return cross_entropy(logits, y) + logits[y < 0].square().sum()


def negating(predictions):
    predictions.logits.neg_()
    return 0.5


def metric(function, mode: str = "max") -> dict[str, object]:
    return {"metrics": (Metric("mine", mode, function),), "monitor": "mine"}


#: Change of the honest task → the check that finds it, and part of its message.
BROKEN_TASKS = {
    "no description": ({"doc": ""}, "builds", "doc"),
    "unknown head": ({"target": pg.Target("near", "node", "classification", 2, head="nohead")}, "builds", "nohead"),
    "derive raises": ({"derive": raising}, "derived_labels", "test_task_and_dataset_checks.py:"),
    "derive exits": ({"derive": lambda r: sys.exit(5)}, "derived_labels", "sys.exit(5)"),
    "derive gives None": ({"derive": lambda r: None}, "derived_labels", "None"),
    "wrong length": ({"derive": lambda r: near(r)[1:]}, "derived_labels", "(18,)"),
    "floats": ({"derive": lambda r: near(r).astype(np.float32)}, "derived_labels", "float32"),
    "out of range": ({"derive": lambda r: near(r) + 1}, "derived_labels", "lie in"),
    "all unknown": ({"derive": lambda r: 0 * near(r) - 1}, "derived_labels", "all derived labels"),
    "upper half": ({"derive": lambda r: (r.pos[:, 2] > 0).astype(np.int64)}, "label_symmetry", "orientation"),
    "vector loss": ({"loss": per_entry}, "loss", "(26,)"),
    "loss raises": ({"loss": raising}, "loss", "own bug"),
    "negative loss": ({"loss": lambda x, y: -cross_entropy(x, y)}, "loss", "least value"),
    "no gradient": ({"loss": lambda x, y: cross_entropy(x.detach(), y)}, "loss", "gradient"),
    "mean of nothing": ({"loss": lambda x, y: functional.cross_entropy(x, y, ignore_index=-1)}, "loss", "unknown"),
    "random loss": ({"loss": lambda x, y: cross_entropy(x, y) * (1 + 0.1 * torch.rand(()))}, "loss", "then"),
    "seed in the loss": ({"loss": seeding}, "loss", "seeds the random state of torch"),
    "loss without the first residue": ({"loss": lambda x, y: cross_entropy(x[1:], y[1:])}, "loss", "ignores 1 of"),
    "loss without class 1": ({"loss": lambda x, y: cross_entropy(x, y.masked_fill(y == 1, -1))}, "loss", "ignores"),
    "loss of unknown labels": (
        {"loss": of_unknown},
        "loss",
        "unknown",
    ),
    "labels of rows": ({"derive": lambda r: np.arange(len(r)) % 2}, "label_symmetry", "order of the chains"),
    "labels of chain names": ({"derive": lambda r: (r.chain == "A").astype(np.int64)}, "label_symmetry", "names"),
    "labels of author numbers": ({"derive": lambda r: r.res_id % 2}, "label_symmetry", "author residue numbers"),
    "sum": ({"loss": lambda x, y: cross_entropy(x, y) * (y >= 0).sum()}, "loss", "100 copies"),
    "loss of 1,000 rows": ({"loss": lambda x, y: cross_entropy(x[:1000], y[:1000])}, "loss", "ignores"),
    "metric of unknown labels": (
        metric(lambda o: float((o.logits.argmax(1) == o.y.clamp(min=0)).float().mean())),
        "metrics",
        "unknown",
    ),
    "metric of the first rows": (
        metric(lambda o: float((o.logits.argmax(1) == o.y)[:13][o.y[:13] >= 0].float().mean())),
        "metrics",
        "last half",
    ),
    "metric that changes logits": (metric(negating), "metrics", "changes 'logits'"),
    "metric that seeds": (metric(lambda o: (torch.manual_seed(0), 0.5)[1]), "metrics", "seeds random"),
    "random metric": (metric(lambda o: float(torch.rand(()))), "metrics", "random"),
    "constant metric": (metric(lambda o: 0.5), "metrics", "does not depend"),
    "metric raises": (metric(raising), "metrics", "own bug"),
    "wrong direction": (metric(registry.metrics.get("accuracy").function, "min"), "metrics", "mode is 'min'"),
    "NaN": (metric(lambda o: float("nan")), "metrics", "nan"),
}


@pytest.mark.parametrize("defect", BROKEN_TASKS)
def test_a_broken_task_is_found(defect):
    changes, check, words = BROKEN_TASKS[defect]
    messages = failed(replace(HONEST, **changes))
    assert next(iter(messages)) == check and words in messages[check]


def test_values_that_depend_on_the_position_are_found():
    task = replace(VALUES, derive=lambda r: r.pos[:, :1].astype(np.float32))
    assert "label_symmetry" in failed(task)


#: Loss of values → part of the message of the check that finds it.
BROKEN_LOSSES = {
    "least at y + 1": (lambda x, y: squared_error(x - 1, y), "is added to all"),
    "least at y - 1": (lambda x, y: squared_error(x + 1, y), "is added to all"),
    "no punishment above": (lambda x, y: squared_error(x - 0.2, y).clamp(min=0), "is added to all"),
    "values above 0 only": (lambda x, y: squared_error(x[y[:, 0] > 0], y[y[:, 0] > 0]), "ignores"),
}


@pytest.mark.parametrize("defect", BROKEN_LOSSES)
def test_a_broken_loss_of_values_is_found(defect):
    loss, words = BROKEN_LOSSES[defect]
    assert words in failed(replace(VALUES, loss=loss))["loss"]


def test_another_registry_name_is_found():
    pg.tasks.register("other_name", HONEST)
    assert "'near'" in failed("other_name")["builds"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, structures_dir) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    for name in ("1crn", "2erl", "1vii"):
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    shutil.copy(structures_dir / "1crn.bcif", folder / "copy.bcif")
    return folder


class Mini(pg.Dataset):
    """Three proteins with a label per residue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        target = pg.Target("site", "node", "classification", 2)
        counts = {"train": pg.SplitCount(2, 82), "val": pg.SplitCount(1, 36)}
        task = pg.TaskCard(target, "made up", "all", counts)
        self.card = pg.DatasetCard("mini", "1", "CC0", "", "", "by hand", counts, {"site": task})

    def examples(self, task, split=None):
        splits = {"1crn": "train", "2erl": "train", "1vii": "val"}
        found = [pg.Example(name, self.folder / f"{name}.bcif", None, own) for name, own in splits.items()]
        return [e for e in found if split in (None, e.split)]

    def labels(self, task, example):
        r = self.read(example)
        return pg.ResidueLabels(r.chain, r.res_id, r.ins_code, np.arange(len(r)) % 2)


def test_honest_datasets_pass_every_check(folder):
    real = Mini(folder)
    counts = real.check("site")
    task = replace(real.card.tasks["site"], counts=counts)
    real.card = replace(real.card, splits=counts, tasks={"site": task})
    assert failed(real, full=True) == {}


def changed(examples=lambda e: e, labels=lambda y: y, **card):
    class Broken(Mini):
        def __init__(self, folder):
            super().__init__(folder)
            self.card = replace(self.card, **card)

        def examples(self, task, split=None):
            found = examples(super().examples(task))
            return [e for e in found if split in (None, e.split)]

        def labels(self, task, example):
            return labels(super().labels(task, example))

    return Broken


def shifted(step: int):
    class Shifted(Mini):
        """Charged residues and alanines, with the labels of neighbors."""

        def labels(self, task, example):
            r = self.read(example)
            return pg.ResidueLabels(r.chain, r.res_id, r.ins_code, np.isin(np.roll(r.aatype, -step), TYPES).astype(int))

    return Shifted


class NearCopy(Mini):
    """A protein in another split without its first three residues."""

    def examples(self, task, split=None):
        found = [*super().examples(task), pg.Example("x", self.folder / "copy.bcif", None, "val")]
        return [e for e in found if split in (None, e.split)]

    def read(self, example):
        residues = super().read(example)
        return residues.select(np.arange(len(residues)) > 2) if example.id == "x" else residues


#: Types of half of the residues.
TYPES = [0, 2, 5, 8, 9, 11, 15, 16]


class WithoutCard(Mini):
    def __init__(self, folder):
        self.folder = folder


#: Defect → the dataset, the check that finds it, and part of its message.
BROKEN_DATASETS = {
    "no card": (WithoutCard, "builds", "no card"),
    "unknown split": (changed(lambda e: [replace(e[0], split="tarin"), *e[1:]]), "examples", "'tarin'"),
    "two of one id": (changed(lambda e: [*e, e[0]]), "examples", "'1crn'"),
    "missing file": (changed(lambda e: [replace(e[0], path=Path("nothere.pdb")), *e[1:]]), "examples", "nothere.pdb"),
    "one file in two splits": (changed(lambda e: [*e, replace(e[0], id="x", split="val")]), "examples", "same protein"),
    "a copy in another split": (
        changed(lambda e: [*e, pg.Example("x", e[0].path.with_name("copy.bcif"), None, "val")]),
        "separate_splits",
        "same sequence",
    ),
    "most of another protein": (
        NearCopy,
        "separate_splits",
        "is a copy of '1crn'",
    ),
    "labels of the next residue": (shifted(1), "labels", "+1 along the chain"),
    "labels of the residue before": (shifted(-1), "labels", "-1 along the chain"),
    "no Labels": (changed(labels=lambda y: y.values), "labels", "ndarray"),
    "labels of absent residues": (changed(labels=lambda y: replace(y, res_id=y.res_id + 500)), "labels", "absent"),
    "float classes": (changed(labels=lambda y: replace(y, values=y.values / 2)), "labels", "float32"),
    "all unknown": (changed(labels=lambda y: replace(y, values=0 * y.values - 1)), "labels", "no label"),
    "nothing derives": (changed(labels=lambda y: None), "labels", "derives"),
    "another count": (changed(), "counts", "residues"),
}


@pytest.mark.parametrize("defect", BROKEN_DATASETS)
def test_a_broken_dataset_is_found(folder, defect):
    broken, check, words = BROKEN_DATASETS[defect]
    messages = failed(broken(folder), full=check == "counts")
    assert next(iter(messages)) == check and words in messages[check]


def test_every_check_of_tasks_and_datasets_finds_a_broken_one():
    own = {c.name for c in CHECKS if {"task", "dataset"} & set(c.kinds)}
    assert own == {check for _, check, _ in (*BROKEN_TASKS.values(), *BROKEN_DATASETS.values())}


@pytest.mark.slow
def test_the_embedded_dataset_passes_every_check():
    (component,) = find_components("pdb_core", kind="dataset")
    assert [r for r in check_component(component, full=True) if not r.ok] == []


@pytest.mark.slow
def test_the_command_prints_the_fault_once_with_its_line(capsys):
    from protgraph.cli.app import main

    @pg.featurizers.register("checked_raises")
    class Raises(pg.StructureFeaturizer):
        writes = ("b_factor",)

        def __call__(self, residues):
            raise ValueError("own bug")

    with pytest.raises(SystemExit) as ended:
        main(["check", "checked_raises"])
    out = capsys.readouterr().out
    assert ended.value.code == 1 and out.count("own bug") == 1 and out.count("the same fault as in reads_writes") > 5
    assert f"{Path(__file__).name}:" in out


def test_a_dataset_that_is_not_prepared_is_skipped_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    (component,) = find_components("dna_site", kind="dataset")
    [report] = check_component(component)
    assert (report.status, report.check) == ("skipped", "builds")
    assert "protgraph data prepare dna_site" in report.message

"""Featurizers that reproduce the label of a task are refused by name; others are not."""

from __future__ import annotations

import numpy as np
import pytest

import protgraph as pg
from protgraph import registry
from protgraph.errors import LeakError
from protgraph.featurize.plan import FeaturePlan
from protgraph.labels import load_dataset, prepare
from protgraph.labels.checks import reproduces
from protgraph.structure.descriptors.dssp import dssp, three_states
from protgraph.task import cross_entropy, squared_error
from protgraph.task.builtin import secondary_structure
from tests.train.conftest import CHAINS, Small

RNG = np.random.default_rng(0)
STATES = RNG.integers(0, 3, 300)
VALUES = RNG.normal(size=(300, 1)).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (STATES[:, None], STATES),
        (STATES[:, None] * -0.37 + 5, STATES),
        (np.eye(3)[STATES], STATES),
        (np.eye(3)[STATES][:, :2], STATES),
        (np.concatenate([RNG.normal(size=(300, 4)), np.eye(3)[STATES]], 1), STATES),
        (np.eye(3)[np.r_[STATES[STATES > 0], 0, 0]], np.r_[STATES[STATES > 0], 0, 0]),
        (np.eye(9)[STATES * 3 + RNG.integers(0, 3, 300)], STATES),
        (np.where(STATES == 1, 2.5, 0.5)[:, None], (STATES[:, None] == 1).astype(np.float32)),
        (VALUES, VALUES),
        (-3 * VALUES + 7, VALUES),
        (np.concatenate([RNG.normal(size=(300, 2)), 2 * VALUES], 1), VALUES),
        (RNG.normal(size=(300, 3)) @ np.zeros((3, 3)) + VALUES, np.repeat(VALUES, 3, 1)[:, None]),
    ],
    ids=[
        *("equal", "renamed", "one-hot", "one-hot without a class", "one-hot among others", "one-hot, rare class"),
        "nine states of three",
        *("two values", "equal value", "affine", "affine among others", "vectors"),
    ],
)
def test_a_copy_of_the_label_is_found(x, y):
    assert reproduces(np.asarray(x, np.float32), y)


NOISE = RNG.normal(size=(300, 1)).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (NOISE, STATES),
        (STATES[:, None] + 0.1 * NOISE, STATES),  # a threshold separates the classes
        (np.eye(3)[np.where(RNG.random(300) < 0.02, (STATES + 1) % 3, STATES)], STATES),  # 98 % equal
        (np.arange(300)[:, None], STATES),  # a value for each row
        (np.ones((300, 2)), STATES),
        (VALUES + 0.05 * NOISE, VALUES),  # r = 0.999
        (np.zeros((300, 1)), VALUES),
        (VALUES**3, VALUES),
        (STATES[:4, None], STATES[:4]),  # too few
    ],
    ids=["noise", "threshold", "98 %", "row number", "constant", "r = 0.999", "zero", "cube", "four rows"],
)
def test_other_features_are_allowed(x, y):
    assert not reproduces(np.asarray(x, np.float32), y)


@pytest.fixture
def small(structures_dir) -> Small:
    return Small(structures_dir, {"train": CHAINS["train"], "val": CHAINS["val"]})


def register(function, spec: str = "1x0e") -> FeaturePlan:
    """Register a featurizer of one field, and return the plan with it."""
    pg.register_field(pg.FieldSpec(f"leak_test_{spec[0]}", "node", spec, doc="a field of a test"))

    @pg.featurizers.register("copies_the_label")
    class Copies(pg.StructureFeaturizer):
        writes = (f"leak_test_{spec[0]}",)

        def __call__(self, residues):
            return {self.writes[0]: np.asarray(function(residues), np.float32)}

    return FeaturePlan(["dihedral", "copies_the_label"])


def three(residues):
    return np.eye(3)[np.maximum(secondary_structure(residues), 0)]


def eight(residues):
    return np.eye(9)[["HBEGITSP-".find(s) for s in dssp(residues).tolist()]]


@pytest.mark.slow
@pytest.mark.parametrize("function", [three, lambda r: eight(r)[:, :9]], ids=["three states", "DSSP states"])
def test_states_of_dssp_under_another_name_are_refused(small, tmp_path, function):
    plan = register(function, "3x0e" if function is three else "9x0e")
    task = pg.tasks.get("secondary_structure")
    with pytest.raises(LeakError, match="'copies_the_label'") as raised:
        prepare(load_dataset(small, task=task), task, plan, cache=tmp_path)
    assert "'secondary_structure'" in str(raised.value) and "dihedral" not in str(raised.value)
    with pytest.raises(LeakError):  # also if the graphs are prepared
        prepare(load_dataset(small, task=task), task, plan, cache=tmp_path)


@pytest.mark.slow
def test_a_task_can_allow_a_featurizer(small, tmp_path):
    plan = register(three, "3x0e")
    task = pg.Task(
        "readable",
        pg.Target("readable", "node", "classification", 3),
        cross_entropy,
        (registry.metrics.get("accuracy"),),
        "accuracy",
        pg.InputMasking(readable_featurizers={"copies_the_label"}),
        derive=secondary_structure,
    )
    assert prepare(load_dataset(small, task=task), task, plan, cache=tmp_path).failures == ()


@pytest.mark.slow
def test_a_value_per_protein_is_refused(structures_dir, tmp_path):
    names = tuple(name for split in CHAINS.values() for name in split)
    data = Small(structures_dir, {"train": names, "val": ("1vii_A",)})
    plan = register(lambda r: np.full((len(r), 1), 0.1 * len(r)))
    task = pg.Task(
        "length",
        pg.Target("length", "graph", "regression", 1),
        squared_error,
        (registry.metrics.get("rmse"),),
        "rmse",
        derive=lambda r: np.array([[len(r)]], np.float32),
    )
    with pytest.raises(LeakError, match="'copies_the_label'.*up to a linear map"):
        prepare(load_dataset(data, task=task), task, plan, cache=tmp_path)


@pytest.mark.slow
def test_features_of_visible_types_are_no_leak_of_masked_types(small, tmp_path):
    """The label is masked at each use, after the features of the structure are made."""
    for name in ("masked_lm", "next_residue", "inverse_folding"):
        task = pg.tasks.get(name)
        plan = FeaturePlan(["residue_one_hot", "previous_residue"])
        assert prepare(load_dataset(small, task=task), task, plan, cache=tmp_path).failures == ()


def test_three_states_are_those_of_the_task(small):
    residues = small.read(small.examples("helix")[0])
    assert [("HEC-"[s]) for s in secondary_structure(residues)] == three_states(dssp(residues)).tolist()

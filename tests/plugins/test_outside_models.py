"""Models that an outside package writes with public names in 60 lines or fewer: they pass the suite and train."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest
import torch

import protgraph as pg
from tests.plugins.outside import dimenet, near_and_far, painn, recurrent

MODULES = [painn, dimenet, near_and_far, recurrent]
SMALL = ("1crn", "2erl", "1ajj", "1vii")


@pytest.fixture(scope="module")
def dataset(structures_dir, tmp_path_factory) -> pg.Dataset:
    """Four small structures."""
    folder = tmp_path_factory.mktemp("outside")
    for name in SMALL:
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    return pg.load_dataset(folder, task="secondary_structure")


def name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_it_has_at_most_60_lines(module):
    assert len(Path(module.__file__).read_text().splitlines()) <= 60


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_it_trains(module, dataset):
    config = pg.FitConfig(epochs=4, lr=1e-2, device="cpu")
    result = pg.fit(module.MODEL, dataset, "secondary_structure", config=config)
    losses = [row["train_loss"] for row in result.history]
    assert losses[-1] < losses[0]
    untrained = pg.build_model(module.MODEL, result.model.target, seed=0)
    changed = [not torch.equal(a, b) for a, b in zip(untrained.parameters(), result.model.parameters(), strict=True)]
    assert all(changed)


@pg.testing.parametrize_with_checks([component for module in MODULES for component in module.CHECKED])
def test_conformity(component, check):
    check(component)

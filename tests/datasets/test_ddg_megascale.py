"""Dataset of folding free energies of small domains: counts, sign, published floor."""

from __future__ import annotations

import json

import numpy as np
import pytest
from protgraph_plugins.published import SourceFolder, prepare_dataset

import protgraph as pg
from tests.datasets.public_layouts import lay_out_bioemu


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "mutations" / "megascale_subset"


def test_mutants_and_the_error_of_zero_are_those_of_the_source(folder, tmp_path):
    dataset = type(pg.datasets.create("ddg_megascale"))(folder=str(tmp_path))
    source = lay_out_bioemu(folder, tmp_path / "bioemu-benchmarks")
    variants = list(dataset.variants(SourceFolder(source, tmp_path)))
    values = np.array([v.value for v in variants])
    floor = json.loads((folder / "rivals.json").read_text())["floor_zero"]["ddg"]
    assert len(variants) == floor["n"] == 269 and (values > 0).sum() == 225 and (values > 1).sum() == 104
    assert np.sqrt((values**2).mean()) == pytest.approx(floor["rmse"], abs=1e-4)
    assert dataset.card.tasks["ddg_stability"].floors[0].value == floor["rmse"]
    assert sum("," in v.mutations for v in variants) == 29


@pytest.mark.slow
def test_the_prepared_set_has_the_counts_of_the_card(folder, tmp_path):
    dataset = type(pg.datasets.create("ddg_megascale"))(folder=str(tmp_path / "made"))
    assert prepare_dataset(dataset, lay_out_bioemu(folder, tmp_path / "bioemu-benchmarks")).failures == 0

"""Predictions of Paragraph's published weights against the published example."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.paragraph import binding_loops

import protgraph as pg
from protgraph.errors import MissingExtraError, SelectionError
from protgraph.model import pretrained


@pytest.fixture
def folder(shared_data, monkeypatch):
    found = shared_data / "weights" / "paragraph"
    monkeypatch.setenv("PROTGRAPH_PARAGRAPH", str(found))
    return found


@torch.no_grad()
def test_the_published_example_is_reproduced(folder):
    with open(folder / "example_predictions.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    loops = binding_loops(pg.clean(pg.load_structure(folder / "4edw.pdb")))
    assert loops.ids == [f"{row['chain_id']}:{row['IMGT']}" for row in rows]
    assert loops.res_name.tolist() == [row["AA"] for row in rows]
    model = pretrained("paragraph.paired")
    assert model.num_parameters == 51_459
    found = model(pg.collate([model.plan.precompute(loops)]))["logits"].sigmoid()[:, 0]
    want = np.array([float(row["pred"]) for row in rows])
    assert np.abs(found.double().numpy() - want).max() <= 1e-6


def test_single_chains_have_separate_weights(folder):
    whole = pg.clean(pg.load_structure(folder / "4edw.pdb"))
    both = binding_loops(whole)
    for name, heavy, light in (("heavy", "H", ""), ("light", "", "L")):
        loops = binding_loops(whole, heavy=heavy, light=light)
        assert loops.ids == [i for i in both.ids if i[0] == heavy + light]
        model = pretrained(f"paragraph.{name}")
        p = model(pg.collate([model.plan.precompute(loops)]))["logits"].sigmoid()
        assert 0.1 < p.max() <= 1


def test_a_protein_without_binding_loops_is_an_error(structures_dir):
    residues = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    with pytest.raises(SelectionError, match="'H'"):
        binding_loops(residues)
    with pytest.raises(SelectionError, match="IMGT"):
        binding_loops(replace(residues, res_id=residues.res_id + 500), heavy="A", light="")


def test_the_error_without_weights_has_the_folder_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_PARAGRAPH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="PROTGRAPH_PARAGRAPH"):
        pretrained("paragraph.paired")

"""A model that tells all types at once draws each residue by itself, from what it says of the backbone alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.design import DesignSpec, design_sequences, score_sequences
from protgraph.errors import WiringError
from protgraph.model import build_model
from protgraph.task.builtin import BACKBONE_ALONE, INVERSE_FOLDING, SECONDARY_STRUCTURE


@pytest.fixture(scope="module")
def residues(structures_dir):
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def model():
    made = build_model("gcn", INVERSE_FOLDING.target, seed=0).eval()
    with torch.no_grad():  # a new head says the same of all
        made.head.last.weight.normal_(std=0.5, generator=torch.Generator().manual_seed(1))
    return made


@pytest.fixture(scope="module")
def told(model, residues):
    with torch.no_grad():
        return model(collate([model.plan.precompute(residues.hide(BACKBONE_ALONE))]))["logits"].log_softmax(1).double()


@pytest.mark.parametrize("mode", ["forced", "conditional", "unconditional"])
def test_every_mode_of_scoring_says_what_the_model_says_of_the_backbone(model, residues, told, mode):
    (found,) = score_sequences(model, [residues], mode=mode)
    assert np.allclose(found.log_probs, told, atol=1e-6)


def test_native_types_change_nothing(model, residues, told):
    other = replace(residues, aatype=(residues.aatype + 7) % 20)
    (found,) = score_sequences(model, [other])
    assert np.allclose(found.log_probs, told, atol=1e-6)
    assert np.array_equal(found.aatype, other.aatype)


def test_the_likeliest_types_are_drawn_when_it_is_cold(model, residues, told):
    (made,) = design_sequences(model, [residues], temperature=0.0)
    assert np.array_equal(made.aatype[0], told.argmax(1))


def test_types_are_drawn_as_often_as_they_are_likely(model, residues, told):
    (made,) = design_sequences(model, [residues], copies=2000, temperature=1.0, seed=3)
    drawn = np.stack([(made.aatype == t).mean(0) for t in range(20)], 1)  # (N, 20)
    p = told.exp().numpy()
    assert (np.abs(drawn - p) < 5 * np.sqrt(p * (1 - p) / 2000) + 2e-3).all()


def test_wishes_are_heard(model, residues):
    wish = DesignSpec(fixed="A:1-10", omit="L", tied=("A:20-25,A:30-35",))
    (made,) = design_sequences(model, [residues], wish, copies=5, temperature=1.0, seed=0)
    assert (made.aatype[:, :10] == residues.aatype[:10]).all()
    assert not (made.aatype[:, 10:] == 9).any()  # L
    assert (made.aatype[:, 19:25] == made.aatype[:, 29:35]).all()


def test_a_model_of_something_else_is_refused(residues):
    other = build_model("gcn", SECONDARY_STRUCTURE.target, seed=0)
    with pytest.raises(WiringError, match="'secondary_structure'"):
        list(design_sequences(other, [residues]))

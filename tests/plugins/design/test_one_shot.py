"""Design with models without a decoder: each residue is sampled independently given the backbone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import DesignSpec, design_sequences, score_sequences

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import WiringError
from protgraph.model import build_model
from protgraph.task import BACKBONE_ALONE
from protgraph.task.builtin import INVERSE_FOLDING, SECONDARY_STRUCTURE


@pytest.fixture(scope="module")
def residues(structures_dir):
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def model():
    network = build_model("gcn", INVERSE_FOLDING.target, seed=0).eval()
    with torch.no_grad():  # an untrained head gives uniform logits
        network.head.last_linear.weight.normal_(std=0.5, generator=torch.Generator().manual_seed(1))
    return network


@pytest.fixture(scope="module")
def log_probs(model, residues):
    with torch.no_grad():
        return model(collate([model.plan.precompute(residues.hide(BACKBONE_ALONE))]))["logits"].log_softmax(1).double()


@pytest.mark.parametrize("mode", ["teacher_forced", "conditional", "unconditional"])
def test_all_scoring_modes_give_the_log_probabilities_of_the_model(model, residues, log_probs, mode):
    (scores,) = score_sequences(model, [residues], mode=mode)
    assert np.allclose(scores.log_probs, log_probs, atol=1e-6)


def test_native_types_do_not_change_log_probabilities(model, residues, log_probs):
    other = replace(residues, aatype=(residues.aatype + 7) % 20)
    (scores,) = score_sequences(model, [other])
    assert np.allclose(scores.log_probs, log_probs, atol=1e-6)
    assert np.array_equal(scores.aatype, other.aatype)


def test_temperature_zero_takes_the_most_probable_types(model, residues, log_probs):
    (design,) = design_sequences(model, [residues], temperature=0.0)
    assert np.array_equal(design.aatype[0], log_probs.argmax(1))


def test_types_are_sampled_with_their_probabilities(model, residues, log_probs):
    (design,) = design_sequences(model, [residues], copies=2000, temperature=1.0, seed=3)
    frequency = np.stack([(design.aatype == t).mean(0) for t in range(20)], 1)  # (N, 20)
    p = log_probs.exp().numpy()
    assert (np.abs(frequency - p) < 5 * np.sqrt(p * (1 - p) / 2000) + 2e-3).all()


def test_the_design_spec_is_applied(model, residues):
    spec = DesignSpec(fixed="A:1-10", omit="L", tied=("A:20-25,A:30-35",))
    (design,) = design_sequences(model, [residues], spec, copies=5, temperature=1.0, seed=0)
    assert (design.aatype[:, :10] == residues.aatype[:10]).all()
    assert not (design.aatype[:, 10:] == 9).any()  # L
    assert (design.aatype[:, 19:25] == design.aatype[:, 29:35]).all()


def test_a_model_of_another_target_is_an_error(residues):
    other = build_model("gcn", SECONDARY_STRUCTURE.target, seed=0)
    with pytest.raises(WiringError, match="'secondary_structure'"):
        list(design_sequences(other, [residues]))

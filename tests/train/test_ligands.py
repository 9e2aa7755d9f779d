"""Ligand atoms as input of training; the task ligand_binding hides them."""

from __future__ import annotations

import pytest

from protgraph.featurize.plan import FeaturePlan
from protgraph.labels.loading import resolve_task
from protgraph.labels.preparation import prepare
from protgraph.structure import clean, load_structure
from protgraph.task import builtin
from protgraph.train import FitConfig, fit


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_files_are_read_with_ligands_if_a_featurizer_uses_them(small, structures_dir, tmp_path, jobs):
    task = resolve_task("inverse_folding", small)
    prepared = prepare(small, task, FeaturePlan(["context_atoms"]), cache=tmp_path, jobs=jobs)
    store = prepared.splits["train"]
    graph = store[store.names.index("2erl_A")]
    residues = clean(load_structure(structures_dir / "2erl.bcif"), chains=["A"], ligands=True, nucleic=True)
    atoms = residues.ligands.atom_pos
    assert len(atoms) > 0 and graph.context_mask.sum(1).tolist() == [len(atoms)] * len(residues)
    own = {tuple(row) for row in atoms.tolist()}
    assert {tuple(row) for row in graph.context_pos[graph.context_mask].tolist()} == own
    alone = store[store.names.index("1ubq_A")]  # its ligands are waters
    assert not alone.context_mask.any()


def test_the_ligand_binding_task_hides_ligands(structures_dir):
    residues = clean(load_structure(structures_dir / "2erl.bcif"), ligands=True)
    assert len(residues.ligands) and builtin.LIGAND_BINDING.inputs.visible(residues, "2erl").ligands is None
    assert builtin.INVERSE_FOLDING.inputs.visible(residues, "2erl").ligands is residues.ligands


@pytest.mark.slow
def test_context_atoms_contribute_gradients(small, tmp_path):
    found = fit("ligandmpnn", small, "inverse_folding", config=FitConfig(epochs=1, lr=3e-3), cache=tmp_path)
    layer = next(x for x in found.model.layers if type(x).__name__ == "ContextAtomEncoder")
    store = prepare(small, found.task.for_decoder(), found.model.plan, cache=tmp_path).splits["train"]
    for name, has_ligand in (("2erl_A", True), ("1ubq_A", False)):  # with a ligand, and without
        found.model.zero_grad()
        found.model(store[store.names.index(name)])["logits"].square().sum().backward()
        assert bool(layer.pair.weight.grad is not None and layer.pair.weight.grad.any()) == has_ligand

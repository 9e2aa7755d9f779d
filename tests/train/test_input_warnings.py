"""Inputs that make predictions less reliable are reported, with counts, and nothing else is."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph.checkpoint.training_set import TrainingSetSummary
from protgraph.featurize.steps import ProteinRequest
from protgraph.inference import embed, predict
from protgraph.inference.input_warnings import InputChecks, write_warnings
from protgraph.model import ModelSpec
from protgraph.registry import trained_models
from protgraph.registry.component import component
from protgraph.structure import Residues
from protgraph.structure.io import read_residues
from protgraph.train import fit


@pytest.fixture
def ubiquitin(structures_dir) -> Residues:
    return read_residues(structures_dir / "1ubq.bcif")


def kinds(checkpoint, *proteins: Residues) -> dict[str, int]:
    """Return the kinds of warnings of proteins, with the number of residues of the last of each kind."""
    requests = [ProteinRequest(f"{i}.cif", read=lambda r=r: r) for i, r in enumerate(proteins)]
    result = predict(checkpoint, requests, device="cpu")
    assert not result.failures
    assert embed(checkpoint, requests, device="cpu").warnings == result.warnings
    return {w.kind: w.count for w in result.warnings}


def trace(residues: Residues) -> Residues:
    """Return the CA atoms."""
    backbone = residues.backbone.copy()
    backbone[:, [0, 2, 3]] = np.nan
    keep = residues.atom_name == "CA"
    atoms = {name: getattr(residues, name)[keep] for name in ("atom_pos", "atom_name", "atom_element", "atom_residue")}
    return replace(residues, backbone=backbone, **atoms)


def test_a_complete_structure_gives_no_warning(trained, ubiquitin):
    assert kinds(trained.checkpoint(), ubiquitin) == {}


def test_a_ca_trace_is_reported_for_a_model_that_reads_dihedrals(trained, ubiquitin):
    assert kinds(trained.checkpoint(), ubiquitin, trace(ubiquitin)) == {"ca_only": 76}


@pytest.mark.slow
def test_a_ca_trace_is_enough_for_a_model_of_ca_atoms(small, quick, ubiquitin):
    embedded = component("embed", reads=["aatype"], dim=8)
    spec = ModelSpec("trace", features=[component("knn", k=8)], layers=[embedded, component("gcn", dim=8)])
    checkpoint = fit(spec, small, "helix", config=replace(quick, epochs=1)).checkpoint()
    assert not InputChecks(checkpoint).reads_more_than_ca(ubiquitin)
    assert kinds(checkpoint, trace(ubiquitin)) == {}


def test_missing_backbone_atoms_are_counted(trained, ubiquitin):
    backbone = ubiquitin.backbone.copy()
    backbone[[3, 7], 3] = np.nan
    assert kinds(trained.checkpoint(), replace(ubiquitin, backbone=backbone)) == {"missing_backbone": 2}
    backbone[20:40, 0] = np.nan
    few = kinds(trained.checkpoint(), replace(ubiquitin, backbone=backbone))
    assert few == {"missing_backbone": 22, "low_completeness": 22}


@pytest.mark.slow
def test_an_antibody_with_missing_atoms_is_predicted_and_reported(proteinmpnn_folder, structures_dir):
    """The model refuses other proteins, among them a helix of alanines."""
    antibody = read_residues(structures_dir / "2d7t.bcif")
    backbone = antibody.backbone.copy()
    backbone[[3, 7, 150], 3] = np.nan
    checkpoint = trained_models.get("paratope").checkpoint()
    for changed, kind, count in (
        (replace(antibody, backbone=backbone), "missing_backbone", 3),
        (trace(antibody), "ca_only", len(antibody)),
    ):
        result = predict(checkpoint, [ProteinRequest("antibody.cif", read=lambda r=changed: r)], device="cpu")
        assert not result.failures and len(result.rows) == len(antibody)
        assert {w.kind: w.count for w in result.warnings}[kind] == count


def test_all_atoms_at_one_point_are_reported(trained, ubiquitin):
    zero = {name: np.zeros_like(getattr(ubiquitin, name)) for name in ("pos", "backbone", "atom_pos")}
    assert kinds(trained.checkpoint(), replace(ubiquitin, **zero))["repeated_positions"] == 75


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_wrong_units_are_reported(trained, ubiquitin, factor):
    scaled = {name: getattr(ubiquitin, name) * np.float32(factor) for name in ("pos", "backbone", "atom_pos")}
    assert kinds(trained.checkpoint(), replace(ubiquitin, **scaled)) == {"implausible_distances": 75}


def test_residues_of_low_plddt_are_counted_in_predicted_structures_only(trained, ubiquitin):
    confidence = np.where(np.arange(len(ubiquitin)) < 70, 70.0, 69.9)
    model = replace(ubiquitin, b_factor=confidence, predicted=True)
    assert kinds(trained.checkpoint(), model) == {"low_plddt": 6}
    assert kinds(trained.checkpoint(), replace(model, predicted=False)) == {}


def test_residues_left_out_are_named(trained, ubiquitin):
    report = replace(ubiquitin.report, without_ca={"GLY": 1, "LYS": 2}, warnings=("3 elements were guessed",))
    request = ProteinRequest("a.cif", read=lambda: replace(ubiquitin, report=report))
    result = predict(trained.checkpoint(), [request], device="cpu")
    assert [(w.kind, w.count, w.detail) for w in result.warnings] == [
        ("left_out", 3, "GLY 1, LYS 2"),
        ("parser", 1, "3 elements were guessed"),
    ]
    assert len(result.notes) == 2 and all("1 of 1 protein" in note for note in result.notes)


def test_warnings_of_a_file_are_counted_once_for_all_chains(trained, structures_dir):
    dimer = read_residues(structures_dir / "1hf9.bcif")
    report = replace(dimer.report, without_ca={"GLY": 1})
    assert trained.one_chain
    request = ProteinRequest("a.cif", read=lambda: replace(dimer, report=report))
    result = predict(trained.checkpoint(), [request], device="cpu")
    assert [(w.chains, w.kind) for w in result.warnings] == [("", "left_out")]


def test_a_sequence_has_no_missing_atoms(small, quick, ubiquitin):
    checkpoint = fit("sequence_mlp", small, "helix", config=replace(quick, epochs=1)).checkpoint()
    assert kinds(checkpoint, ubiquitin.hide("coordinates")) == {}


def test_the_table_has_a_row_per_warning(trained, ubiquitin, tmp_path):
    request = ProteinRequest("a.cif", read=lambda: trace(ubiquitin))
    warnings = predict(trained.checkpoint(), [request], device="cpu").warnings
    path = write_warnings(tmp_path / "w.csv", warnings)
    with path.open(newline="") as file:
        assert [(r["file"], r["chains"], r["kind"], r["count"]) for r in csv.DictReader(file)] == [
            ("a.cif", "A", "ca_only", "76")
        ]
    assert write_warnings(path, ()) is None and not path.exists()


def test_distances_are_those_of_the_nearest_training_proteins():
    known = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    summary = TrainingSetSummary(known, torch.zeros(6), torch.ones(6), torch.tensor(1.0))
    point = known[3] + 0.1
    slow = sorted(float(((point - k) ** 2).mean() ** 0.5) for k in known)[:5]
    assert float(summary.distance(point[None])) == pytest.approx(np.mean(slow), rel=1e-5)
    assert summary.is_unlike(torch.full((1, 6), torch.nan)).tolist() == [True]


def test_a_small_training_set_has_no_summary(trained):
    assert trained.training_set is None and trained.checkpoint().training_set is None


@pytest.mark.slow
def test_garbage_is_unlike_the_training_set_and_validation_is_not(tmp_path, cache_folder):
    from protgraph.checkpoint import load_checkpoint
    from protgraph.labels import load_dataset
    from protgraph.train import FitConfig

    result = fit("gcn", "pdb_core", "secondary_structure", config=FitConfig(epochs=4, device="cpu"))
    checkpoint = load_checkpoint(result.save(tmp_path / "m.safetensors"))
    for name, value in checkpoint.training_set.tensors().items():
        assert torch.equal(value, result.training_set.tensors()[name])
    examples = load_dataset("pdb_core", task="secondary_structure").examples("secondary_structure", "val")
    proteins = [read_residues(e.path).chains(e.chains) for e in examples]
    rng = np.random.default_rng(0)

    def moved(residues: Residues, pos: np.ndarray) -> Residues:
        step = (pos - residues.pos).astype(np.float32)
        new = {"pos": residues.pos + step, "backbone": residues.backbone + step[:, None]}
        return replace(residues, **new, atom_pos=residues.atom_pos + step[residues.atom_residue])

    def coil(residues: Residues) -> Residues:
        steps = rng.normal(size=residues.pos.shape)
        return moved(residues, np.cumsum(3.8 * steps / np.linalg.norm(steps, axis=1, keepdims=True), 0))

    def unlike(make) -> float:
        requests = [ProteinRequest(str(i), read=lambda r=r: make(r)) for i, r in enumerate(proteins)]
        warnings = predict(checkpoint, requests, device="cpu").warnings
        return sum(w.kind == "unlike_training" for w in warnings) / len(proteins)

    assert unlike(lambda r: r) <= 0.02
    assert unlike(coil) >= 0.95
    assert unlike(lambda r: moved(r, rng.permutation(r.pos))) >= 0.95
    assert unlike(lambda r: moved(r, np.zeros_like(r.pos))) >= 0.95
    assert unlike(lambda r: r.with_noise(3.0, seed=0)) >= 0.95

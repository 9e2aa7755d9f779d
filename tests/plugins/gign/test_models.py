"""Models ``gign``: their edges, invariance on a real complex, and training on a user's own folder."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import protgraph as pg
from protgraph.cli.app import app
from protgraph.data import Target
from protgraph.errors import SelectionError
from protgraph.model import as_model_spec, with_pocket
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.residues import nodes_of

TARGET = Target("pK", "graph", "regression", 1)


@pytest.fixture(scope="module")
def entries(structures_dir) -> dict[str, Residues]:
    """Return complexes of the embedded set whose largest molecule is a ligand, by entry."""
    complexes = {}
    for path in sorted(structures_dir.glob("*.bcif")):
        residues = clean(load_structure(path), ligands=True)
        ligands = residues.ligands
        if ligands is not None and len(ligands) and np.bincount(ligands.atom_molecule).max() >= 15:
            complexes[path.stem] = residues
        if len(complexes) == 4:
            break
    return complexes


@pytest.fixture(scope="module")
def bound(entries) -> Residues:
    return next(iter(entries.values()))


def all_contacts(nodes, cutoff: float) -> set[tuple[int, int]]:
    """Return pairs of an atom of the protein and one of a ligand, from all distances."""
    distance = np.linalg.norm(nodes.pos[:, None].astype(float) - nodes.pos, axis=-1)
    is_between = nodes.is_ligand[:, None] != nodes.is_ligand
    return set(zip(*np.nonzero(is_between & (distance <= cutoff)), strict=True))


def test_contacts_join_the_protein_and_its_ligand_only(bound):
    nodes = nodes_of(bound, "atom")
    graph = pg.build_graph(bound, [pg.component("ligand_contact", cutoff=4.5)], node_type="atom")
    edges = set(zip(*graph.edge_index.numpy(), strict=True))
    assert edges == all_contacts(nodes, 4.5) and len(edges) > 50


def test_residues_are_joined_if_one_molecule_touches_both(bound):
    edges = pg.build_graph(bound, [pg.component("ligand_contact", cutoff=4.0)]).edge_index.t().tolist()
    gap = np.linalg.norm(bound.atom_pos[:, None].astype(float) - bound.ligands.atom_pos, axis=-1)
    atom, ligand_atom = np.nonzero(gap <= 4.0)
    touched = set(zip(bound.atom_residue[atom], bound.ligands.atom_molecule[ligand_atom], strict=True))
    expected = {(i, j) for i, m in touched for j, n in touched if m == n and i != j}
    assert {tuple(edge) for edge in edges} == expected and expected


def test_protein_without_a_ligand_is_refused(structures_dir):
    apo = clean(load_structure(structures_dir / "1crn.bcif"), ligands=True)
    with pytest.raises(SelectionError, match="1crn"):
        as_model_spec("gign").plan().precompute(apo)


def test_prediction_is_invariant_and_depends_on_the_ligand(bound):
    spec = with_pocket(as_model_spec("gign"))
    assert [c.name for c in spec.features].count("ligand_distance") == 1
    plan = spec.plan()
    model = pg.build_model(spec, TARGET).double().eval()

    def predict(residues: Residues) -> float:
        (pocket,) = plan.parts(residues)
        graph = plan.precompute(pocket)
        graph.pos = graph.pos.double()
        return model(pg.collate([graph]))["logits"].item()

    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    turned = moved(bound, q, np.array([30.0, -8.0, 5.0]))
    farther = replace(bound, ligands=replace(bound.ligands, atom_pos=bound.ligands.atom_pos + np.float32(0.3)))
    value = predict(bound)
    assert predict(turned) == pytest.approx(value, abs=1e-5)
    assert abs(predict(farther) - value) > 1e-4


def moved(residues: Residues, q: np.ndarray, shift: np.ndarray) -> Residues:
    """Return residues and ligands rotated and translated, in float64."""
    names = ("pos", "backbone", "atom_pos")
    arrays = {name: getattr(residues, name).astype(float) @ q.T + shift for name in names}
    ligands = replace(residues.ligands, atom_pos=residues.ligands.atom_pos.astype(float) @ q.T + shift)
    return replace(residues, **arrays, ligands=ligands)


def test_users_own_complexes_train_and_predict_from_the_command_line(entries, structures_dir, tmp_path):
    folder = tmp_path / "my"
    folder.mkdir()
    rows = ["file,pK,split"]
    splits = ["train", "train", "val", "test"]
    for i, (entry, split) in enumerate(zip(entries, splits, strict=True)):
        (folder / f"{entry}.bcif").write_bytes((structures_dir / f"{entry}.bcif").read_bytes())
        rows.append(f"{entry}.bcif,{4.0 + i},{split}")
    (tmp_path / "l.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "pk.safetensors"
    arguments = ["gign", "--data", folder, "--ligands", "--labels", tmp_path / "l.csv", "--task", "pK"]
    trained = CliRunner().invoke(app, ["train", *map(str, arguments), "--epochs", "1", "-o", str(out)])
    assert trained.exit_code == 0, trained.output
    assert "bonds of ligand A1C8P are guessed from distances (1 graph)" in trained.output  # of 10sb
    table = tmp_path / "pk.csv"
    predicted = CliRunner().invoke(app, ["predict", str(out), str(folder), "-o", str(table)])
    assert predicted.exit_code == 0, predicted.output
    with table.open() as file:
        values = [float(row["pK"]) for row in csv.DictReader(file)]
    assert len(values) == 4 and len(set(values)) == 4 and torch.tensor(values).isfinite().all()

"""Pockets: invariance, refusals, properties of lining residues, and files of the command."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import biotite.structure as struc
import biotite.structure.io.pdbx as pdbx
import numpy as np
import pytest
from protgraph_plugins.pockets import find_pockets, pockets_of
from protgraph_plugins.pockets.output import COLUMNS, low_plddt, pockets_cif
from protgraph_plugins.pockets.pockets import pocket_features, probabilities_of
from protgraph_plugins.pockets.spheres import alpha_spheres
from scipy.spatial.transform import Rotation

import protgraph as pg
from protgraph.errors import MissingCoordinatesError, OptionError, SelectionError
from protgraph.structure import Ligands
from protgraph.structure.io import read_residues
from tests.docs.predicted_files import write_predicted_file


@pytest.fixture(scope="module")
def protein(proteins) -> pg.Residues:
    return next(r for r in proteins if 120 <= len(r) <= 250)


@pytest.fixture(scope="module")
def probability(protein) -> np.ndarray:
    return np.random.default_rng(0).uniform(0, 0.9, len(protein))


@pytest.fixture(scope="module")
def pockets(protein, probability):
    return pockets_of(protein, probability, model="ligand_site")


def test_pockets_are_ranked_by_probability(pockets):
    assert len(pockets) > 3
    assert [pocket.rank for pocket in pockets] == list(range(1, len(pockets) + 1))
    assert np.all(np.diff([pocket.probability for pocket in pockets]) <= 1e-6)
    assert all(0 < pocket.probability < 1 for pocket in pockets)


def test_pockets_of_a_model_without_a_fit_are_ranked_by_score(protein, probability):
    pockets = pockets_of(protein, probability, model="mine")
    assert all(np.isnan(pocket.probability) for pocket in pockets)
    assert np.all(np.diff([pocket.score for pocket in pockets]) <= 1e-3)


@pytest.mark.parametrize("model", ["none", "ligand_site"])
def test_orientation_and_order_of_chains_change_no_probability(protein, probability, pockets, model):
    weights = probability if model == "ligand_site" else None
    reference = pockets_of(protein, weights, model=model)
    rotation = Rotation.random(random_state=4).as_matrix()
    moved = replace(protein, atom_pos=(protein.atom_pos @ rotation.T + 30).astype(np.float32))
    turned = pockets_of(moved, weights, model=model)
    assert [p.letters for p in turned] == [p.letters for p in reference]
    assert np.abs([a.probability - b.probability for a, b in zip(turned, reference, strict=True)]).max() < 1e-4
    expected = np.array([p.center for p in reference]) @ rotation.T + 30
    assert np.array([p.center for p in turned]) == pytest.approx(expected, abs=1e-3)


def test_lining_residues_own_the_atoms_at_the_spheres(protein, pockets):
    for pocket in pockets[:5]:
        assert set(protein.atom_residue[pocket.atoms]) == set(pocket.residues)
        assert pocket.letters == "".join(protein.sequence[row] for row in pocket.residues)
        pos = protein.atom_pos[pocket.atoms].astype(float)
        gap = np.linalg.norm(pos[:, None] - pocket.sphere_center, axis=2) - pocket.sphere_radius
        assert gap.min() > -1e-3  # no atom inside of a sphere
        assert gap.min(1).max() <= 1.0 + 1e-6
        charges = [{"D": -1, "E": -1, "K": 1, "R": 1}.get(letter, 0) for letter in pocket.letters]
        assert pocket.charge == sum(charges)


def test_the_center_is_the_mean_of_the_spheres_weighted_by_their_cubed_enclosure(protein):
    spheres = alpha_spheres(protein.atom_pos)
    enclosure_at = dict(zip(map(tuple, spheres.center.tolist()), spheres.enclosure.tolist(), strict=True))
    for pocket in pockets_of(protein)[:5]:
        total, sum_of_weights = np.zeros(3), 0.0
        for center in pocket.sphere_center.tolist():
            weight = enclosure_at[tuple(center)] ** 3
            total += weight * np.array(center)
            sum_of_weights += weight
        assert pocket.center == pytest.approx(total / sum_of_weights, abs=1e-6)


def test_the_center_lies_beside_the_residues_that_bind(protein):
    """The cavity is the same with even probabilities, so only the center moves to the residues of larger ones."""
    even = pockets_of(protein, np.full(len(protein), 0.4), model="mine")[0]
    side = protein.pos[even.residues] @ np.array([1.0, 0, 0])
    binding = even.residues[side > np.median(side)]
    probability = np.full(len(protein), 0.4)
    probability[binding] = 0.5
    moved = pockets_of(protein, probability, model="mine")[0]
    atoms = protein.atom_pos[np.isin(protein.atom_residue, binding)]
    assert set(binding) <= set(moved.residues)
    distances = [np.linalg.norm(atoms - pocket.center, axis=1).mean() for pocket in (even, moved)]
    assert distances[1] < distances[0]


def test_residues_without_a_probability_leave_a_finite_center(protein):
    probability = np.zeros(len(protein))
    probability[0] = 1e-6
    pockets = pockets_of(protein, probability, model="mine")
    assert pockets
    assert np.isfinite([pocket.center for pocket in pockets]).all()


def test_a_ligand_is_named_and_changes_nothing(protein, probability, pockets):
    first = pockets[0]
    shifts = np.array([[0, 0, 0], [0, 0, 1.0], [60.0, 0, 0]])
    atoms = (first.center + shifts).astype(np.float32)
    ligand = Ligands(
        chain=np.array(["A"]),
        res_id=np.array([900]),
        ins_code=np.array([""]),
        res_name=np.array(["LIG"]),
        atom_pos=atoms,
        atom_name=np.array(["C1", "C2", "C3"]),
        atom_element=np.array(["C", "C", "C"]),
        atom_molecule=np.zeros(3, np.int64),
    )
    bound = pockets_of(replace(protein, ligands=ligand), probability, model="ligand_site")
    assert [p.probability for p in bound] == [p.probability for p in pockets]
    assert bound[0].ligands == ("LIG A:900",)
    assert bound[0].ligand_overlap == pytest.approx(2 / 3)
    assert pockets[0].ligands == ()


@pytest.fixture(scope="module")
def dimer(structures_dir) -> struc.AtomArray:
    """HIV protease: two equal chains, an inhibitor between them, and water."""
    file = pdbx.BinaryCIFFile.read(structures_dir / "1hvr.bcif")
    return pdbx.get_structure(file, model=1)


def _pockets_of_atoms(atoms: struc.AtomArray, path) -> list:
    file = pdbx.CIFFile()
    pdbx.set_structure(file, atoms)
    file.write(path)
    return find_pockets(path)


def _with_hydrogens(atoms: struc.AtomArray) -> struc.AtomArray:
    """Add a hydrogen 1 Å from each CA atom, beside it in the file."""
    hydrogens = atoms[atoms.atom_name == "CA"].copy()
    hydrogens.coord = hydrogens.coord + np.array([0.6, 0.6, 0.5], np.float32)
    hydrogens.atom_name[:], hydrogens.element[:] = "HA", "H"
    both = atoms + hydrogens
    order = np.lexsort((np.arange(len(both)), both.res_id, both.chain_id, both.hetero))
    return both[order]


def _turned(atoms: struc.AtomArray) -> struc.AtomArray:
    turned = atoms.copy()
    turned.coord = (atoms.coord @ Rotation.random(random_state=2).as_matrix().T + 40).astype(np.float32)
    return turned


def _atoms_shuffled_in_residues(atoms: struc.AtomArray) -> struc.AtomArray:
    number = np.cumsum(np.isin(np.arange(len(atoms)), struc.get_residue_starts(atoms)))
    return atoms[np.lexsort((np.random.default_rng(0).random(len(atoms)), number))]


def _chains_reversed(atoms: struc.AtomArray) -> struc.AtomArray:
    """Return the chains in reverse order; each keeps the order of its atoms."""
    return struc.concatenate([atoms[atoms.chain_id == chain] for chain in np.unique(atoms.chain_id)[::-1]])


CHANGES = {
    "turned": _turned,
    "atoms in another order": _atoms_shuffled_in_residues,
    "chains in another order": _chains_reversed,
    "without water and ligands": lambda atoms: atoms[struc.filter_amino_acids(atoms)],  # with CSO, part of the chain
    "with hydrogens": _with_hydrogens,
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_files_of_the_same_protein_have_the_same_pockets(dimer, change, tmp_path):
    """With the trained model, from file to probability."""
    reference = _pockets_of_atoms(dimer, tmp_path / "reference.cif")
    changed = _pockets_of_atoms(CHANGES[change](dimer), tmp_path / "changed.cif")
    assert len(changed) == len(reference)
    assert sorted(sorted(p.letters) for p in changed[:8]) == sorted(sorted(p.letters) for p in reference[:8])
    probabilities = [sorted(pocket.probability for pocket in pockets) for pockets in (changed, reference)]
    assert np.abs(np.subtract(*probabilities)).max() < 1e-4
    assert set(reference[0].chains) == {"A", "B"}


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "name"), [("3mht", "SAH"), ("1rx2", "FOL")])
def test_molecules_like_amino_acids_are_ligands_of_a_pocket(structures_dir, entry, name):
    """They have atoms N, CA and C but no peptide bond; as residues they would fill their own pocket."""
    source = structures_dir / f"{entry}.bcif"
    best = find_pockets(source)[0]
    assert name in {ligand.split()[0] for ligand in best.ligands}
    assert best.ligand_overlap > 0.5
    assert name not in read_residues(source).res_name[best.residues]


def test_pockets_follow_the_probabilities_of_residues(protein, probability, pockets):
    last = pockets[-1]
    there = np.zeros(len(protein))
    there[last.residues] = 1.0
    best = pockets_of(protein, there, model="ligand_site")[0]
    assert set(best.residues) & set(last.residues)


def test_a_peptide_and_a_model_of_something_else_are_refused(protein, structures_dir):
    with pytest.raises(SelectionError, match="29 residues"):
        pockets_of(protein.select(np.arange(len(protein)) < 29))
    with pytest.raises(OptionError, match="model_quality"):
        find_pockets(structures_dir / "1ubq.bcif", model="model_quality")


def test_a_backbone_has_no_pockets(protein):
    with pytest.raises(MissingCoordinatesError, match="heavy atoms per residue"):
        pockets_of(protein.hide("sidechain"))
    is_ca = protein.atom_name == "CA"
    trace = {name: getattr(protein, name)[is_ca] for name in ("atom_pos", "atom_name", "atom_element", "atom_residue")}
    with pytest.raises(MissingCoordinatesError, match=r": 1\.0 heavy atoms"):
        pockets_of(replace(protein, **trace))


def test_an_unknown_model_has_no_probability():
    assert np.isnan(probabilities_of("a file", np.zeros((2, 4)))).all()


def test_features_are_log_score_evidence_rank_and_volume(pockets, probability):
    row = pocket_features(pockets, probability)[1]
    second = pockets[1]
    evidence = np.log((probability[second.residues] ** 2).sum() + 0.01)
    assert row == pytest.approx([np.log1p(second.score), evidence, np.log(2), np.log1p(second.volume)])


def test_pseudo_atoms_are_read_at_the_centers(pockets, tmp_path):
    (tmp_path / "p.cif").write_text(pockets_cif("x", pockets))
    atoms = pdbx.get_structure(pdbx.CIFFile.read(tmp_path / "p.cif"), model=1, extra_fields=["b_factor"])
    assert atoms.res_id.tolist() == [pocket.rank for pocket in pockets]
    assert atoms.coord == pytest.approx(np.array([pocket.center for pocket in pockets]), abs=1e-2)
    assert atoms.b_factor == pytest.approx([100 * pocket.probability for pocket in pockets], abs=0.01)


def test_gemmi_reads_the_pseudo_atoms(pockets, tmp_path):
    gemmi = pytest.importorskip("gemmi", reason="gemmi is not installed")
    (tmp_path / "p.cif").write_text(pockets_cif("x", pockets))
    (chain,) = gemmi.read_structure(str(tmp_path / "p.cif"))[0]
    assert [residue.seqid.num for residue in chain] == [pocket.rank for pocket in pockets]
    for residue, pocket in zip(chain, pockets, strict=True):
        assert (residue.name, residue[0].name, residue[0].altloc) == ("PCK", "PCK", "\0")
        assert residue[0].pos.tolist() == pytest.approx(pocket.center.tolist(), abs=1e-2)


def test_residues_of_low_plddt_are_counted(run, structures_dir, tmp_path):
    """A model of AlphaFold DB with four uncertain residues at its end; the other file declares no pLDDT."""
    title = "ALPHAFOLD MONOMER V2.0 PREDICTION FOR POLYUBIQUITIN-C (P0CG48)"
    write_predicted_file(tmp_path / "model.pdb", structures_dir / "1ubq.bcif", tail=(65.0, 52, 44, 38), title=title)
    rows = {}
    for source in (tmp_path / "model.pdb", structures_dir / "1ubq.bcif"):
        out = tmp_path / source.suffix
        result = run("pockets", source, "-o", out, "--model", "none", "--no-pages")
        assert ("4 of 76 residues have a pLDDT below 70" in result.out) is (source.name == "model.pdb")
        with (out / "pockets.csv").open(encoding="utf-8", newline="") as file:
            rows[source.name] = list(csv.DictReader(file))
    uncertain = {"A:73", "A:74", "A:75", "A:76"}
    for row in rows["model.pdb"]:
        assert int(row["low_plddt"]) == len(uncertain & set(row["residues"].split()))
    assert any(int(row["low_plddt"]) for row in rows["model.pdb"])
    assert not any(int(row["low_plddt"]) for row in rows["1ubq.bcif"])


def test_the_plddt_of_a_file_of_alphafold_3_is_read(shared_data):
    residues = pg.clean(pg.load_structure(shared_data / "robustness" / "predicted__7ubd_from_af3.cif"))
    assert residues.predicted and residues.b_factor.min() > 87 and not low_plddt(residues).any()
    lower = replace(residues, b_factor=residues.b_factor - 18.5)
    assert low_plddt(lower).tolist() == (residues.b_factor < 88.5).tolist()
    assert not low_plddt(replace(lower, predicted=False)).any()


def test_the_command_writes_tables_and_lists_failures(run, structures_dir, tmp_path):
    out = tmp_path / "out"
    bad = tmp_path / "bad.pdb"
    bad.write_text("no structure")
    source = structures_dir / "1ubq.bcif"
    result = run("pockets", source, bad, "-o", out, "--model", "none", "--no-pages")
    assert result.code == 1, result.err
    with (out / "pockets.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert {row["file"] for row in rows} == {str(source)}
    records = json.loads((out / "pockets.json").read_text(encoding="utf-8"))
    assert [record["rank"] for record in records] == [int(row["rank"]) for row in rows]
    assert "bad.pdb" in (out / "pockets.csv.failures.csv").read_text(encoding="utf-8")

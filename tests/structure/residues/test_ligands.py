"""Ligands: molecules, atoms, bonds and noise, against the file and the loss report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from biotite.structure.io import pdbx
from protgraph_plugins.interactions import ligand_bonds, ligand_links

from protgraph.data.graph.protein_graph import collate, residue_nodes
from protgraph.errors import ProtgraphError
from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure import Residues, Structure, clean, load_structure
from protgraph.structure.residues.ligands import Ligands

ENTRY = "10sb"


@pytest.fixture(scope="module")
def structure(structures_dir) -> Structure:
    return load_structure(structures_dir / f"{ENTRY}.bcif")


@pytest.fixture(scope="module")
def residues(structure) -> Residues:
    return clean(structure, ligands=True)


def test_ligands_equal_those_counted_in_the_report_without_them(structure, residues):
    names, counts = np.unique(residues.ligands.res_name, return_counts=True)
    without = clean(structure)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == without.report.ligands
    assert residues.report == without.report.without("ligands") and without.ligands is None


def test_dummy_atoms_of_the_membrane_planes_are_no_ligands(shared_data):
    protein = clean(load_structure(shared_data / "robustness" / "real-full__pdb2nwl-opm.pdb"), ligands=True)
    assert "PLY" in protein.ligands.res_name and "DUM" not in protein.ligands.res_name
    assert len(protein.ligands.atom_pos) == len(protein.ligands.atom_molecule)


def test_ligand_atoms_are_the_heavy_atoms_of_the_file(structure, residues):
    atoms, ligands = structure.atoms, residues.ligands
    for m in range(len(ligands)):
        own = (atoms.chain_id == ligands.chain[m]) & (atoms.res_id == ligands.res_id[m]) & (atoms.element != "H")
        own &= atoms.res_name == ligands.res_name[m]
        mine = ligands.atom_molecule == m
        assert ligands.atom_name[mine].tolist() == atoms.atom_name[own].tolist()
        assert np.array_equal(ligands.atom_pos[mine], atoms.coord[own])


def test_the_protein_is_the_same_with_ligands(structure, residues):
    without = clean(structure)
    for name in ("chain", "res_id", "aatype", "pos", "backbone", "seq_pos", "atom_pos", "atom_residue"):
        assert np.array_equal(getattr(residues, name), getattr(without, name), equal_nan=name == "backbone")


def test_selecting_a_chain_keeps_its_ligands(residues):
    for name in residues.chain_names:
        one = residues.chains([name])
        assert one.ligands.ids == [i for i in residues.ligands.ids if i.startswith(f"{name}:")]
    hidden = residues.hide("ligands")
    assert residues.hide("coordinates").ligands is None and hidden.ligands is None
    assert np.array_equal(hidden.atom_pos, residues.atom_pos)


@pytest.mark.slow
def test_atom_graphs_have_ligands_after_the_protein(residues):
    graph = build_graph(residues, [component("radius", radius=4.0), "covalent_bond", "dihedral"], node_type="atom")
    protein, own = len(residues.atom_name), len(residues.ligands.atom_name)
    assert graph.num_nodes == protein + own and graph.validate()
    assert not graph.is_ligand[:protein].any() and graph.is_ligand[protein:].all()
    assert (graph.aatype[protein:] == 20).all() and (graph.atom_type[protein:] == 37).all()
    assert (graph.dihedral[protein:] == 0).all() and (graph.element[protein:] > 0).all()
    assert len(residue_nodes(graph)) == len(residues)
    assert graph.residue.max() == len(residues) + len(residues.ligands) - 1
    assert set(graph.chain[protein:].tolist()) <= set(range(len(residues.chain_names) + len(residues.ligands)))
    bonds = graph.edge_index[:, graph.edge_kind[:, 1] == 1]
    inside = graph.is_ligand[bonds].all(0)
    across = bonds[:, inside & (graph.residue[bonds[0]] != graph.residue[bonds[1]])]
    linked = {tuple(pair) for pair in ligand_links(residues).T.tolist() if min(pair) >= protein}
    assert inside.sum() > across.shape[1] and {tuple(sorted(pair)) for pair in across.T.tolist()} == linked
    contacts = graph.edge_index[:, graph.edge_kind[:, 0] == 1]
    assert (graph.is_ligand[contacts].sum(0) == 1).any()
    assert collate([graph, graph]).num_nodes == 2 * graph.num_nodes


def test_other_graphs_have_no_ligands(residues):
    assert build_graph(residues).num_nodes == len(residues)
    assert not build_graph(residues, node_type="backbone").is_ligand.any()


def test_nucleotides_are_molecules_on_request_and_bonded_in_sequence(structures_dir):
    structure = load_structure(structures_dir / "1lcd.bcif")
    plain, alone = clean(structure), clean(structure, nucleic=True)
    both = clean(structure, nucleic=True, ligands=True)
    assert plain.report.nucleic == len(alone.ligands) == 22 and alone.report.nucleic == 0
    assert alone.report.ligands == {"NA": 1} and both.report.ligands == {} and len(both.ligands) == 23
    ligands, bonds = alone.ligands, ligand_bonds(alone.ligands)
    between = bonds[:, ligands.atom_molecule[bonds[0]] != ligands.atom_molecule[bonds[1]]]
    molecule = np.sort(ligands.atom_molecule[between], axis=0)
    assert (molecule[1] - molecule[0] == 1).all()  # two strands of eleven
    assert between.shape[1] == 20 and set(ligands.atom_name[between].ravel()) == {"O3'", "P"}
    graph = build_graph(alone, ["covalent_bond"], node_type="atom")
    inside = int(graph.is_ligand[graph.edge_index].all(0).sum())
    assert inside == 2 * bonds.shape[1]


def test_noise_moves_ligands_and_leaves_the_noise_of_the_protein_unchanged(structure, residues):
    moved, without = residues.with_noise(0.1, seed=3), clean(structure).with_noise(0.1, seed=3)
    assert np.array_equal(moved.atom_pos, without.atom_pos)
    step = moved.ligands.atom_pos - residues.ligands.atom_pos
    assert 0.05 < step.std() < 0.2 and (step != 0).all() and moved.ligands.atom_pos.dtype == np.float32


def _covalent_links(path) -> set[frozenset]:
    """Return pairs of atoms of one asymmetric unit that are covalent in ``struct_conn``."""
    text = path.suffix != ".bcif"
    file = (pdbx.CIFFile if text else pdbx.BinaryCIFFile).read(path)
    block = next(iter(file.values()))
    if "struct_conn" not in block:
        return set()
    columns = block["struct_conn"]
    ends = [list(zip(*(columns[f"ptnr{side}_{c}"].as_array(str) for c in _CONN), strict=True)) for side in (1, 2)]
    kinds = columns["conn_type_id"].as_array(str)
    rows = zip(*ends, kinds, strict=True)
    return {frozenset([a[:3], b[:3]]) for a, b, kind in rows if kind == "covale" and a[3] == b[3]}


_CONN = ("auth_asym_id", "auth_seq_id", "label_atom_id", "symmetry")


def _names(residues):
    """Return chain, number and name of every atom of the protein, then of the ligands."""
    atoms = zip(residues.atom_residue, residues.atom_name, strict=True)
    result = [(str(residues.chain[n]), str(residues.res_id[n]), str(name)) for n, name in atoms]
    own = residues.ligands
    atoms = zip(own.atom_molecule, own.atom_name, strict=True)
    return result + [(str(own.chain[m]), str(own.res_id[m]), str(name)) for m, name in atoms]


def test_ligand_links_equal_those_of_struct_conn(shared_data):
    total = 0
    for path in sorted(p for d in ("formats", "robustness") for p in (shared_data / d).rglob("*.?cif")):
        try:
            residues, expected = clean(load_structure(path), ligands=True), _covalent_links(path)
        except (ProtgraphError, ValueError, LookupError):
            continue  # an intentionally broken file
        if not expected or len(residues.ligands) == 0:
            continue
        names, protein = _names(residues), len(residues.atom_name)
        ligand = set(names[protein:])
        result = [frozenset([names[a], names[b]]) for a, b in ligand_links(residues).T.tolist()]
        assert set(result) == {pair for pair in expected if pair & ligand and pair <= set(names)}, path.name
        assert len(set(result)) == len(result)
        total += len(result)
    assert total >= 20


def test_links_are_undirected_edges_between_atoms(structures_dir):
    """Heme c: each vinyl carbon is bonded to the sulfur of a cysteine; the iron is not bonded."""
    residues = clean(load_structure(structures_dir / "2e84.bcif"), ligands=True)
    names, links = _names(residues), ligand_links(residues)
    protein = len(residues.atom_name)
    heme = [tuple(names[i][2] for i in pair) for pair in links.T.tolist() if pair[0] < protein]
    assert set(heme) == {("SG", "CAB"), ("SG", "CAC")}
    assert len(heme) == 2 * (residues.ligands.res_name == "HEM").sum()
    graph = build_graph(residues, ["covalent_bond"], node_type="atom")
    edges = set(map(tuple, graph.edge_index.T.tolist()))
    assert {(int(a), int(b)) for a, b in links.T} | {(int(b), int(a)) for a, b in links.T} <= edges
    inside = graph.is_ligand[graph.edge_index].all(0)
    assert len(edges) == graph.num_edges
    assert int((~inside & graph.is_ligand[graph.edge_index].any(0)).sum()) == 2 * len(heme)


@pytest.mark.parametrize(
    ("element", "distance", "is_bonded"),
    [("C", 1.43, True), ("C", 1.81, True), ("C", 1.83, False), ("C", 1.03, True), ("C", 1.01, False),
     ("ZN", 1.9, False), ("P", 1.6, True), ("BR", 2.2, True), ("BR", 2.3, False)],
)  # fmt: skip
def test_atoms_are_linked_at_the_sum_of_their_radii(structures_dir, element, distance, is_bonded):
    """A ligand atom on the C=O axis of a residue; radii are C 0.76, O 0.66, P 1.07, Br 1.20 Å."""
    whole = clean(load_structure(structures_dir / "1crn.bcif"))
    residues = whole.select(np.arange(len(whole)) == 0)
    atom = residues.atom_name.tolist().index("O")
    away = residues.backbone[0, 3] - residues.backbone[0, 2]
    pos = residues.atom_pos[atom] + distance * away / np.linalg.norm(away)
    one = {"chain": ["A"], "ins_code": [""], "res_name": ["LIG"], "atom_name": ["X1"], "atom_element": [element]}
    rows = {name: np.array(value) for name, value in one.items()}
    ligands = Ligands(
        **rows, res_id=np.array([900]), atom_pos=pos[None].astype(np.float32), atom_molecule=np.array([0])
    )
    result = ligand_links(replace(residues, ligands=ligands)).T.tolist()
    assert result == ([[atom, len(residues.atom_name)]] if is_bonded else [])


def test_overlapping_molecules_are_not_bonded(structures_dir):
    residues = clean(load_structure(structures_dir / "3g32.bcif"), ligands=True)
    own, links = residues.ligands, ligand_links(residues) - len(residues.atom_name)
    between = {tuple(own.res_name[own.atom_molecule[pair]]) for pair in links.T if pair.min() >= 0}
    assert ("3G3", "PO4") not in between
    assert ("PO4", "3G3") not in between


def test_without_ligands_there_are_no_links(structures_dir):
    residues = clean(load_structure(structures_dir / "1crn.bcif"))
    assert ligand_links(residues).shape == (2, 0)
    assert ligand_links(clean(load_structure(structures_dir / "1crn.bcif"), ligands=True)).shape == (2, 0)

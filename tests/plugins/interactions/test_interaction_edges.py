"""Interactions against their definitions, pair by pair, and hydrogen bonds against biotite."""

from __future__ import annotations

from itertools import product

import biotite.structure as struc
import networkx as nx
import numpy as np
import pytest
from protgraph_plugins.interactions import covalent_bonds, fixed_hydrogens, hydrogen_bonds

from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.residues.alphabet import THREE_LETTER

PI = {"PHE": [("CG", "CD1", "CD2", "CE1", "CE2", "CZ")], "TYR": [("CG", "CD1", "CD2", "CE1", "CE2", "CZ")]}
PI["TRP"] = [("CD2", "CE2", "CE3", "CZ2", "CZ3", "CH2"), ("CG", "CD1", "NE1", "CE2", "CD2")]
RINGS = {**PI, "HIS": [("CG", "ND1", "CD2", "CE1", "NE2")]}
ACIDS = {"ASP": ("OD1", "OD2"), "GLU": ("OE1", "OE2")}
BASES = {"LYS": ("NZ",), "ARG": ("NE", "NH1", "NH2"), "HIS": ("ND1", "NE2")}
HYDROPHOBIC = {"ALA", "VAL", "LEU", "ILE", "MET", "PHE", "TRP", "PRO", "TYR"}
NAMES = THREE_LETTER
RADII = {"C": 1.7, "N": 1.55, "O": 1.52, "S": 1.8, "SE": 1.9, "P": 1.8}

Atoms = dict[str, np.ndarray]
Pairs = set[tuple[int, int]]


class Protein:
    """Quantities of the definitions, per residue."""

    def __init__(self, residues: Residues) -> None:
        owners = [np.flatnonzero(residues.atom_residue == i) for i in range(len(residues))]
        pos = residues.atom_pos.astype(np.float64)
        self.kind = [NAMES[t] for t in residues.aatype]
        self.atoms = [{str(residues.atom_name[a]): pos[a] for a in own} for own in owners]
        self.element = [{str(residues.atom_name[a]): str(residues.atom_element[a]) for a in own} for own in owners]
        self.sides = [{n: x for n, x in own.items() if n not in ("N", "CA", "C", "O", "OXT")} for own in self.atoms]

    def near(self, reach: float = 25.0) -> list[tuple[int, int]]:
        ca = np.array([own["CA"] for own in self.atoms])
        close = ((ca[:, None] - ca) ** 2).sum(-1) < reach**2
        return list(zip(*(index.tolist() for index in np.nonzero(np.triu(close, 1))), strict=True))

    def some(self, i: int, names: dict[str, tuple[str, ...]]) -> Atoms:
        return {n: self.atoms[i][n] for n in names.get(self.kind[i], ()) if n in self.atoms[i]}

    def rings(self, i: int, kinds: dict[str, list[tuple[str, ...]]]) -> list[np.ndarray]:
        whole = [names for names in kinds.get(self.kind[i], []) if set(names) <= set(self.atoms[i])]
        return [np.array([self.atoms[i][n] for n in names]) for names in whole]


def within(a: Atoms, b: Atoms, cutoff: float) -> bool:
    return any(((x - y) ** 2).sum() <= cutoff**2 for x, y in product(a.values(), b.values()))


def opposite(p: Protein, find, cutoff: float) -> Pairs:
    """Return pairs (acid, base) in either order."""
    both = [(i, j) if p.kind[i] in ACIDS else (j, i) for i, j in p.near()]
    both = [(i, j) for i, j in both if p.kind[i] in ACIDS and p.kind[j] in BASES]
    return {(min(i, j), max(i, j)) for i, j in both if within(find(i, ACIDS), find(j, BASES), cutoff)}


def plane(ring: np.ndarray) -> np.ndarray:
    return np.linalg.svd(ring - ring.mean(0))[2][2]


def stacked(a: np.ndarray, b: np.ndarray, shape: str) -> bool:
    line = b.mean(0) - a.mean(0)
    d = np.linalg.norm(line)
    folded = [np.degrees(np.arccos(min(1.0, abs(float(u @ v))))) for u, v in (
        (plane(a), plane(b)), (plane(a), line / d), (plane(b), line / d))]  # fmt: skip
    flat, tilt = folded[0], folded[1:]
    shapes = {"parallel": flat < 30 and max(tilt) < 45, "t_shaped": flat > 60 and min(tilt) < 45}
    return d <= 7 and (any(shapes.values()) if shape == "any" else shapes[shape])


def ring_to(p: Protein, names: dict[str, tuple[str, ...]], cutoff: float) -> Pairs:
    return {
        (i, j)
        for i, j in p.near()
        for a, b in ((i, j), (j, i))
        if any(np.linalg.norm(x - r.mean(0)) <= cutoff for x in p.some(a, names).values() for r in p.rings(b, PI))
    }


BRUTE = {
    "salt_bridge": lambda p: opposite(p, p.some, 4.0),
    "ionic": lambda p: opposite(p, lambda i, _: p.sides[i], 6.0),
    "hydrophobic": lambda p: {
        (i, j)
        for i, j in p.near()
        if {p.kind[i], p.kind[j]} <= HYDROPHOBIC and within(p.sides[i], p.sides[j], 5.0)
    },
    "aromatic": lambda p: {
        (i, j)
        for i, j in p.near()
        if any(4.5 <= np.linalg.norm(a.mean(0) - b.mean(0)) <= 7 for a in p.rings(i, RINGS) for b in p.rings(j, RINGS))
    },
    "pi_stacking": lambda p: {
        (i, j) for i, j in p.near() if any(stacked(a, b, "any") for a in p.rings(i, PI) for b in p.rings(j, PI))
    },
    "cation_pi": lambda p: ring_to(p, {"LYS": ("NZ",), "ARG": ("CZ",)}, 6.0),
    "aromatic_sulfur": lambda p: ring_to(p, {"CYS": ("SG",), "MET": ("SD",)}, 5.3),
    "disulfide": lambda p: {
        (i, j)
        for i, j in p.near()
        if within(p.some(i, {"CYS": ("SG",)}), p.some(j, {"CYS": ("SG",)}), 2.2)
    },
}  # fmt: skip


def edge_pairs(residues: Residues, name: str, **options: object) -> Pairs:
    """Return pairs i < j of a symmetric kind."""
    index = build_graph(residues, [component(name, **options)]).edge_index.T.tolist()
    assert {(j, i) for i, j in index} == set(map(tuple, index))
    return {(i, j) for i, j in index if i < j}


@pytest.fixture(scope="module")
def many(structures_dir) -> list[tuple[Residues, Protein]]:
    """Return 52 committed entries, each with the quantities of the definitions."""
    paths = sorted(structures_dir.glob("*.bcif"))[::5][:52]
    return [(residues, Protein(residues)) for residues in (clean(load_structure(path)) for path in paths)]


def agreement(proteins: list[tuple[Residues, Protein]], name: str) -> int:
    """Assert that the edges equal those of the definition; return their number."""
    total = 0
    for residues, protein in proteins:
        ours = edge_pairs(residues, name)
        assert ours == BRUTE[name](protein), residues.name
        total += len(ours)
    return total


@pytest.mark.parametrize("name", BRUTE)
def test_kinds_equal_their_definitions(proteins, name):
    agreement([(residues, Protein(residues)) for residues in proteins[:3]], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BRUTE)
def test_kinds_equal_their_definitions_on_52_structures(many, name):
    total = agreement(many, name)
    print(f"| {name} | {len(many)} | {total} | 0 |")
    assert len(many) == 52 and total > 30


@pytest.mark.parametrize("shape", ["parallel", "t_shaped"])
def test_shapes_of_stacking_equal_their_definitions(proteins, shape):
    for residues in proteins[:3]:
        p = Protein(residues)
        expected = {pair for pair in p.near(20.0) if any(
            stacked(a, b, shape) for a in p.rings(pair[0], PI) for b in p.rings(pair[1], PI))}  # fmt: skip
        assert edge_pairs(residues, "pi_stacking", shape=shape) == expected


def with_hydrogens(residues: Residues) -> tuple[struc.AtomArray, np.ndarray]:
    """Return heavy atoms and fixed hydrogens for biotite, and the heavy atom of each."""
    donor, hydrogen = fixed_hydrogens(residues)
    heavy = len(residues.atom_name)
    atoms = struc.AtomArray(heavy + len(donor))
    owner = np.concatenate([np.arange(heavy), donor])
    atoms.coord = np.concatenate([residues.atom_pos, hydrogen]).astype(np.float32)
    atoms.res_id, atoms.chain_id = residues.atom_residue[owner], np.full(len(owner), "A")
    atoms.res_name = residues.res_name[residues.atom_residue[owner]]
    atoms.atom_name = np.concatenate([residues.atom_name, np.full(len(donor), "H")])
    atoms.element = np.concatenate([residues.atom_element, np.full(len(donor), "H")])
    bonds = np.stack([donor, heavy + np.arange(len(donor))], 1)
    atoms.bonds = struc.BondList(len(owner), bonds)
    return atoms, owner


def test_bonds_of_fixed_hydrogens_equal_those_of_biotite(proteins):
    for residues in proteins[:6]:
        atoms, owner = with_hydrogens(residues)
        theirs = owner[struc.hbond(atoms)][:, [0, 2]]
        kind, name = residues.res_name[residues.atom_residue], residues.atom_name
        # in biotite every N, O and S is an acceptor, also within one residue
        accepts = (residues.atom_element == "O") | ((kind == "HIS") & np.isin(name, ["ND1", "NE2"]))
        kept = accepts[theirs[:, 1]] & (residues.atom_residue[theirs[:, 0]] != residues.atom_residue[theirs[:, 1]])
        ours = hydrogen_bonds(residues)
        ours = ours[:, np.isin(ours[0], fixed_hydrogens(residues)[0])]
        assert set(map(tuple, ours.T.tolist())) == set(map(tuple, theirs[kept].tolist())), residues.name


def test_rotating_hydrogens_bond_if_some_rotation_does(proteins):
    residues = proteins[0]
    pos, names = residues.atom_pos.astype(np.float64), residues.atom_name
    axis = {("SER", "OG"): "CB", ("THR", "OG1"): "CB", ("TYR", "OH"): "CZ", ("LYS", "NZ"): "CE"}
    kind = residues.res_name[residues.atom_residue]
    ours = {(int(d), int(a)) for d, a in hydrogen_bonds(residues).T if (kind[d], names[d]) in axis}
    accepts = np.flatnonzero((residues.atom_element == "O") | ((kind == "HIS") & np.isin(names, ["ND1", "NE2"])))
    turn, expected = np.radians(np.arange(0, 360, 0.5)), set()
    for d in range(len(names)):
        if (kind[d], names[d]) not in axis:
            continue
        mine = np.flatnonzero((residues.atom_residue == residues.atom_residue[d]) & (names == axis[kind[d], names[d]]))
        e = pos[d] - pos[mine[0]]
        e /= np.linalg.norm(e)
        u = np.cross(e, [0.3, 0.5, 0.8])
        u /= np.linalg.norm(u)
        ring = np.cos(turn)[:, None] * u + np.sin(turn)[:, None] * np.cross(e, u)
        length = 1.01 if kind[d] == "LYS" else 0.96
        h = pos[d] + length * (np.cos(np.radians(70.5)) * e + np.sin(np.radians(70.5)) * ring)
        for a in accepts[residues.atom_residue[accepts] != residues.atom_residue[d]]:
            away = pos[a] - h
            r = np.linalg.norm(away, axis=1)
            cosine = ((pos[d] - h) * away).sum(1) / (length * r)
            if ((r < 2.5) & (cosine < -0.5)).any():
                expected.add((d, int(a)))
    assert expected and ours == expected


def test_directed_bonds_run_from_donor_to_acceptor(proteins):
    for name in ("hydrogen_bond", "dssp_hydrogen_bond"):
        one_way = {
            tuple(e) for e in build_graph(proteins[0], [component(name, is_directed=True)]).edge_index.T.tolist()
        }
        assert edge_pairs(proteins[0], name) == {(min(e), max(e)) for e in one_way}
        assert not one_way <= {(i, j) for j, i in one_way}


def test_contacts_and_clashes_are_more_than_three_bonds_apart(proteins):
    residues = proteins[0]
    p, bonded = Protein(residues), struc.BondList(len(residues.atom_name))
    for a, b in covalent_bonds(residues).T:
        bonded.add_bond(int(a), int(b))
    graph = nx.Graph(bonded.as_array()[:, :2].tolist())
    reach = {a: set(nx.single_source_shortest_path_length(graph, a, 3)) for a in graph}
    pos, radius = residues.atom_pos.astype(np.float64), np.array([RADII[e] for e in residues.atom_element])
    touching, clashing, owner = set(), set(), residues.atom_residue
    for a in range(len(pos)):
        gap = np.linalg.norm(pos[a + 1 :] - pos[a], axis=1) - radius[a + 1 :] - radius[a]
        for b in a + 1 + np.flatnonzero(gap <= 0.5):
            if owner[a] != owner[b] and b not in reach.get(a, ()):
                (clashing if gap[b - a - 1] <= -0.4 else touching).add((int(owner[a]), int(owner[b])))
    assert len(p.atoms) == len(residues)
    assert edge_pairs(residues, "van_der_waals") == touching and edge_pairs(residues, "clash") == clashing

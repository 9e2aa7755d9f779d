"""Edges against their definitions, pair by pair, for the kinds that are not in `test_interaction_edges.py`.

Definitions are loops over all pairs, without search trees and without functions of protgraph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import biotite.structure as struc
import numpy as np
import pytest

from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.residues.alphabet import THREE_LETTER

RADII = {"C": 1.7, "N": 1.55, "O": 1.52, "S": 1.8, "SE": 1.9, "P": 1.8, "AS": 1.85}  # Bondi 1964
# donor and its two neighbors; donor, its neighbor X and a neighbor Y of X; rotating donor, its neighbor, length D–H
OPPOSITE = {
    "HIS": [("ND1", "CG", "CE1"), ("NE2", "CD2", "CE1")],
    "TRP": [("NE1", "CD1", "CE2")],
    "ARG": [("NE", "CD", "CZ")],
}
PLANAR = {
    "ASN": [("ND2", "CG", "OD1"), ("ND2", "CG", "CB")],
    "GLN": [("NE2", "CD", "OE1"), ("NE2", "CD", "CG")],
    "ARG": [("NH1", "CZ", "NE"), ("NH1", "CZ", "NH2"), ("NH2", "CZ", "NE"), ("NH2", "CZ", "NH1")],
}
ROTATING = {
    "SER": ("OG", "CB", 0.96),
    "THR": ("OG1", "CB", 0.96),
    "TYR": ("OH", "CZ", 0.96),
    "LYS": ("NZ", "CE", 1.01),
}
ROTATIONS = np.radians(np.arange(0, 360, 0.5))


def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return distances ``(n, m)``; NaN for missing points."""
    return np.sqrt(((a[:, None].astype(np.float64) - b[None].astype(np.float64)) ** 2).sum(-1))


def along(v: np.ndarray) -> np.ndarray:
    return v / np.sqrt((v**2).sum())


class Protein:
    """Quantities of the definitions; kinds of edges are ``(N, N)`` bool, from row to column."""

    def __init__(self, residues: Residues) -> None:
        self.residues, self.n = residues, len(residues)
        self.kind = [THREE_LETTER[t] for t in residues.aatype]
        self.owner, self.xyz = residues.atom_residue, residues.atom_pos.astype(np.float64)
        self.number: list[dict[str, int]] = [{} for _ in range(self.n)]
        for a, (i, name) in enumerate(zip(self.owner, residues.atom_name, strict=True)):
            self.number[i][str(name)] = a
        self.same_chain = residues.chain[:, None] == residues.chain[None]
        self.offset = residues.seq_pos[None] - residues.seq_pos[:, None]  # column minus row

    def at(self, i: int, name: str) -> np.ndarray:
        """Return the position of an atom; NaN if it is missing."""
        return self.xyz[self.number[i][name]] if name in self.number[i] else np.full(3, np.nan)

    def atoms(self, name: str) -> np.ndarray:
        return np.array([self.at(i, name) for i in range(self.n)])

    @cached_property
    def measures(self) -> dict[str, np.ndarray]:
        """Distances ``(N, N)`` between residues, infinite on the diagonal."""
        n, ca, c = (self.atoms(name) for name in ("N", "CA", "C"))
        cb, centroid, nearest = self.atoms("CB"), ca.copy(), np.full((self.n, self.n), np.inf)
        for i in range(self.n):
            if np.isnan(cb[i, 0]):
                b, e = ca[i] - n[i], c[i] - ca[i]
                cb[i] = ca[i] - 0.58273431 * np.cross(b, e) + 0.56802827 * b - 0.54067466 * e
            if np.isnan(cb[i, 0]):
                cb[i] = ca[i]
            side = [a for name, a in self.number[i].items() if name not in ("N", "CA", "C", "O", "OXT")]
            centroid[i] = self.xyz[side].mean(0) if side else ca[i]
            np.minimum.at(nearest[i], self.owner, between(self.xyz[self.owner == i], self.xyz).min(0))
        distances = {"node": between(ca, ca), "cb": between(cb, cb), "centroid": between(centroid, centroid)}
        distances["any_atom"] = nearest
        for d in distances.values():
            np.fill_diagonal(d, np.inf)
        return distances

    @cached_property
    def linked(self) -> np.ndarray:
        """True if the column is bonded to the row by a peptide bond."""
        bond = between(self.atoms("C"), self.atoms("N"))
        ca = between(self.atoms("CA"), self.atoms("CA"))
        near = np.where(np.isnan(bond), ca <= 4.3, bond <= 2.5)
        return near & self.same_chain & np.eye(self.n, k=1, dtype=bool)

    @cached_property
    def amides(self) -> np.ndarray:
        """Hydrogens ``(N, 3)`` 1 Å from backbone N, antiparallel to the previous C=O; NaN without one."""
        hydrogens = np.full((self.n, 3), np.nan)
        for i, j in np.argwhere(self.linked):
            if self.kind[j] != "PRO":
                hydrogens[j] = self.at(j, "N") + along(self.at(i, "C") - self.at(i, "O"))
        return hydrogens


def nearest(distance: np.ndarray, k: int) -> np.ndarray:
    """Join each column with the k rows of least distance; ties go to lower indices."""
    joined = np.zeros(distance.shape, bool)
    for i, column in enumerate(distance.T):
        best = sorted((d, j) for j, d in enumerate(column.tolist()) if np.isfinite(d))[:k]
        joined[[j for _, j in best], i] = True
    return joined


def apart(p: Protein, separation: int) -> np.ndarray:
    return ~p.same_chain | (np.abs(p.offset) >= separation)


def both(joined: np.ndarray) -> np.ndarray:
    return joined | joined.T


def disulfides(p: Protein) -> np.ndarray:
    sulfur = np.array([p.at(i, "SG") if p.kind[i] == "CYS" else np.full(3, np.nan) for i in range(p.n)])
    return (between(sulfur, sulfur) <= 2.2) & ~np.eye(p.n, dtype=bool)


def electrostatic(p: Protein) -> np.ndarray:
    """Return bonds from donor to acceptor by Kabsch & Sander 1983, with the limits of the program."""
    n, c, o = (p.atoms(name) for name in ("N", "C", "O"))
    on, ch, oh, cn = between(n, o), between(p.amides, c), between(p.amides, o), between(n, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        energy = np.round(332 * 0.42 * 0.20 * (1 / on + 1 / ch - 1 / oh - 1 / cn), 3)
    shortest = np.minimum(np.minimum(on, ch), np.minimum(oh, cn))
    energy = np.where(shortest < 0.5, -9.9, np.maximum(energy, -9.9))
    energy[(p.measures["node"] >= 9) | p.linked.T] = np.nan
    energy[~(energy < -0.5)] = np.inf
    return nearest(energy.T, 2).T  # the two strongest bonds of each donor


def fixed_hydrogens(p: Protein, i: int) -> list[tuple[int, np.ndarray]]:
    """Return donors of a residue and their fixed hydrogens ``(H, 3)``."""
    hydrogens = [("N", p.amides[i][None])]
    for d, x, y in OPPOSITE.get(p.kind[i], ()):
        away = along(p.at(i, x) - p.at(i, d)) + along(p.at(i, y) - p.at(i, d))
        hydrogens.append((d, (p.at(i, d) - 1.01 * along(away))[None]))
    for d, x, y in PLANAR.get(p.kind[i], ()):
        hydrogens.append((d, (p.at(i, d) + 1.01 * along(p.at(i, x) - p.at(i, y)))[None]))
    return [(p.number[i][d], h) for d, h in hydrogens if not np.isnan(h).any()]


def rotating_hydrogens(p: Protein, d: np.ndarray, x: np.ndarray, length: float, acceptor: np.ndarray) -> np.ndarray:
    """Return hydrogens ``(720, 3)`` rotated about X–D, the first one in the half-plane of the acceptor."""
    axis = along(d - x)
    u = along(acceptor - d - ((acceptor - d) @ axis) * axis)
    ring = np.cos(ROTATIONS)[:, None] * u + np.sin(ROTATIONS)[:, None] * np.cross(axis, u)
    bend = np.radians(109.5)
    return d + length * (-np.cos(bend) * axis + np.sin(bend) * ring)


def is_bond(d: np.ndarray, h: np.ndarray, a: np.ndarray) -> bool:
    """Return True if H…A < 2.5 Å and D–H…A > 120° for any of the hydrogens ``(H, 3)``."""
    r = np.sqrt(((a - h) ** 2).sum(1))
    cosine = ((d - h) * (a - h)).sum(1) / (r * np.sqrt(((d - h) ** 2).sum(1)))
    return bool(((r < 2.5) & (np.degrees(np.arccos(cosine.clip(-1, 1))) > 120)).any())


def geometric(p: Protein) -> np.ndarray:
    """Return bonds from donor to acceptor by Baker & Hubbard 1984."""
    joined = np.zeros((p.n, p.n), bool)
    accepts = p.residues.atom_element == "O"
    for i in range(p.n):
        accepts[[p.number[i][n] for n in ("ND1", "NE2") if p.kind[i] == "HIS" and n in p.number[i]]] = True
    accepts = np.flatnonzero(accepts)
    for i in range(p.n):
        others = accepts[p.owner[accepts] != i]
        for d, h in fixed_hydrogens(p, i):
            for a in others[between(p.xyz[d][None], p.xyz[others])[0] < 3.6]:
                joined[i, p.owner[a]] |= is_bond(p.xyz[d], h, p.xyz[a])
        name, x, length = ROTATING.get(p.kind[i], ("", "", 0.0))
        if {name, x} <= set(p.number[i]):
            d = p.at(i, name)
            for a in others[between(d[None], p.xyz[others])[0] < 3.6]:
                joined[i, p.owner[a]] |= is_bond(d, rotating_hydrogens(p, d, p.at(i, x), length, p.xyz[a]), p.xyz[a])
    return joined


def within_three_bonds(p: Protein) -> list[set[int]]:
    """Return the atoms at most three bonds from each, with bonds of biotite, peptide bonds and disulfides."""
    atoms = struc.AtomArray(len(p.xyz))
    atoms.coord, atoms.res_id = p.residues.atom_pos, p.owner
    atoms.atom_name, atoms.res_name = p.residues.atom_name, p.residues.res_name[p.owner]
    bonds = struc.connect_via_residue_names(atoms, inter_residue=False).as_array()[:, :2].tolist()
    ends = [(i, j, "C", "N") for i, j in np.argwhere(p.linked)]
    ends += [(i, j, "SG", "SG") for i, j in np.argwhere(disulfides(p))]
    bonds += [(p.number[i][a], p.number[j][b]) for i, j, a, b in ends if a in p.number[i] and b in p.number[j]]
    neighbors: list[set[int]] = [{a} for a in range(len(p.xyz))]
    for a, b in bonds:
        neighbors[a].add(b)
        neighbors[b].add(a)
    twice = [set().union(*(neighbors[b] for b in bonded)) for bonded in neighbors]
    return [set().union(*(neighbors[b] for b in bonded)) for bonded in twice]


def spheres(p: Protein, low: float, high: float) -> np.ndarray:
    """Join residues with a gap ``low < gap ≤ high`` between atom spheres."""
    joined, reach = np.zeros((p.n, p.n), bool), within_three_bonds(p)
    radius = np.array([RADII[e] for e in p.residues.atom_element])
    for a in range(len(p.xyz)):
        gap = between(p.xyz[a][None], p.xyz)[0] - (radius + radius[a])
        touched = [b for b in np.flatnonzero((gap > low) & (gap <= high)) if b not in reach[a]]
        joined[p.owner[a], p.owner[touched]] = True
    return both(joined & ~np.eye(p.n, dtype=bool))


def wrapped(p: Protein) -> np.ndarray:
    """Return the Delaunay triangulation by gift wrapping: from each face, add the point with an empty sphere."""
    x = p.atoms("CA")
    x -= x.mean(0)
    joined, done = np.zeros((p.n, p.n), bool), set()
    one = int(np.argmin(between(x[:1], x)[0] + np.where(np.arange(p.n) == 0, np.inf, 0)))  # a nearest neighbor is one
    size = [circle(x[[0, one, q]])[1] if q not in (0, one) else np.inf for q in range(p.n)]
    first = (0, one, int(np.argmin(size)))  # and the smallest sphere through both and a third point is empty
    waiting = [first, first[::-1]]
    while waiting:
        face = waiting.pop()
        if least(face) in done:
            continue
        done.add(least(face))
        center, r = circle(x[list(face)])
        normal = along(np.cross(x[face[1]] - x[face[0]], x[face[2]] - x[face[0]]))
        height = (x - center) @ normal
        height[list(face)] = 0
        beyond = np.flatnonzero(height > 1e-9)
        joined[face, face[1:] + face[:1]] = True
        if len(beyond) == 0:
            continue  # a face of the hull
        shift = (((x[beyond] - center) ** 2).sum(1) - r * r) / (2 * height[beyond])
        q = int(beyond[np.argmin(shift)])
        a, b, c = face
        joined[q, face] = True
        done |= {least(f) for f in ((a, b, c), (a, c, q), (c, b, q), (b, a, q))}  # from inside: on this side of each
        waiting += [(a, b, q), (b, c, q), (c, a, q)]
    return both(joined)


def least(face: tuple[int, ...]) -> tuple[int, ...]:
    """Rotate the indices of a face to begin with the smallest; its two sides stay distinct."""
    start = face.index(min(face))
    return face[start:] + face[:start]


def circle(corner: np.ndarray) -> tuple[np.ndarray, float]:
    """Return center and radius of the circle through three points ``(3, 3)``."""
    u, v = corner[1] - corner[0], corner[2] - corner[0]
    w = np.cross(u, v)
    to = (np.cross(w, u) * (v @ v) + np.cross(v, w) * (u @ u)) / (2 * (w @ w))
    return corner[0] + to, float(np.sqrt(to @ to))


Kind = tuple[str, dict[str, object], Callable[[Protein], np.ndarray]]
OF = ("node", "cb", "centroid", "any_atom")
KINDS: list[Kind] = [
    *(("knn", {"of": of}, lambda p, of=of: nearest(p.measures[of], 16)) for of in OF),
    *(("radius", {"of": of}, lambda p, of=of: p.measures[of] <= 10) for of in OF),
    ("knn", {"separation": 3}, lambda p: nearest(p.measures["node"], 16) & apart(p, 3)),
    ("radius", {"separation": 3}, lambda p: (p.measures["node"] <= 10) & apart(p, 3)),
    ("distant_knn", {}, lambda p: nearest(np.where(apart(p, 6), p.measures["node"], np.inf), 8)),
    ("contact", {}, lambda p: p.measures["any_atom"] <= 4.5),
    ("sequence", {"k": 3}, lambda p: p.same_chain & (np.abs(p.offset) <= 3) & (p.offset != 0)),
    ("sequence_offset", {"offset": 2}, lambda p: p.same_chain & (p.offset == 2)),
    ("delaunay", {}, wrapped),
    ("complete", {}, lambda p: ~np.eye(p.n, dtype=bool)),
    ("peptide_bond", {}, lambda p: both(p.linked)),
    ("covalent_bond", {}, lambda p: both(p.linked | disulfides(p))),
    ("hydrogen_bond", {"is_directed": True}, geometric),
    ("dssp_hydrogen_bond", {"is_directed": True}, electrostatic),
    ("van_der_waals", {}, lambda p: spheres(p, -0.4, 0.5)),
    ("clash", {}, lambda p: spheres(p, -np.inf, -0.4)),
]


def differing(p: Protein, kind: Kind) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of edges, and the edges in only one of code and definition."""
    name, options, definition = kind
    edges = build_graph(p.residues, [component(name, **options)]).edge_index.numpy()
    ours = np.zeros((p.n, p.n), bool)
    ours[edges[0], edges[1]] = True
    assert ours.sum() == edges.shape[1], f"{p.residues.name}: duplicate edges"
    return edges.shape[1], list(map(tuple, np.argwhere(ours != definition(p)).tolist()))


def written(kind: Kind) -> str:
    return " ".join([kind[0], *(f"{key}={value}" for key, value in kind[1].items())])


@pytest.fixture(scope="module")
def many(structures_dir) -> list[Protein]:
    """Return 56 committed entries of at most 250 residues."""
    every_other = (clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::2])
    return [Protein(residues) for residues in every_other if len(residues) <= 250][:56]


@pytest.mark.parametrize("kind", KINDS, ids=written)
def test_kinds_equal_their_definitions(proteins, kind):
    count, differ = differing(Protein(min(proteins, key=len)), kind)
    assert differ == [] and (count or kind[0] == "clash")


def test_oxygens_of_modified_residues_accept(structures_dir):
    p = Protein(clean(load_structure(structures_dir / "1fmo.bcif")))
    kind = next(kind for kind in KINDS if kind[0] == "hydrogen_bond")
    assert differing(p, kind)[1] == []
    threonine = int(np.flatnonzero(p.residues.res_name == "TPO")[0])
    edges = build_graph(p.residues, [component("hydrogen_bond", is_directed=True)]).edge_index.numpy()
    donors = edges[0, edges[1] == threonine]
    assert {"ARG", "LYS", "HIS"} <= {p.kind[i] for i in donors}  # they bind the phosphate


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=written)
def test_kinds_equal_their_definitions_on_56_structures(many, kind):
    results = [differing(p, kind) for p in many]
    total, differ = sum(count for count, _ in results), sum(len(pairs) for _, pairs in results)
    print(f"| `{written(kind)}` | {len(many)} | {total} | {differ} |")
    assert {p.residues.name: pairs for p, (_, pairs) in zip(many, results, strict=True) if pairs} == {}
    assert len(many) == 56 and total > 30

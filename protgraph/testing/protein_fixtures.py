"""Generated small proteins with helices, strands, side chains and ligands, and degenerate ones; no structure files.

Ideal coordinates of amino acids are in ``ideal_residues.csv``, from the Chemical Component Dictionary of the wwPDB
(CC0).
"""

# Not biotite.structure.info.residue: it loads the whole dictionary, 736 MB and 20 s (biotite 1.6, 2026-11-22).

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import torch
from biotite.sequence import ProteinSequence
from scipy.sparse import csr_array

from protgraph.structure import GAP, Alignment, LossReport, Residues
from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.residues import ALPHABET, THREE_LETTER
from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.vectors import unit

__all__ = [
    "copy_residues",
    "degenerate_proteins",
    "folded_proteins",
    "large_protein",
    "make_alignment",
    "make_protein",
    "packed_proteins",
    "proteins",
    "with_ligands",
]

# Bond lengths (Å) and angles (degrees) of the peptide unit: Engh & Huber 1991, doi:10.1107/S0108767391001071.
_N_CA, _CA_C, _C_N, _C_O = 1.458, 1.525, 1.329, 1.231
_N_CA_C, _CA_C_N, _C_N_CA, _CA_C_O = 111.2, 116.2, 121.7, 120.8
#: φ and ψ of α-helix, β-strand and polyproline II, in degrees.
_SHAPES = ((-60.0, -45.0), (-120.0, 130.0), (-75.0, 145.0))
#: A helix of ten residues, and two loops that turn back: found by random search for contacts without clashes.
_HELIX = np.tile([-60.0, -45.0], (10, 1))
_LOOPS = (
    np.array([[-81.0, -1.0], [-57.0, 135.0], [-143.0, -53.0], [-92.0, 155.0]]),
    np.array([[-74.0, 19.0], [-65.0, -35.0], [-67.0, 1.0], [-124.0, 132.0]]),
)
_BACKBONE = ("N", "CA", "C", "O")
_DISULFIDE = 2.04  # Å, SG–SG
_LIGAND_ELEMENTS = ("C", "N", "O", "S", "P", "ZN", "FE", "CL")
_SEQUENCES = 40  # of an alignment
_MOLECULE = 10  # atoms per molecule; the last may have fewer
#: Standard deviation (Å) of noise on every atom, so that no two distances of an ideal helix stay equal.
_JITTER = 0.1


@cache
def proteins(*, ligands: bool = False) -> tuple[Residues, ...]:
    """Return a protein of two chains (11 and 8 residues) and one of a single chain (7), always the same.

    With ``ligands``, the first has 28 atoms of small molecules, the second 9.
    """
    # no clashes, no two similar distances
    two_chains = make_protein((11, 8), seed=160)
    one_chain = make_protein((7,), seed=361)
    if not ligands:
        return two_chains, one_chain
    return with_ligands(two_chains, 28, seed=2044), with_ligands(one_chain, 9, seed=1963)


@cache
def folded_proteins() -> tuple[Residues, ...]:
    """Return two proteins of one chain (38 and 24 residues) of helices side by side, always the same.

    Residues far apart in the sequence are close in space, unlike in :func:`proteins`.
    """
    two_helices = np.concatenate([_HELIX, _LOOPS[0], _HELIX])
    three_helices = np.concatenate([two_helices, _LOOPS[1], _HELIX])
    return (
        make_protein((len(three_helices),), seed=0, dihedrals=three_helices),
        make_protein((len(two_helices),), seed=1, dihedrals=two_helices),
    )


@cache
def large_protein(residues: int) -> Residues:
    """Return a protein of one chain of many residues, always the same: helices side by side."""
    turns = np.concatenate([_HELIX, _LOOPS[0], _HELIX, _LOOPS[1]])
    return make_protein((residues,), seed=2, dihedrals=np.resize(turns, (residues, 2)))


def make_protein(lengths: Sequence[int], *, seed: int = 0, dihedrals: np.ndarray | None = None) -> Residues:
    """Generate residues of a protein-like structure, in float64.

    ``lengths``: number of residues of each chain. ``seed``: seed of types, shapes, noise and positions of the chains.
    ``dihedrals``: ``(N, 2)`` φ and ψ of every residue, degrees; drawn if not given.
    """
    rng = np.random.default_rng(seed)
    # backbones of the chains
    chains = []
    start = 0
    for length in lengths:
        angles = _drawn_dihedrals(length, rng) if dihedrals is None else dihedrals[start : start + length]
        chains.append(_place(_chain(angles), rng))
        start += length
    backbone = np.concatenate(chains)  # (N, 4, 3)
    n = len(backbone)
    backbone += rng.normal(0, _JITTER, backbone.shape)
    aatype = rng.integers(0, 20, n)
    chain_ids = np.array([chr(65 + number) for number in range(len(lengths))])
    seq_pos = np.concatenate([np.arange(length) for length in lengths])

    # side chains of two atoms; some residues have none, like glycine
    cb = virtual_cb(backbone)
    direction = rng.normal(size=(n, 3)) + unit(cb - backbone[:, 1])
    cg = cb + 1.52 * unit(direction)
    atoms = np.concatenate([backbone, cb[:, None], cg[:, None]], 1)  # (N, 6, 3)
    present: np.ndarray = np.ones((n, 6), bool)
    present[:, 4:] = rng.random((n, 1)) < 0.9
    names = np.array(["N", "CA", "C", "O", "CB", "CG"])
    elements = np.array([name[0] for name in names])
    return Residues(
        name=f"made{seed}",
        chain=np.repeat(chain_ids, lengths),
        res_id=seq_pos + 1,
        ins_code=np.full(n, ""),
        res_name=np.array([ProteinSequence.convert_letter_1to3(ALPHABET[t]) for t in aatype]),
        aatype=aatype,
        pos=backbone[:, 1].copy(),
        backbone=backbone,
        b_factor=rng.uniform(10, 60, n),
        occupancy=rng.uniform(0.5, 1, n),
        predicted=True,  # so that it has confidences
        seq_pos=seq_pos,
        atom_pos=atoms[present],
        atom_name=np.broadcast_to(names, (n, 6))[present],
        atom_element=np.broadcast_to(elements, (n, 6))[present],
        atom_residue=np.nonzero(present)[0],
        report=LossReport(),
        alignment=make_alignment(aatype, seed=seed),
    )


def make_alignment(aatype: np.ndarray, *, seed: int) -> Alignment:
    """Generate 40 sequences that differ from residue types in a third of the columns, with gaps and deletions."""
    rng = np.random.default_rng(seed)
    shape = (_SEQUENCES, len(aatype))
    is_substituted = rng.random(shape) < 0.3
    types = np.where(is_substituted, rng.integers(0, 20, shape), aatype)
    types[rng.random(shape) < 0.1] = GAP
    deletions = rng.integers(1, 4, shape)
    has_deletion = rng.random(shape) < 0.1
    deletions = deletions * has_deletion
    types[0] = aatype
    deletions[0] = 0
    return Alignment(types.astype(np.uint8), csr_array(deletions.astype(np.int32)), "made")


def copy_residues(residues: Residues, dtype: torch.dtype = torch.float64) -> Residues:
    """Copy residues, with coordinates and B factors in float64, or for other types in float32, as from files."""
    kind = np.float64 if dtype == torch.float64 else np.float32
    ligands = residues.ligands
    if ligands is not None:
        ligands = replace(ligands, atom_pos=ligands.atom_pos.astype(kind), atom_element=ligands.atom_element.copy())
    copies = {name: x.copy() for name, x in vars(residues).items() if isinstance(x, np.ndarray)}
    arrays: dict[str, Any] = {name: x.astype(kind) if x.dtype.kind == "f" else x for name, x in copies.items()}
    return replace(residues, **arrays, ligands=ligands)


def degenerate_proteins(*, ligands: bool = False) -> dict[str, Residues]:
    """Return proteins on which formulas divide by zero, by description.

    With ``ligands``, each has 3 ligand atoms at the position of its first residue, and one more protein has none.
    """
    cases = _degenerate()
    if not ligands:
        return cases
    bound = {name: with_ligands(residues, 3, seed=0) for name, residues in cases.items()}
    for residues in bound.values():
        if residues.ligands is not None:
            residues.ligands.atom_pos[:] = residues.pos[0]
    return {**bound, "no ligand": cases["several chains"]}


def _degenerate() -> dict[str, Residues]:
    protein = make_protein((6,), seed=3)
    many = make_protein((1, 2, 3), seed=4)
    at_one_place = {name: np.ones_like(getattr(protein, name)) for name in ("pos", "backbone", "atom_pos")}
    axis = np.array([1.0, 0.0, 0.0])
    line = np.arange(len(protein))[:, None] * (3.8 * axis)
    atoms_of_residue = np.array([-1.0, 0.0, 1.0, 1.5])[:, None] * axis  # (4, 3)
    on_a_line = {
        "pos": line,
        "backbone": line[:, None] + atoms_of_residue,
        "atom_pos": line[protein.atom_residue],
    }
    gaps = protein.backbone.copy()
    gaps[1:4, [0, 2, 3]] = np.nan
    alone = np.arange(len(protein)) == 0
    return {
        "one residue": protein.select(alone),
        "coincident atoms": replace(protein, **at_one_place),
        "collinear atoms": replace(protein, **on_a_line),
        "missing atoms": replace(protein, backbone=gaps),
        "several chains": many,
        "chain without a name": replace(protein, chain=np.full(len(protein), "")),
        "residues far apart": replace(protein, pos=1e3 * line, backbone=protein.backbone + 1e3 * line[:, None]),
    }


def _drawn_dihedrals(length: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a shape for every four residues; return φ and ψ, ``(length, 2)``."""
    shapes = rng.integers(0, len(_SHAPES), length // 4 + 1)
    shape_of_residue = np.repeat(shapes, 4)[:length]
    return np.array(_SHAPES)[shape_of_residue]


def _chain(dihedrals: np.ndarray) -> np.ndarray:
    """Return atoms N, CA, C, O of one chain, ``(length, 4, 3)``, Å, from φ and ψ, ``(length, 2)``."""
    phi, psi = dihedrals.T
    length = len(dihedrals)

    # N, CA and C of the first residue in a plane, then of each residue after the one before
    bend = math.radians(180 - _N_CA_C)
    n = np.zeros(3)
    ca = np.array([_N_CA, 0.0, 0.0])
    c = ca + _CA_C * np.array([math.cos(bend), math.sin(bend), 0.0])
    atoms = [n, ca, c]
    for i in range(1, length):
        atoms.append(_extend(atoms[-3:], _C_N, _CA_C_N, psi[i - 1]))  # N
        atoms.append(_extend(atoms[-3:], _N_CA, _C_N_CA, 180.0))  # CA, ω = 180°
        atoms.append(_extend(atoms[-3:], _CA_C, _N_CA_C, phi[i]))  # C
    three = np.array(atoms).reshape(length, 3, 3)
    oxygen = [_extend(three[i], _C_O, _CA_C_O, psi[i] + 180.0) for i in range(length)]
    return np.concatenate([three, np.array(oxygen)[:, None]], 1)


def _extend(last: Sequence[np.ndarray], length: float, angle: float, dihedral: float) -> np.ndarray:
    """Place an atom after three others (NeRF: Parsons et al. 2005, doi:10.1002/jcc.20237)."""
    a, b, c = last
    bc = unit((c - b)[None])[0]
    normal = unit(np.cross(b - a, bc)[None])[0]
    theta = math.radians(180 - angle)
    tau = math.radians(dihedral)
    local = np.array([math.cos(theta), math.sin(theta) * math.cos(tau), math.sin(theta) * math.sin(tau)])
    axes = np.stack([bc, np.cross(normal, bc), normal], 1)
    return c + length * axes @ local


def _place(chain: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rotate a chain about its center and move it about 8 Å from the origin."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    turn *= np.sign(np.linalg.det(turn))
    centered = chain - chain.mean((0, 1))
    return centered @ turn + 8.0 * unit(rng.normal(size=(1, 3)))


def with_ligands(residues: Residues, atoms: int, *, seed: int) -> Residues:
    """Add ligand atoms 4 to 9 Å from CA atoms of a protein, in its floating type."""
    rng = np.random.default_rng(seed)
    beside = residues.pos[rng.integers(0, len(residues), atoms)]
    distance = rng.uniform(4, 9, (atoms, 1))
    pos = beside + distance * unit(rng.normal(size=(atoms, 3)))
    molecule: np.ndarray = np.arange(atoms) // _MOLECULE
    count = int(molecule.max(initial=-1)) + 1
    element = rng.choice(_LIGAND_ELEMENTS, atoms)
    ligands = Ligands(
        chain=np.full(count, residues.chain[0]),
        res_id=1000 + np.arange(count),
        ins_code=np.full(count, ""),
        res_name=np.full(count, "LIG"),
        atom_pos=pos.astype(residues.pos.dtype),
        atom_name=element.copy(),
        atom_element=element,
        atom_molecule=molecule,
    )
    return replace(residues, ligands=ligands)


@cache
def packed_proteins() -> tuple[Residues, ...]:
    """Return a protein of two chains (26 and 20 residues) and one of a single chain (14), always the same.

    With these seeds, every kind of interaction occurs. One disulfide bond is made by moving a sulfur.
    """
    return _packed((26, 20), seed=156), _packed((14,), seed=8)


def _packed(lengths: tuple[int, ...], *, seed: int) -> Residues:
    protein = make_protein(lengths, seed=seed)
    rng = np.random.default_rng(seed)
    aatype: np.ndarray = np.resize(rng.permutation(20), len(protein))  # every type, in chains long enough
    names = [THREE_LETTER[t] for t in aatype]
    atom_names: list[str] = []
    positions = []
    sizes = []
    for name, backbone in zip(names, protein.backbone, strict=True):
        names_of_residue, pos = _with_sidechain(name, backbone)
        atom_names += names_of_residue
        positions.append(pos)
        sizes.append(len(pos))
    protein = replace(
        protein,
        alignment=make_alignment(aatype, seed=seed),
        aatype=aatype,
        res_name=np.array(names),
        atom_name=np.array(atom_names),
        atom_pos=np.concatenate(positions),
        atom_element=np.array([name[0] for name in atom_names]),
        atom_residue=np.repeat(np.arange(len(protein)), sizes),
    )

    # the second sulfur of cysteine comes as close to the first as in a disulfide bond
    is_cysteine = protein.res_name[protein.atom_residue] == "CYS"
    sulfur = np.flatnonzero((protein.atom_name == "SG") & is_cysteine)
    if len(sulfur) > 1:
        first, second = sulfur[:2]
        vector = protein.atom_pos[second] - protein.atom_pos[first]
        protein.atom_pos[second] = protein.atom_pos[first] + _DISULFIDE * vector / np.linalg.norm(vector)
    return protein


@cache
def _ideal_residues() -> dict[str, dict[str, np.ndarray]]:
    """Read ``(3,)`` float32 coordinates (Å) of N, CA, C and side chains, by residue and atom name."""
    text = resources.files(__package__).joinpath("ideal_residues.csv").read_text(encoding="utf-8")
    atoms: dict[str, dict[str, np.ndarray]] = {}
    for row in csv.DictReader(text.splitlines()):
        atoms.setdefault(row["res_name"], {})[row["atom_name"]] = np.array([row[x] for x in "xyz"], np.float32)
    return atoms


def _with_sidechain(name: str, backbone: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the heavy atoms of an amino acid, its ideal side chain superimposed on N, CA and C of ``(4, 3)``."""
    ideal = _ideal_residues()[name]
    three = np.stack([ideal[atom] for atom in _BACKBONE[:3]]).astype(np.float64)
    center = three.mean(0)
    target = backbone[:3].mean(0)
    u, _, vt = np.linalg.svd((three - center).T @ (backbone[:3] - target))  # Kabsch
    u[:, 2] *= np.linalg.det(u @ vt)
    side = [atom for atom in ideal if atom not in _BACKBONE]
    coord = np.array([ideal[atom] for atom in side], np.float32).reshape(-1, 3)
    placed = (coord - center) @ (u @ vt) + target
    return [*_BACKBONE, *side], np.concatenate([backbone, placed])

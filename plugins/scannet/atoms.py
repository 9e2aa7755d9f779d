"""Inputs of ScanNet: atoms with their kinds and frames, and frames of residues from CA and side chain."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from protgraph import FieldSpec, NodeFeaturizer, NodeList, Residues, StructureFeaturizer, register_field
from protgraph.data import Conformity
from protgraph.structure import ALPHABET, BACKBONE

__all__ = ["ATOM_KINDS", "ScanAtoms", "ScanResidue"]
ENTRY_POINTS = {"protgraph.featurizers": {"scan_atoms": "ScanAtoms", "scan_residue": "ScanResidue"}}

#: Kinds of heavy atoms, by element and bound hydrogens; kind 0 of the program is padding.
ATOM_KINDS = ("C", "CH", "CH2", "CH3", "CPi", "O", "OH", "N", "NH", "NH2", "S", "SH")

# Atoms of each residue type, "name:kind:previous:next". The frame of an atom is made of it and of the atoms that are
# bonded to it before and after it. As in the program, NE2 of histidine is a C, and CG of glutamate a CH.
_SIDE_CHAINS = {
    "A": "CB:CH3:CA",
    "C": "CB:CH2:CA:SG SG:SH:CB",
    "D": "CB:CH2:CA:CG CG:C:CB:OD1 OD1:O:CG OD2:OH:CG",
    "E": "CB:CH2:CA:CG CG:CH:CB:CD CD:C:CG:OE1 OE1:O:CD OE2:OH:CD",
    "F": "CB:CH2:CA:CG CG:CPi:CB:CD1 CD1:CPi:CG:CE1 CE1:CPi:CD1:CZ CZ:CPi:CE1:CE2 CE2:CPi:CD2:CZ CD2:CPi:CG:CE2",
    "G": "",
    "H": "CB:CH2:CA:CG CG:CPi:CB:ND1 ND1:N:CG:CE1 CE1:CPi:ND1:NE2 NE2:C:CE1:CD2 CD2:CPi:NE2:CG",
    "I": "CB:CH:CA:CG1 CG1:CH2:CB:CD1 CG2:CH3:CB CD1:CH3:CG1",
    "K": "CB:CH2:CA:CG CG:CH2:CB:CD CD:CH2:CG:CE CE:CH2:CD:NZ NZ:NH2:CE",
    "L": "CB:CH2:CA:CG CG:CH:CB:CD1 CD1:CH3:CG CD2:CH3:CG",
    "M": "CB:CH2:CA:CG CG:CH2:CB:SD SD:S:CG:CE CE:CH3:SD",
    "N": "CB:CH2:CA:CG CG:C:CB:OD1 OD1:O:CG ND2:NH2:CG",
    "P": "CB:CH2:CA:CG CG:CH2:CB:CD CD:CH2:CG:N",
    "Q": "CB:CH2:CA:CG CG:CH2:CB:CD CD:C:CG:OE1 OE1:O:CD NE2:NH2:CD",
    "R": "CB:CH2:CA:CG CG:CH2:CB:CD CD:CH2:CG:NE NE:NH:CD:CZ CZ:C:NE:NH1 NH1:NH:CZ NH2:NH2:CZ",
    "S": "CB:CH2:CA:OG OG:OH:CB",
    "T": "CB:CH:CA:OG1 OG1:OH:CB CG2:CH3:CB",
    "V": "CB:CH:CA:CG1 CG1:CH3:CB CG2:CH3:CB",
    "W": (
        "CB:CH2:CA:CG CG:CPi:CB:CD1 CD1:CPi:CG:NE1 NE1:NH:CD1:CE2 CD2:CPi:CG:CE2 CE2:CPi:CD2:CZ2 CZ2:CPi:CE2:CH2 "
        "CH2:CPi:CZ2:CZ3 CZ3:CPi:CH2:CE3 CE3:CPi:CZ3:CD2"
    ),
    "Y": (
        "CB:CH2:CA:CG CG:CPi:CB:CD1 CD1:CPi:CG:CE1 CE1:CPi:CD1:CZ CZ:CPi:CE1:CE2 CE2:CPi:CD2:CZ CD2:CPi:CG:CE2 OH:OH:CZ"
    ),
    "X": "CB:CH3:CA",
}
_SAME_ATOM = {"OT1": "O", "OT2": "OXT", "SE": "SD"}  # other names; selenium of MSE is the sulfur of MET
_MASS = {"C": 12.0, "N": 14.0, "O": 16.0, "S": 32.0}
_FLAT = 1e-4  # smaller sines are rounding errors of three collinear atoms
_OTHER_CHAIN = 1000  # added to the index of a residue at each new chain

ATOMS = register_field(FieldSpec("scan_atoms", "node", "object", doc="node set: heavy atoms of the twenty amino acids"))
KIND = register_field(
    FieldSpec(
        "scan_kind",
        "node",
        "0e",
        "int64",
        shape=(),
        classes=1 + len(ATOM_KINDS),
        doc="kind of a heavy atom by element and hydrogens; 0 unused",
    )
)
FRAME = register_field(
    FieldSpec(
        "scan_frame",
        "node",
        "2x1o+1x1e",
        shape=(3, 3),
        doc="rows are the axes of the frame of an atom or residue; 0 if it is undefined",
    )
)
PLACE = register_field(
    FieldSpec("scan_place", "node", "0e", "int64", shape=(), doc="place of a residue in its chain, without gaps")
)


class _Rule(NamedTuple):
    """Kind of an atom, and the names of the atoms before and after it; "" without one."""

    kind: int
    previous: str
    next: str


def _rules() -> dict[tuple[str, str], _Rule]:
    """Return the rule of each atom by residue letter and name; N and C also have a neighbor in another residue."""
    rules = {}
    for letter, side_chain in _SIDE_CHAINS.items():
        alpha = "CH2" if letter == "G" else "CH"
        amide = "N" if letter == "P" else "NH"
        backbone = [f"N:{amide}::CA", f"CA:{alpha}:N:C", "C:C:CA:", "O:O:C:", "OXT:OH:C:"]
        for text in [*backbone, *side_chain.split()]:
            name, kind, previous, following = f"{text}:".split(":")[:4]
            rules[letter, name] = _Rule(1 + ATOM_KINDS.index(kind), previous, following)
    return rules


_RULES = _rules()


class ScanAtoms(NodeFeaturizer):
    """Heavy atoms as a node set: kind and frame of each, for filters at the scale of atoms.

    The frame of an atom has e₁ along the bond to the next atom, e₂ towards the previous one, and e₃ = e₁ × e₂. At the
    end of a branch, the missing neighbor is the fourth corner of a parallelogram with the three atoms before it.

    Writes
    ------
    scan_atoms : the node set
    scan_kind : (M,) int64, 13 classes
    scan_frame : (M, 3, 3), 2x1o+1x1e
        0 if the neighbors are missing or collinear.

    Notes
    -----
    Atoms that the amino acid does not have, e.g. phosphate of SEP, are left out; MSE is read as MET. The program has
    frames along the axes of the file where neighbors are missing, which depends on the orientation.

    References
    ----------
    Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7, Methods.
    """

    writes: ClassVar[tuple[str, ...]] = (ATOMS.name, KIND.name, FRAME.name)

    def __call__(self, residues: Residues) -> NodeList:
        # atoms that the amino acid of their residue has
        letters = [ALPHABET[number] for number in residues.aatype]
        rows, rules, names = [], [], []
        for row, (residue, atom) in enumerate(zip(residues.atom_residue.tolist(), residues.atom_name, strict=True)):
            name = _SAME_ATOM.get(str(atom), str(atom))
            rule = _RULES.get((letters[residue], name))
            if rule is not None:
                rows.append(row)
                rules.append(rule)
                names.append(name)
        pos = residues.atom_pos[rows]
        residue_of = residues.atom_residue[rows]

        previous, following = _bonded(residues, residue_of, names, rules)
        to_previous, to_next = _directions(pos.astype(np.float64), previous, following)
        fields = {
            KIND.name: np.array([rule.kind for rule in rules], np.int64),
            FRAME.name: _frames(to_next, to_previous).astype(pos.dtype),
        }
        return NodeList(pos, residue_of, fields)


def _bonded(
    residues: Residues, residue_of: np.ndarray, names: list[str], rules: list[_Rule]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the atoms before and after each atom, ``(M,)`` each; −1 if missing."""
    row_of = {(residue, name): row for row, (residue, name) in enumerate(zip(residue_of.tolist(), names, strict=True))}
    follows = np.append(False, residues.chain_number[1:] == residues.chain_number[:-1])  # (N,) the residue before it
    previous, following = np.full(len(names), -1), np.full(len(names), -1)
    for row, (residue, name, rule) in enumerate(zip(residue_of.tolist(), names, rules, strict=True)):
        if name == "N":
            previous[row] = row_of.get((residue - 1, "C"), -1) if follows[residue] else -1
        else:
            previous[row] = row_of.get((residue, rule.previous), -1)
        if name == "C":
            is_last = residue + 1 >= len(residues) or not follows[residue + 1]
            following[row] = -1 if is_last else row_of.get((residue + 1, "N"), -1)
        else:
            following[row] = row_of.get((residue, rule.next), -1)
    return previous, following


def _directions(pos: np.ndarray, previous: np.ndarray, following: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors from each atom to the atoms before and after it, ``(M, 3)`` each; 0 if undefined."""
    to_previous = np.where(previous[:, None] >= 0, pos[previous] - pos, 0.0)
    to_next = np.where(following[:, None] >= 0, pos[following] - pos, 0.0)

    # A missing neighbor closes the parallelogram of the atom, its other neighbor, and the neighbor of that one.
    ends = np.flatnonzero((previous >= 0) & (following < 0) & (previous[previous] >= 0))
    before = previous[ends]
    to_next[ends] = pos[before] - pos[previous[before]]
    begins = np.flatnonzero((previous < 0) & (following >= 0) & (following[following] >= 0))
    after = following[begins]
    to_previous[begins] = pos[after] - pos[following[after]]
    return to_previous, to_next


class ScanResidue(StructureFeaturizer):
    """Frame of each residue from its CA, its side chain and the CA before it, and its place in the chain.

    e₁ points from CA to the center of mass of the side chain, e₂ towards the CA before it, and e₃ = e₁ × e₂.

    Writes
    ------
    scan_frame : (N, 3, 3), 2x1o+1x1e
        0 if the three points are collinear.
    scan_place : (N,) int64
        Place in the chain; residues of different chains are at least 1,000 apart.

    Notes
    -----
    For glycine, the side chain is at ``3 CA − C − N'`` with N' the nitrogen of the residue before, as in the program
    (its authors note that the nitrogen of the residue itself was meant). Without a residue before, and for a residue
    without C, it is the last atom of the residue. For the first residue, the CA before is ``2 CA − x``, x the first
    atom of the second residue.

    References
    ----------
    Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7, Methods.
    """

    writes: ClassVar[tuple[str, ...]] = (FRAME.name, PLACE.name)
    conformity: ClassVar[Conformity] = Conformity(
        tolerance=3e-4,  # directions to a side chain 1 Å away, from coordinates of hundreds of Å
        expected_failures={"node_order": "it reads the order of the residues in the chain, as the program does"},
    )

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        n = len(residues)
        chain = residues.chain_number
        follows = np.append(False, chain[1:] == chain[:-1])
        start = np.maximum.accumulate(np.where(follows, 0, np.arange(n)))  # (N,) first residue of the chain

        ca = residues.pos.astype(np.float64)
        before = np.where(follows[:, None], np.roll(ca, 1, axis=0), ca)
        for first in np.flatnonzero(~follows):
            if first + 1 < n and follows[first + 1]:
                before[first] = 2 * ca[first] - residues.atom_pos[residues.atom_ptr[first + 1]]

        to_side_chain = _side_chains(residues, follows) - ca
        return {
            FRAME.name: _frames(to_side_chain, before - ca).astype(residues.pos.dtype),
            PLACE.name: np.arange(n) - start + _OTHER_CHAIN * chain,
        }


def _side_chains(residues: Residues, follows: np.ndarray) -> np.ndarray:
    """Return the center of mass of each side chain, ``(N, 3)`` Å, or the point in its place."""
    # mass and sum of positions of the atoms beyond the backbone
    element = residues.atom_element
    mass = np.select([element == symbol for symbol in _MASS], list(_MASS.values()), 0.0)
    mass[element == "SE"] = _MASS["S"]
    mass[np.isin(residues.atom_name, [*BACKBONE, "OXT", "OT1", "OT2"])] = 0.0
    total = np.bincount(residues.atom_residue, mass, len(residues))
    weighted = mass[:, None] * residues.atom_pos.astype(np.float64)
    center = np.zeros((len(residues), 3))
    np.add.at(center, residues.atom_residue, weighted)
    center = center / np.where(total > 0, total, 1.0)[:, None]

    # glycine and incomplete residues
    nitrogen, ca, carbon = residues.backbone[:, :3].astype(np.float64).swapaxes(0, 1)
    virtual = 3 * ca - carbon - np.roll(nitrogen, 1, axis=0)
    last_atom = residues.atom_pos[residues.atom_ptr[1:] - 1].astype(np.float64)
    is_virtual = follows & ~np.isnan(virtual).any(1)
    other = np.where(is_virtual[:, None], virtual, last_atom)
    return np.where((total > 0)[:, None], center, other)


def _frames(along: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Return frames ``(M, 3, 3)`` with rows e₁ ∥ along, e₂ towards another vector, e₃; 0 if collinear."""
    normal = np.cross(along, towards)
    size = np.linalg.norm(normal, axis=1)
    product = np.linalg.norm(along, axis=1) * np.linalg.norm(towards, axis=1)
    is_defined = size > _FLAT * product
    e1 = along / np.where(is_defined, np.linalg.norm(along, axis=1), 1.0)[:, None]
    e3 = normal / np.where(is_defined, size, 1.0)[:, None]
    frames = np.stack([e1, np.cross(e3, e1), e3], axis=1)
    return np.where(is_defined[:, None, None], frames, 0.0)

"""Solvent-accessible surface area by test points, the same however the protein lies; and radii of atoms."""

from __future__ import annotations

from functools import cache

import numpy as np
from biotite.structure import AtomArray, sasa

from protgraph.structure.neighbors.compact_fragments import compact_fragments
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.structure.residues.residues import Residues

__all__ = ["MAX_SASA", "PROBE", "protor_radii", "atom_sasa", "residue_sasa"]

PROBE = 1.4
"""Radius of a water molecule, Å (Lee & Richards 1971, doi:10.1016/0022-2836(71)90324-X)."""

_TIEN = "A129 R274 N195 D193 C167 Q225 E223 G104 H224 I197 L201 K236 M224 F240 P159 S155 T172 W285 Y263 V174"
_LARGEST = {word[0]: float(word[1:]) for word in _TIEN.split()}
MAX_SASA = np.array([_LARGEST.get(letter, np.mean(list(_LARGEST.values()))) for letter in ALPHABET])
"""``(21,)`` Å², largest area of each residue type between two glycines, theoretical values of Tien et al. 2013,
doi:10.1371/journal.pone.0080635, table 1; for X the mean of the twenty."""

# Tsai et al. 1999, doi:10.1006/jmbi.1999.2829, table 2 (ProtOr), by element and hydrogens, as for residues of the CCD.
_ANY_RESIDUE = {"N": 1.64, "CA": 1.88, "C": 1.61, "O": 1.42, "CB": 1.88, "OXT": 1.46}
_OF_ELEMENT = {"C": 1.88, "N": 1.64, "O": 1.42, "S": 1.77}
_TRIGONAL = "CG:NDHFWY CD:QE CD2:W CE2:W CZ:YR"  # C without hydrogens, 1.61 Å
_AROMATIC = "CD1:FWY CD2:HFY CE1:HFY CE2:FY CZ:F CE3:W CZ2:W CZ3:W CH2:W"  # C with one, 1.76 Å
_HYDROXYL = "OG:S OG1:T OH:Y OD2:D OE2:E"  # O with one, 1.46 Å

# Bondi 1964, doi:10.1021/j100785a001, for atoms whose names the parent residue does not have; 1.8 Å for other elements.
_BONDI = {"C": 1.70, "N": 1.55, "O": 1.52, "S": 1.80, "P": 1.80, "SE": 1.90, "F": 1.47, "CL": 1.75, "BR": 1.85}
_OTHER = 1.8

_STANDARD_ATOMS = (
    "CB:ACDEFHIKLMNPQRSTVWY CG:DEFHKLMNPQRWY CG1:IV CG2:ITV SG:C SD:M CD:EKPQR CD1:FILWY CD2:FHLWY OD1:DN OD2:D ND1:H "
    "ND2:N OG:S OG1:T OE1:EQ OE2:E NE:R NE1:W NE2:HQ CE:KM CE1:FHY CE2:FWY CE3:W CZ:FRY CZ2:W CZ3:W CH2:W NZ:K NH1:R "
    "NH2:R OH:Y"
)


def residue_sasa(residues: Residues, *, points: int = 1000, probe: float = PROBE) -> np.ndarray:
    """Solvent-accessible surface area of each residue, the sum over its heavy atoms.

    Parameters
    ----------
    residues : Residues
        All chains together shield each other; ligands, waters and nucleic acids do not.
    points, probe
        As for :func:`atom_sasa`.

    Returns
    -------
    ndarray
        ``(N,)`` float64, Å².
    """
    area = atom_sasa(residues, points=points, probe=probe)
    return np.bincount(residues.atom_residue, area, minlength=len(residues))


def atom_sasa(residues: Residues, *, points: int = 1000, probe: float = PROBE) -> np.ndarray:
    """``4π (r_a + probe)²`` times the part of the points on that sphere that no other atom's sphere covers.

    Parameters
    ----------
    residues : Residues
    points : int
        Test points of each atom, on a Fibonacci spiral.
    probe : float
        Radius of the solvent molecule, Å.

    Returns
    -------
    ndarray
        ``(A,)`` float64, Å².

    Notes
    -----
    By biotite's ``sasa``. The points do not turn with the protein; the protein is turned instead, so that the area does
    not depend on how it lies: along its principal axes, each towards the side of its longer tail. The areas of a
    protein that has no such axes, being symmetric, are as exact, but may differ from pose to pose as much as the number
    of points allows.

    References
    ----------
    Shrake & Rupley 1973, doi:10.1016/0022-2836(73)90011-9.
    """
    atoms, radii = AtomArray(len(residues.atom_pos)), protor_radii(residues)
    if len(atoms) == 0:
        return np.zeros(0)
    pose = _along_axes(residues.atom_pos.astype(np.float64))
    atoms.coord = compact_fragments(pose, 2 * (radii.max() + probe)).astype(np.float32)
    atoms.element = residues.atom_element
    area = sasa(atoms, probe_radius=probe, point_number=points, vdw_radii=radii, ignore_ions=False)
    return area.astype(np.float64)


def protor_radii(residues: Residues) -> np.ndarray:
    """Radii that hold the hydrogens, which files lack, by residue type and atom name: the ProtOr set.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(A,)`` float64, Å. Atoms that the (parent) residue type does not have take Bondi's radius of their element.

    References
    ----------
    Tsai et al. 1999, doi:10.1006/jmbi.1999.2829; Bondi 1964, doi:10.1021/j100785a001.
    """
    names, name = np.unique(residues.atom_name, return_inverse=True)
    elements, element = np.unique(residues.atom_element, return_inverse=True)
    table = np.array([[_protor().get((letter, str(n)), np.nan) for letter in ALPHABET] for n in names])
    found = table[name, residues.aatype[residues.atom_residue]] if len(names) else np.zeros(0)
    by_element = np.array([_BONDI.get(str(e), _OTHER) for e in elements])
    return np.where(np.isnan(found), by_element[element], found) if len(names) else found


@cache
def _protor() -> dict[tuple[str, str], float]:
    """Radius by one-letter code and atom name."""
    radii = {(letter, name): r for letter in ALPHABET for name, r in _ANY_RESIDUE.items()}
    del radii["G", "CB"], radii["X", "CB"]
    radii |= {(letter, name): _OF_ELEMENT[name[0]] for name, letter in _words(_STANDARD_ATOMS)}
    for text, radius in ((_TRIGONAL, 1.61), (_AROMATIC, 1.76), (_HYDROXYL, 1.46)):
        radii |= {(letter, name): radius for name, letter in _words(text)}
    return radii


def _words(text: str) -> list[tuple[str, str]]:
    """(atom name, letter) of each residue type listed as "name:letters"."""
    pairs = (word.split(":") for word in text.split())
    return [(name, letter) for name, letters in pairs for letter in letters]


def _along_axes(pos: np.ndarray) -> np.ndarray:
    """``(A, 3)`` positions from their center along their principal axes, each so that the third moment is positive."""
    centered = pos - pos.mean(0)
    turned = centered @ np.linalg.eigh(centered.T @ centered)[1]
    return turned * np.where((turned**3).sum(0) < 0, -1.0, 1.0)

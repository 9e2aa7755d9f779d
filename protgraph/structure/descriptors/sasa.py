"""Rotation-invariant solvent-accessible surface area (Shrake & Rupley 1973) and ProtOr radii.

Areas are those of biotite. Not its radii: ``info.vdw_radius_protor`` takes 24 ms for 10,032 atoms, one call each, this
3 ms with equal values, and it raises for atom names that a residue does not have (biotite 1.6.0, 2026-11-22).
"""

from __future__ import annotations

from functools import cache
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np
from biotite.structure import AtomArray, sasa

from protgraph.structure.chemistry.vdw import vdw_radii
from protgraph.structure.neighbors.search import compact_fragments
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.structure.residues.residues import Residues

__all__ = ["MAX_SASA", "PROBE", "atom_sasa", "protor_radii", "residue_sasa"]

PROBE = 1.4
"""Radius of a water molecule, Å (Lee & Richards 1971, doi:10.1016/0022-2836(71)90324-X)."""

_TIEN = "A129 R274 N195 D193 C167 Q225 E223 G104 H224 I197 L201 K236 M224 F240 P159 S155 T172 W285 Y263 V174"
_LARGEST = {word[0]: float(word[1:]) for word in _TIEN.split()}
MAX_SASA = np.array([_LARGEST.get(letter, np.mean(list(_LARGEST.values()))) for letter in ALPHABET])
"""Largest area of each residue type between two glycines, ``(21,)`` Å²: theoretical values of Tien et al. 2013,
doi:10.1371/journal.pone.0080635, table 1; for X the mean of the twenty."""

# Tsai et al. 1999, doi:10.1006/jmbi.1999.2829, table 2 (ProtOr), by element and hydrogens, as for residues of the CCD.
_ANY_RESIDUE = {"N": 1.64, "CA": 1.88, "C": 1.61, "O": 1.42, "CB": 1.88, "OXT": 1.46}
_OF_ELEMENT = {"C": 1.88, "N": 1.64, "O": 1.42, "S": 1.77}
_TRIGONAL = "CG:NDHFWY CD:QE CD2:W CE2:W CZ:YR"  # C without hydrogens, 1.61 Å
_AROMATIC = "CD1:FWY CD2:HFY CE1:HFY CE2:FY CZ:F CE3:W CZ2:W CZ3:W CH2:W"  # C with one, 1.76 Å
_HYDROXYL = "OG:S OG1:T OH:Y OD2:D OE2:E"  # O with one, 1.46 Å

_BY_ELEMENT, _OTHER = ("C", "N", "O", "S", "P", "SE", "F", "CL", "BR"), 1.8  # of Bondi; Å for all other elements

_STANDARD_ATOMS = (
    "CB:ACDEFHIKLMNPQRSTVWY CG:DEFHKLMNPQRWY CG1:IV CG2:ITV SG:C SD:M CD:EKPQR CD1:FILWY CD2:FHLWY OD1:DN OD2:D ND1:H "
    "ND2:N OG:S OG1:T OE1:EQ OE2:E NE:R NE1:W NE2:HQ CE:KM CE1:FHY CE2:FWY CE3:W CZ:FRY CZ2:W CZ3:W CH2:W NZ:K NH1:R "
    "NH2:R OH:Y"
)


def residue_sasa(
    residues: Residues,
    *,
    points: int = 1000,
    probe: float = PROBE,
    rotate: bool = True,
    only: np.ndarray | None = None,
) -> np.ndarray:
    """Return the solvent-accessible surface area of each residue, the sum over its heavy atoms.

    ``residues``: all chains bury each other; ligands, waters and nucleic acids are ignored. ``points``, ``probe``,
    ``rotate``, ``only``: as for :func:`atom_sasa`. Returns ``(N,)`` float64, Å²; NaN for residues left out by ``only``.
    """
    area = atom_sasa(residues, points=points, probe=probe, rotate=rotate, only=only)
    return np.bincount(residues.atom_residue, area, minlength=len(residues))


def atom_sasa(
    residues: Residues,
    *,
    points: int = 1000,
    probe: float = PROBE,
    rotate: bool = True,
    only: np.ndarray | None = None,
) -> np.ndarray:
    """Return ``4π (r_a + probe)²`` times the fraction of this sphere outside all other spheres.

    Computed by biotite's ``sasa``. For rotation invariance the protein is first rotated to its principal axes, each
    with a positive third moment. Areas of a symmetric protein without unique axes have the same accuracy, but vary with
    its orientation within the resolution of the points. Areas of residues with read-only arrays
    (:meth:`Residues.read_only`, as featurizers get them) are computed once.

    ``points``: test points per atom, on a Fibonacci spiral. ``probe``: radius of the solvent molecule, Å. ``rotate``:
    False: keep the orientation. Needed for the difference of two structures with common atoms: rotated, their test
    points differ, and so do areas of atoms that nothing else buries, by up to some Å² per residue. ``only``: ``(N,)``
    bool, residues whose areas are needed. The others bury them all the same. Returns ``(A,)`` float64, Å²; NaN for
    atoms of residues left out by ``only``.

    References
    ----------
    Shrake & Rupley 1973, doi:10.1016/0022-2836(73)90011-9.
    """
    if only is not None or any(getattr(residues, name).flags.writeable for name in _READ):
        return _compute_sasa(residues, points, probe, rotate, only)
    areas = _AREAS.setdefault(residues, {})  # several featurizers of one protein need them
    if (key := (points, probe, rotate)) not in areas:
        areas[key] = _compute_sasa(residues, points, probe, rotate, None)
    return areas[key].copy()


_READ = ("aatype", "atom_pos", "atom_name", "atom_element", "atom_residue")
_AREAS: WeakKeyDictionary[Residues, dict[tuple[int, float, bool], np.ndarray]] = WeakKeyDictionary()
"""Areas of residues with read-only arrays, by number of points, probe radius and rotation."""


def _compute_sasa(residues: Residues, points: int, probe: float, rotate: bool, only: np.ndarray | None) -> np.ndarray:
    """Return :func:`atom_sasa`."""
    atoms, radii = AtomArray(len(residues.atom_pos)), protor_radii(residues)
    if len(atoms) == 0:
        return np.zeros(0)
    pos = residues.atom_pos.astype(np.float64)
    atoms.coord = compact_fragments(_along_axes(pos) if rotate else pos, 2 * (radii.max() + probe)).astype(np.float32)
    atoms.element = residues.atom_element
    wanted = None if only is None else only[residues.atom_residue]
    area = sasa(atoms, probe, atom_filter=wanted, ignore_ions=False, point_number=points, vdw_radii=radii)
    return area.astype(np.float64)


def protor_radii(residues: Residues) -> np.ndarray:
    """Return united-atom radii (with implicit hydrogens) by residue type and atom name: the ProtOr set.

    Returns ``(A,)`` float64, Å. Atoms that the (parent) residue type does not have use ``vdw_radii`` for C, N, O, S, P,
    Se, F, Cl and Br, and 1.8 Å for other elements.

    References
    ----------
    Tsai et al. 1999, doi:10.1006/jmbi.1999.2829.
    """
    names, name = np.unique(residues.atom_name, return_inverse=True)
    if len(names) == 0:
        return np.zeros(0)
    table = np.full((len(names), len(ALPHABET)), np.nan)
    for row, column in product(range(len(names)), range(len(ALPHABET))):
        table[row, column] = _protor().get((ALPHABET[column], str(names[row])), np.nan)
    radius = table[name, residues.aatype[residues.atom_residue]]
    by_element = np.where(np.isin(residues.atom_element, _BY_ELEMENT), vdw_radii(residues), _OTHER)
    return np.where(np.isnan(radius), by_element, radius)


@cache
def _protor() -> dict[tuple[str, str], float]:
    """Return the radii by one-letter code and atom name."""
    radii = {(letter, name): r for letter in ALPHABET for name, r in _ANY_RESIDUE.items()}
    del radii["G", "CB"], radii["X", "CB"]
    radii |= {(letter, name): _OF_ELEMENT[name[0]] for name, letter in _words(_STANDARD_ATOMS)}
    for text, radius in ((_TRIGONAL, 1.61), (_AROMATIC, 1.76), (_HYDROXYL, 1.46)):
        radii |= {(letter, name): radius for name, letter in _words(text)}
    return radii


def _words(text: str) -> list[tuple[str, str]]:
    """Parse "name:letters …" to pairs (atom name, letter)."""
    pairs = (word.split(":") for word in text.split())
    return [(name, letter) for name, letters in pairs for letter in letters]


def _along_axes(pos: np.ndarray) -> np.ndarray:
    """Return centered positions ``(A, 3)`` along their principal axes, each with a positive third moment."""
    centered = pos - pos.mean(0)
    rotated = centered @ np.linalg.eigh(centered.T @ centered)[1]
    return rotated * np.where((rotated**3).sum(0) < 0, -1.0, 1.0)

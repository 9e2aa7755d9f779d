"""Which atoms of ligands, ions, nucleotides and known side chains lie about each residue: ``context_atoms``."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from protgraph_plugins.ligandmpnn.fields import CONTEXT_ELEMENT, CONTEXT_MASK, CONTEXT_POS
from scipy.spatial import cKDTree

from protgraph import Residues, StructureFeaturizer
from protgraph.errors import OptionError
from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.neighbors import search as neighbors
from protgraph.structure.residues.atoms import ATOM37, ELEMENTS

__all__ = ["ContextAtoms", "nearest_points"]
ENTRY_POINTS = {"protgraph.featurizers": {"context_atoms": "ContextAtoms"}}

_DENSE = 2**21  # distances held at once
_SIDECHAIN = tuple(set(ATOM37) - {"N", "CA", "C", "CB", "O", "OXT"})  # CB follows from the backbone


class ContextAtoms(StructureFeaturizer):
    """The k context atoms that are nearest to the virtual CB of each residue, nearest first.

    Parameters
    ----------
    k : int
        Atoms of each residue.
    omit : str
        Symbols of elements that are left out: ``"MO,W"``.
    sidechains : int
        How many residues' side chains count too, from CG on: those with the nearest CA, the residue itself among them.
        Only those that are known: inverse folding hides them, but of residues that stay where it is told to show those.

    Writes
    ------
    context_pos : (N, k, 3), point, Å
        CA in the places of atoms that are not there.
    context_element : (N, k) int64, 119 classes
        Atomic number; 0 where no atom is.
    context_mask : (N, k) bool
        Where one is: nowhere for a residue that lacks N, CA, C or O.

    Notes
    -----
    Atoms are those of ``Residues.ligands``: heavy ones, of all molecules but water. Those of an unknown element are
    left out. Residues that were read without ligands have none of these.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods (25 nearest context atoms, by the distance from the
    virtual CB).
    """

    writes: ClassVar[tuple[str, ...]] = (CONTEXT_POS.name, CONTEXT_ELEMENT.name, CONTEXT_MASK.name)
    wants_ligands: ClassVar[bool] = True

    def __init__(self, *, k: int = 25, omit: str = "", sidechains: int = 0) -> None:
        super().__init__()
        if not (isinstance(k, int) and k >= 1):
            raise OptionError(f"context_atoms takes a whole number k of at least 1, got {k!r}")
        if not (isinstance(sidechains, int) and sidechains >= 0):
            raise OptionError(f"context_atoms takes side chains of 0 residues or more, got sidechains={sidechains!r}")
        symbols = [symbol.strip().upper() for symbol in omit.split(",") if symbol.strip()]
        odd = [symbol for symbol in symbols if symbol not in ELEMENTS]
        if odd:
            raise OptionError(f"context_atoms: omit={omit!r}: {odd[0]!r} is no symbol of an element, such as 'MO'")
        self.k, self.sidechains = k, sidechains
        self.omit = tuple(ELEMENTS.index(symbol) + 1 for symbol in symbols)
        self.out[CONTEXT_POS.name] = CONTEXT_POS.as_(CONTEXT_POS.name, shape=(k, 3))
        for spec in (CONTEXT_ELEMENT, CONTEXT_MASK):
            self.out[spec.name] = spec.as_(spec.name, irreps=f"{k}x0e", shape=(k,))

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        n, k, ligands = len(residues), self.k, residues.ligands
        pos = np.repeat(residues.pos[:, None], k, 1)  # (N, k, 3)
        element, mask = np.zeros((n, k), np.int64), np.zeros((n, k), bool)
        atoms, number = pos[:0, 0], element[:0, 0]
        if ligands is not None:
            number = _atomic_number(ligands.atom_element)
            kept = self._counts(number)
            atoms, number = ligands.atom_pos[kept], number[kept]
        rows = np.flatnonzero(residues.backbone_mask.all(1))
        cb = virtual_cb(residues.backbone[rows])
        near = nearest_points(cb, atoms, k)  # (M, ≤ k)
        if self.sidechains:
            of_residue, own, own_number = self._of_sidechains(residues, rows)
            near = _joined(cb, near, np.concatenate([atoms, own]), of_residue, len(atoms), k)
            atoms, number = np.concatenate([atoms, own]), np.concatenate([number, own_number])
        there = near >= 0
        row, place = rows[np.nonzero(there)[0]], np.nonzero(there)[1]
        pos[row, place], element[row, place], mask[row, place] = atoms[near[there]], number[near[there]], True
        return {CONTEXT_POS.name: pos, CONTEXT_ELEMENT.name: element, CONTEXT_MASK.name: mask}

    def _counts(self, number: np.ndarray) -> np.ndarray:
        """``(A,)`` bool, which atomic numbers are wanted."""
        return (number > 0) & ~np.isin(number, self.omit)

    def _of_sidechains(self, residues: Residues, rows: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """For each of M rows, its atoms among all known ones of side chains; positions and numbers of all."""
        number = _atomic_number(residues.atom_element)
        taken = np.flatnonzero(np.isin(residues.atom_name, _SIDECHAIN) & self._counts(number))
        start = np.searchsorted(residues.atom_residue[taken], np.arange(len(residues) + 1))
        others = max(min(self.sidechains, len(rows)) - 1, 0)
        source = neighbors.knn(residues.pos[rows], others)[0].reshape(len(rows), others)
        about = rows[np.concatenate([np.arange(len(rows))[:, None], source], 1)]  # (M, ≤ sidechains)
        atoms = [np.concatenate([np.arange(start[j], start[j + 1]) for j in own]) for own in about]
        return atoms, residues.atom_pos[taken], number[taken]


def _joined(
    cb: np.ndarray, near: np.ndarray, points: np.ndarray, more: list[np.ndarray], first: int, k: int
) -> np.ndarray:
    """The k nearest points of each row among its ``near`` ones and ``more``, which count from ``first``; −1: none."""
    found = np.full((len(cb), k), -1)
    for row, (own, others) in enumerate(zip(near, more, strict=True)):
        candidates = np.concatenate([own, first + others])
        order = np.argsort(((points[candidates] - cb[row]) ** 2).sum(1), kind="stable")[:k]
        found[row, : len(order)] = candidates[order]
    return found


def nearest_points(pos: np.ndarray, points: np.ndarray, k: int) -> np.ndarray:
    """The k nearest points of each position, nearest first.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)``, Å.
    points : ndarray
        ``(A, 3)``, Å.
    k : int
        All A points where there are fewer.

    Returns
    -------
    ndarray
        ``(N, min(k, A))`` int64. Of several at one distance, the lower numbers come first.

    Examples
    --------
    >>> nearest_points(np.zeros((1, 3)), np.array([[2.0, 0, 0], [1, 0, 0], [0, 1, 0]]), 2)
    array([[1, 2]])
    """
    pos, points, k = np.asarray(pos, np.float64), np.asarray(points, np.float64), min(k, len(points))
    if k == 0 or len(pos) == 0:
        return np.zeros((len(pos), k), np.int64)
    width = min(k + 1, len(points))
    if len(pos) * len(points) <= _DENSE:
        return _nearest(pos, points, np.broadcast_to(np.arange(len(points)), (len(pos), len(points))))[0][:, :k]
    candidates = np.sort(cKDTree(points).query(pos, width)[1].reshape(len(pos), width), axis=1)
    near, d2 = _nearest(pos, points, candidates)
    if width > k:  # a point that was left out may be as near as the last one, with a lower number
        for row in np.flatnonzero(d2[:, k - 1] >= d2[:, k] * (1 - 1e-9)):
            near[row] = _nearest(pos[row : row + 1], points, np.arange(len(points))[None])[0][0, :width]
    return near[:, :k]


def _nearest(pos: np.ndarray, points: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Candidates ``(N, C)``, ascending, by distance, and their squared distances ``(N, C)``."""
    d2 = ((points[candidates] - pos[:, None]) ** 2).sum(-1)
    order = np.argsort(d2, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(d2, order, 1)


def _atomic_number(symbols: np.ndarray) -> np.ndarray:
    """``(A,)`` int64; 0 for an unknown symbol."""
    known, which = np.unique(symbols, return_inverse=True)
    place = {symbol: number for number, symbol in enumerate(ELEMENTS, 1)}
    return np.array([place.get(str(symbol).upper(), 0) for symbol in known], np.int64)[which]

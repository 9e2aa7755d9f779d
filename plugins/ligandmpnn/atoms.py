"""Atoms of ligands, ions, nucleotides and known side chains near each residue: ``context_atoms``."""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from annotated_types import Ge
from protgraph_plugins.ligandmpnn.fields import CONTEXT_ELEMENT, CONTEXT_MASK, CONTEXT_POS
from scipy.spatial import cKDTree

from protgraph import Residues, StructureFeaturizer
from protgraph.errors import OptionError
from protgraph.structure.descriptors import virtual_cb
from protgraph.structure.neighbors import knn
from protgraph.structure.residues import ATOM37, ELEMENTS

__all__ = ["ContextAtoms", "nearest_points"]
ENTRY_POINTS = {"protgraph.featurizers": {"context_atoms": "ContextAtoms"}}

_DENSE = 2**21  # distances in memory at a time
_SIDECHAIN = tuple(set(ATOM37) - {"N", "CA", "C", "CB", "O", "OXT"})  # CB follows from the backbone


class _Atoms(NamedTuple):
    """Positions ``(A, 3)``, Å, and atomic numbers ``(A,)``."""

    pos: np.ndarray
    number: np.ndarray


class ContextAtoms(StructureFeaturizer):
    """The k context atoms nearest to the virtual CB of each residue, nearest first.

    Parameters
    ----------
    k : int
        Atoms of each residue.
    omit : str
        Symbols of elements to leave out: ``"MO,W"``.
    sidechains : int
        Number of residues, by nearest CA and including the residue, whose side chain atoms from CG on are context atoms
        too. Inverse folding hides side chains, except for those of fixed residues if requested.

    Writes
    ------
    context_pos : (N, k, 3), point, Å
        Position of CA for missing atoms.
    context_element : (N, k) int64, 119 classes
        Atomic number; 0 for missing atoms.
    context_mask : (N, k) bool
        True for atoms; False everywhere for a residue without N, CA, C or O.

    Notes
    -----
    Atoms are the heavy atoms of ``Residues.ligands``: all molecules except water, without atoms of unknown element.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods (25 nearest context atoms, by the distance from the
    virtual CB).
    """

    writes: ClassVar[tuple[str, ...]] = (CONTEXT_POS.name, CONTEXT_ELEMENT.name, CONTEXT_MASK.name)
    needs_ligands: ClassVar[bool] = True

    def __init__(self, *, k: Annotated[int, Ge(1)] = 25, omit: str = "", sidechains: Annotated[int, Ge(0)] = 0) -> None:
        super().__init__()
        symbols = [symbol.strip().upper() for symbol in omit.split(",") if symbol.strip()]
        unknown = [symbol for symbol in symbols if symbol not in ELEMENTS]
        if unknown:
            raise OptionError(f"unknown element in omit of context_atoms: {unknown[0]!r}. Use symbols, 'MO,W'.")
        self.k, self.sidechains = k, sidechains
        self.omit = tuple(ELEMENTS.index(symbol) + 1 for symbol in symbols)
        self.out[CONTEXT_POS.name] = CONTEXT_POS.as_(CONTEXT_POS.name, shape=(k, 3))
        for spec in (CONTEXT_ELEMENT, CONTEXT_MASK):
            self.out[spec.name] = spec.as_(spec.name, irreps=f"{k}x0e", shape=(k,))

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        rows = np.flatnonzero(residues.backbone_mask.all(1))
        cb = virtual_cb(residues.backbone[rows])
        atoms = self._ligand_atoms(residues)
        near = nearest_points(cb, atoms.pos, self.k)  # (M, ≤ k)
        if self.sidechains:
            sidechains, of_row = self._sidechain_atoms(residues, rows)
            first = len(atoms.pos)  # number of the first atom of side chains
            atoms = _Atoms(
                pos=np.concatenate([atoms.pos, sidechains.pos]),
                number=np.concatenate([atoms.number, sidechains.number]),
            )
            near = _merge(cb, near, atoms.pos, of_row, first, self.k)

        shape = (len(residues), self.k)
        pos = np.repeat(residues.pos[:, None], self.k, 1)  # (N, k, 3)
        element = np.zeros(shape, np.int64)
        mask = np.zeros(shape, bool)
        near_row, column = np.nonzero(near >= 0)
        row = rows[near_row]
        atom = near[near_row, column]
        pos[row, column] = atoms.pos[atom]
        element[row, column] = atoms.number[atom]
        mask[row, column] = True
        return {CONTEXT_POS.name: pos, CONTEXT_ELEMENT.name: element, CONTEXT_MASK.name: mask}

    def _ligand_atoms(self, residues: Residues) -> _Atoms:
        """Return the atoms of ligands that are context atoms."""
        if residues.ligands is None:
            return _Atoms(residues.pos[:0], np.zeros(0, np.int64))
        number = _atomic_number(residues.ligands.atom_element)
        is_included = self._is_included(number)
        return _Atoms(residues.ligands.atom_pos[is_included], number[is_included])

    def _is_included(self, number: np.ndarray) -> np.ndarray:
        """Return a mask ``(A,)`` of the atomic numbers that are context atoms."""
        return (number > 0) & ~np.isin(number, self.omit)

    def _sidechain_atoms(self, residues: Residues, rows: np.ndarray) -> tuple[_Atoms, list[np.ndarray]]:
        """Return all side chain atoms, and those that are context of each of M rows, as numbers."""
        number = _atomic_number(residues.atom_element)
        is_sidechain = np.isin(residues.atom_name, _SIDECHAIN) & self._is_included(number)
        taken = np.flatnonzero(is_sidechain)
        start = np.searchsorted(residues.atom_residue[taken], np.arange(len(residues) + 1))  # of each residue

        # Each row itself, and the nearest others by CA.
        num_others = max(min(self.sidechains, len(rows)) - 1, 0)
        source, _ = knn(residues.pos[rows], num_others)
        others = source.reshape(len(rows), num_others)
        itself = np.arange(len(rows))[:, None]
        near = rows[np.concatenate([itself, others], 1)]  # (M, ≤ sidechains)

        of_row = []
        for nearest in near:
            ranges = [np.arange(start[residue], start[residue + 1]) for residue in nearest]
            of_row.append(np.concatenate(ranges))
        return _Atoms(residues.atom_pos[taken], number[taken]), of_row


def _merge(
    cb: np.ndarray, near: np.ndarray, points: np.ndarray, more: list[np.ndarray], first: int, k: int
) -> np.ndarray:
    """Return the k nearest points of each row out of ``near`` and ``more`` (numbered from ``first``); −1: none."""
    merged = np.full((len(cb), k), -1)
    for row, (nearest, others) in enumerate(zip(near, more, strict=True)):
        candidates = np.concatenate([nearest, first + others])
        squares = ((points[candidates] - cb[row]) ** 2).sum(1)
        order = np.argsort(squares, kind="stable")[:k]
        merged[row, : len(order)] = candidates[order]
    return merged


def nearest_points(pos: np.ndarray, points: np.ndarray, k: int) -> np.ndarray:
    """Find the k nearest points of each position, nearest first.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)``, Å.
    points : ndarray
        ``(A, 3)``, Å.
    k : int
        All A points if there are fewer.

    Returns
    -------
    ndarray
        ``(N, min(k, A))`` int64. Points at equal distance are sorted by index.

    Examples
    --------
    >>> nearest_points(np.zeros((1, 3)), np.array([[2.0, 0, 0], [1, 0, 0], [0, 1, 0]]), 2)
    array([[1, 2]])
    """
    pos = np.asarray(pos, np.float64)
    points = np.asarray(points, np.float64)
    k = min(k, len(points))
    if k == 0 or len(pos) == 0:
        return np.zeros((len(pos), k), np.int64)
    every = np.arange(len(points))[None]
    if len(pos) * len(points) <= _DENSE:
        candidates = np.broadcast_to(every, (len(pos), len(points)))
        near, _ = _nearest(pos, points, candidates)
        return near[:, :k]

    width = min(k + 1, len(points))
    _, found = cKDTree(points).query(pos, width)
    candidates = np.sort(found.reshape(len(pos), width), axis=1)
    near, squares = _nearest(pos, points, candidates)
    if width > k:  # a point that was left out may be as near as the last one, with a lower index
        is_tie = squares[:, k - 1] >= squares[:, k] * (1 - 1e-9)
        for row in np.flatnonzero(is_tie):
            of_row, _ = _nearest(pos[row : row + 1], points, every)
            near[row] = of_row[0, :width]
    return near[:, :k]


def _nearest(pos: np.ndarray, points: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort candidates ``(N, C)``, ascending, by distance; return them and squared distances ``(N, C)``."""
    squares = ((points[candidates] - pos[:, None]) ** 2).sum(-1)
    order = np.argsort(squares, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(squares, order, 1)


def _atomic_number(symbols: np.ndarray) -> np.ndarray:
    """Return atomic numbers ``(A,)`` int64; 0 for unknown symbols."""
    unique, index = np.unique(symbols, return_inverse=True)
    number_of = {symbol: number for number, symbol in enumerate(ELEMENTS, 1)}
    numbers = [number_of.get(str(symbol).upper(), 0) for symbol in unique]
    return np.array(numbers, np.int64)[index]

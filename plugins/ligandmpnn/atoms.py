"""Atoms of ligands, ions, nucleotides and known side chains near each residue: ``context_atoms``."""

from __future__ import annotations

from typing import Annotated, ClassVar

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
        n, k, ligands = len(residues), self.k, residues.ligands
        pos = np.repeat(residues.pos[:, None], k, 1)  # (N, k, 3)
        element, mask = np.zeros((n, k), np.int64), np.zeros((n, k), bool)
        atoms, number = pos[:0, 0], element[:0, 0]
        if ligands is not None:
            number = _atomic_number(ligands.atom_element)
            kept = self._is_included(number)
            atoms, number = ligands.atom_pos[kept], number[kept]
        rows = np.flatnonzero(residues.backbone_mask.all(1))
        cb = virtual_cb(residues.backbone[rows])
        near = nearest_points(cb, atoms, k)  # (M, ≤ k)
        if self.sidechains:
            per_residue, side, side_number = self._sidechain_atoms(residues, rows)
            near = _merge(cb, near, np.concatenate([atoms, side]), per_residue, len(atoms), k)
            atoms, number = np.concatenate([atoms, side]), np.concatenate([number, side_number])
        valid = near >= 0
        row, column = rows[np.nonzero(valid)[0]], np.nonzero(valid)[1]
        pos[row, column], element[row, column], mask[row, column] = atoms[near[valid]], number[near[valid]], True
        return {CONTEXT_POS.name: pos, CONTEXT_ELEMENT.name: element, CONTEXT_MASK.name: mask}

    def _is_included(self, number: np.ndarray) -> np.ndarray:
        """Return a mask ``(A,)`` of the atomic numbers that are context atoms."""
        return (number > 0) & ~np.isin(number, self.omit)

    def _sidechain_atoms(self, residues: Residues, rows: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Return the side chain atoms of each of M rows as indices, and positions and atomic numbers of all."""
        number = _atomic_number(residues.atom_element)
        taken = np.flatnonzero(np.isin(residues.atom_name, _SIDECHAIN) & self._is_included(number))
        start = np.searchsorted(residues.atom_residue[taken], np.arange(len(residues) + 1))
        others = max(min(self.sidechains, len(rows)) - 1, 0)
        source = knn(residues.pos[rows], others)[0].reshape(len(rows), others)
        near = rows[np.concatenate([np.arange(len(rows))[:, None], source], 1)]  # (M, ≤ sidechains)
        atoms = [np.concatenate([np.arange(start[j], start[j + 1]) for j in nearest]) for nearest in near]
        return atoms, residues.atom_pos[taken], number[taken]


def _merge(
    cb: np.ndarray, near: np.ndarray, points: np.ndarray, more: list[np.ndarray], first: int, k: int
) -> np.ndarray:
    """Return the k nearest points of each row out of ``near`` and ``more`` (numbered from ``first``); −1: none."""
    merged = np.full((len(cb), k), -1)
    for row, (nearest, others) in enumerate(zip(near, more, strict=True)):
        candidates = np.concatenate([nearest, first + others])
        order = np.argsort(((points[candidates] - cb[row]) ** 2).sum(1), kind="stable")[:k]
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
    pos, points, k = np.asarray(pos, np.float64), np.asarray(points, np.float64), min(k, len(points))
    if k == 0 or len(pos) == 0:
        return np.zeros((len(pos), k), np.int64)
    width = min(k + 1, len(points))
    if len(pos) * len(points) <= _DENSE:
        return _nearest(pos, points, np.broadcast_to(np.arange(len(points)), (len(pos), len(points))))[0][:, :k]
    candidates = np.sort(cKDTree(points).query(pos, width)[1].reshape(len(pos), width), axis=1)
    near, d2 = _nearest(pos, points, candidates)
    if width > k:  # a point that was left out may be as near as the last one, with a lower index
        for row in np.flatnonzero(d2[:, k - 1] >= d2[:, k] * (1 - 1e-9)):
            near[row] = _nearest(pos[row : row + 1], points, np.arange(len(points))[None])[0][0, :width]
    return near[:, :k]


def _nearest(pos: np.ndarray, points: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort candidates ``(N, C)``, ascending, by distance; return them and squared distances ``(N, C)``."""
    d2 = ((points[candidates] - pos[:, None]) ** 2).sum(-1)
    order = np.argsort(d2, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(d2, order, 1)


def _atomic_number(symbols: np.ndarray) -> np.ndarray:
    """Return atomic numbers ``(A,)`` int64; 0 for unknown symbols."""
    unique, index = np.unique(symbols, return_inverse=True)
    number_of = {symbol: number for number, symbol in enumerate(ELEMENTS, 1)}
    return np.array([number_of.get(str(symbol).upper(), 0) for symbol in unique], np.int64)[index]

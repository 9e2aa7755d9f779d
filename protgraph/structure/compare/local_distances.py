"""Local distance difference test (lDDT): fraction of local distances of a reference that a model preserves.

Not biotite's ``lddt``: it has one naming of equivalent side chain atoms, and atoms that the model lacks must be left
out of both structures (biotite 1.6.0). For CA, both give the same values; a test compares them.

The stereochemistry of the model is not checked: the published program removes side chains with impossible bonds and
clashes before it compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from protgraph.errors import OptionError
from protgraph.structure.vectors import length

__all__ = ["EQUIVALENT_ATOMS", "LDDT_RADIUS", "LDDT_THRESHOLDS", "LocalDistanceScores", "compute_lddt"]

LDDT_RADIUS = 15.0
"""Largest distance in the reference that is compared, Å (Mariani et al. 2013)."""
LDDT_THRESHOLDS = (0.5, 1.0, 2.0, 4.0)
"""Largest differences of a preserved distance, Å; the score is the mean over them."""

EQUIVALENT_ATOMS = {
    "ASP": (("OD1", "OD2"),),
    "GLU": (("OE1", "OE2"),),
    "VAL": (("CG1", "CG2"),),
    "LEU": (("CD1", "CD2"),),
    "ARG": (("NH1", "NH2"),),
    "PHE": (("CD1", "CD2"), ("CE1", "CE2")),
    "TYR": (("CD1", "CD2"), ("CE1", "CE2")),
}
"""Pairs of atoms whose names may be exchanged within a residue (Mariani et al. 2013, section 2.1)."""

_BLOCK = 1000  # atoms whose distances are computed at once: about 20 MB


@dataclass(frozen=True, eq=False)
class LocalDistanceScores:
    """lDDT of a model.

    Parameters
    ----------
    score : float
        Of all distances, 0 to 1; NaN if the reference has none.
    residue : ndarray
        ``(R,)`` float64, over the distances of each residue; NaN for residues without one.
    distances : ndarray
        ``(R,)`` int64, number of distances of each residue.
    """

    score: float
    residue: np.ndarray
    distances: np.ndarray


def compute_lddt(
    model: np.ndarray,
    reference: np.ndarray,
    *,
    residue: np.ndarray | None = None,
    equivalent: np.ndarray | None = None,
    radius: float = LDDT_RADIUS,
    thresholds: Sequence[float] = LDDT_THRESHOLDS,
) -> LocalDistanceScores:
    """Compute lDDT: the fraction of distances below ``radius`` in the reference that differ little in the model.

    Parameters
    ----------
    model : ndarray
        ``(A, 3)`` Å, atoms of the model in the order of the reference; NaN for atoms that it lacks, of
        which no distance is preserved.
    reference : ndarray
        ``(A, 3)`` Å, finite.
    residue : ndarray, optional
        ``(A,)`` int64, residue of each atom, from 0; distances within a residue are not compared. By default, every
        atom is a residue (CA).
    equivalent : ndarray, optional
        ``(A,)`` int64, the atom of the same residue whose name may be exchanged with that of this one
        (:data:`EQUIVALENT_ATOMS`), or the atom itself. For each residue, the naming that preserves more distances to
        atoms of unique names is used.
    radius : float
        Å, inclusive.
    thresholds : sequence of float
        Å, inclusive; the mean over them.

    Returns
    -------
    LocalDistanceScores

    Raises
    ------
    OptionError
        The shapes differ, or the reference is not finite.

    References
    ----------
    Mariani et al. 2013, doi:10.1093/bioinformatics/btt473.

    Examples
    --------
    >>> line = np.arange(4.0)[:, None] * [3.8, 0, 0]
    >>> compute_lddt(line, line).score
    1.0
    >>> compute_lddt(line * [1.2, 1, 1], line).residue  # 0.76, 1.52 and 2.28 Å longer
    array([0.5       , 0.66666667, 0.66666667, 0.5       ])
    """
    model, reference = np.asarray(model, np.float64), np.asarray(reference, np.float64)
    if model.shape != reference.shape or model.ndim != 2 or model.shape[1:] != (3,):
        raise OptionError(f"lDDT: shapes {model.shape} and {reference.shape}. Allowed: two equal shapes (A, 3).")
    if not np.isfinite(reference).all():
        raise OptionError("lDDT: coordinates of the reference are not finite. Leave these atoms out of both arrays.")
    residue = np.arange(len(reference)) if residue is None else np.asarray(residue)
    if equivalent is not None:
        model = _best_naming(model, reference, residue, equivalent, radius, thresholds)
    preserved, count = np.zeros(len(reference)), np.zeros(len(reference), np.int64)
    every = np.arange(len(reference))
    for i, j, distance in _local_distances(reference, residue, every, every, radius):
        difference = np.abs(length(model[i] - model[j]) - distance)
        preserved += np.bincount(i, _fraction(difference, thresholds), len(reference))
        count += np.bincount(i, minlength=len(reference))
    rows = int(residue.max()) + 1 if len(residue) else 0
    kept, total = np.bincount(residue, preserved, rows), np.bincount(residue, count, rows)
    with np.errstate(invalid="ignore"):
        score = np.divide(kept.sum(), total.sum()) if total.sum() else np.nan
        return LocalDistanceScores(float(score), kept / total, total.astype(np.int64))


def _fraction(difference: np.ndarray, thresholds: Sequence[float]) -> np.ndarray:
    """Return the fraction of thresholds that each difference does not exceed; 0 for NaN."""
    return np.mean([difference <= threshold for threshold in thresholds], axis=0)


def _local_distances(
    reference: np.ndarray, residue: np.ndarray, rows: np.ndarray, partners: np.ndarray, radius: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield pairs of ``rows`` and ``partners`` in two residues, and their distances up to the radius, in blocks."""
    if not len(rows) or not len(partners):
        return
    tree = cKDTree(reference[partners])
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        near = cKDTree(reference[block]).sparse_distance_matrix(tree, radius, output_type="ndarray")
        i, j = block[near["i"]], partners[near["j"]]
        apart = residue[i] != residue[j]
        yield i[apart], j[apart], near["v"][apart]


def _best_naming(
    model: np.ndarray,
    reference: np.ndarray,
    residue: np.ndarray,
    equivalent: np.ndarray,
    radius: float,
    thresholds: Sequence[float],
) -> np.ndarray:
    """Return the model with equivalent atoms exchanged in the residues where more distances are preserved so."""
    is_unique = equivalent == np.arange(len(equivalent))
    exchanged = model[equivalent]
    gain = np.zeros(int(residue.max()) + 1 if len(residue) else 0)
    for i, j, distance in _local_distances(
        reference, residue, np.flatnonzero(~is_unique), np.flatnonzero(is_unique), radius
    ):
        new, old = (np.abs(length(x[i] - model[j]) - distance) for x in (exchanged, model))
        gain += np.bincount(residue[i], _fraction(new, thresholds) - _fraction(old, thresholds), len(gain))
    better = gain[residue] > 1e-9  # above the rounding of the sums
    return np.where(better[:, None], exchanged, model)

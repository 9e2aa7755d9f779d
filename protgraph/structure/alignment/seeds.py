"""Initial superpositions of two CA traces, from which their alignment is refined."""

from __future__ import annotations

import numpy as np

from protgraph.structure.alignment.dynamic_programming import align_matrices
from protgraph.structure.alignment.fragment_search import fit_from_moments, fit_transforms, squared_distances

__all__ = ["initial_transforms", "secondary_structure_codes"]

_HELIX = ((5.45, 5.18, 6.37), 2.1)  # Å: CA distances of residues 2, 3, 4 apart, and the tolerance
_STRAND = ((6.1, 10.4, 13.0), 1.42)
_COIL, _HELIX_CODE, _STRAND_CODE, _TURN_CODE = range(4)
_WINDOWS = (12, 24)  # residues of fragments that are compared
_FRAGMENT_PAIRS = 16  # superpositions of fragments of each length
_RANKED = 40  # residues of the shorter chain, about, by which superpositions are ranked
_DIFFERENT = 2.9  # largest trace of the rotation between two of them: 18 degrees


def secondary_structure_codes(pos: np.ndarray) -> np.ndarray:
    """Return 0 coil, 1 helix, 2 strand, 3 turn of each residue, from distances of the CA of residues i − 2 to i + 2.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` CA atoms, Å.

    Returns
    -------
    ndarray
        ``(N,)`` int64.

    References
    ----------
    Zhang & Skolnick 2005, Nucleic Acids Res. 33, 2302, eq. 1; turns as in their program: CA 4 apart within 8 Å.
    """
    codes = np.zeros(len(pos), np.int64)
    if len(pos) < 5:
        return codes
    apart = {k: np.linalg.norm(pos[k:] - pos[:-k], axis=1) for k in (2, 3, 4)}
    inner = len(pos) - 4
    parts = [apart[k][start : start + inner] for k in (2, 3, 4) for start in range(5 - k)]
    which = [k - 2 for k in (2, 3, 4) for _ in range(5 - k)]
    found = np.where(apart[4] < 8, _TURN_CODE, _COIL)
    for code, (distances, tolerance) in ((_STRAND_CODE, _STRAND), (_HELIX_CODE, _HELIX)):
        fits = [np.abs(part - distances[k]) < tolerance for part, k in zip(parts, which, strict=True)]
        found[np.logical_and.reduce(fits)] = code
    codes[2:-2] = found
    return codes


def initial_transforms(x: np.ndarray, y: np.ndarray, d0: float, *, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the most promising superpositions of two traces, best first.

    Candidates are those of TM-align: gapless threading, an alignment of the secondary structures, and fragments of
    similar shape. They are ranked by ``Σ_i max_j 1 / (1 + d_ij² / d0²)``.

    Parameters
    ----------
    x, y : ndarray
        ``(M, 3)`` and ``(N, 3)`` CA atoms, Å, M ≤ N.
    d0 : float
        Distance scale, Å.
    number : int
        Superpositions to return.

    Returns
    -------
    tuple of ndarray
        Rotations ``(K, 3, 3)`` and translations ``(K, 3)``.
    """
    found = [_threading(x, y, d0), _by_secondary_structure(x, y)]
    found += [_fragment_pairs(x, y, size) for size in _WINDOWS if len(x) >= 2 * size]
    rotation, translation = (np.concatenate(parts) for parts in zip(*found, strict=True))
    value = _nearest_sum(x, y, rotation, translation, d0)
    chosen: list[int] = []
    for k in np.argsort(-value, kind="stable").tolist():
        if all(float((rotation[k] * rotation[c]).sum()) < _DIFFERENT for c in chosen):
            chosen.append(k)
        if len(chosen) == number:
            break
    return rotation[chosen], translation[chosen]


def _nearest_sum(x: np.ndarray, y: np.ndarray, rotation: np.ndarray, translation: np.ndarray, d0: float) -> np.ndarray:
    """Compute ``Σ_i max_j 1 / (1 + d_ij² / d0²)`` of each superposition, over a part of the residues i."""
    rows = x[:: max(1, len(x) // _RANKED)]
    nearest = squared_distances(rows, y, rotation, translation).min(2)  # (K, R)
    return (1 / (1 + nearest / np.float32(d0 * d0))).sum(1)


def _threading(x: np.ndarray, y: np.ndarray, d0: float) -> tuple[np.ndarray, np.ndarray]:
    """Superpose all residues of every gapless alignment; return the four of the largest score, refined once."""
    m, n = len(x), len(y)
    least = min(m, max(5, m // 2))
    shifts = np.arange(least - m, n - least + 1)
    place = shifts[:, None] + np.arange(m)  # (S, M) residue of y of each residue of x
    known = ((place >= 0) & (place < n)).astype(np.float64)
    partner = y[np.clip(place, 0, n - 1)]  # (S, M, 3)
    size = known.sum(1, keepdims=True)
    mean_x = known @ x / size
    weighted = partner * known[:, :, None]
    mean_y = weighted.sum(1) / size
    product = x.T @ weighted / size[:, :, None]  # (S, 3, 3)
    rotation, translation = fit_from_moments(mean_x, mean_y, product)
    moved = x @ rotation.swapaxes(1, 2) + translation[:, None, :]
    scores = (known / (1 + ((moved - partner) ** 2).sum(-1) / d0**2)).sum(1)
    best = np.argsort(-scores, kind="stable")[:4]
    return rotation[best], translation[best]


def _by_secondary_structure(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Superpose the residues of an alignment of secondary structures: 1 for equal ones, 1 for a gap."""
    same = secondary_structure_codes(x)[:, None] == secondary_structure_codes(y)
    (pairs,) = align_matrices(same[None].astype(np.float32), 1.0)
    if len(pairs) < 3:
        return np.eye(3)[None], (y.mean(0) - x.mean(0))[None]
    halves = np.zeros((3, len(pairs)))
    halves[0], halves[1, : (len(pairs) + 1) // 2], halves[2, len(pairs) // 2 :] = 1, 1, 1
    return fit_transforms(x[pairs[:, 0]], y[pairs[:, 1]], halves)


def _fragment_pairs(x: np.ndarray, y: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Superpose the pairs of fragments with the most similar distances between their residues."""
    step = size // 3
    starts = np.arange(0, len(x) - size + 1, step)
    first, second = _inner_distances(x, size)[starts], _inner_distances(y, size)
    change = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T  # (S, N)
    a, b = _minima(change, _FRAGMENT_PAIRS)
    offset = np.arange(size)
    u, v = x[starts[a][:, None] + offset], y[b[:, None] + offset]  # (K, size, 3)
    return fit_from_moments(u.mean(1), v.mean(1), u.swapaxes(1, 2) @ v / size)


def _inner_distances(pos: np.ndarray, size: int) -> np.ndarray:
    """Return distances within each window of residues, ``(N − size + 1, D)``, at every third residue of the window."""
    inside = np.arange(0, size, 3)
    i, j = np.triu_indices(len(inside), 1)
    start = np.arange(len(pos) - size + 1)[:, None]
    return np.linalg.norm(pos[start + inside[i]] - pos[start + inside[j]], axis=-1)


def _minima(values: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the smallest values that are not larger than their neighbors in the row."""
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.inf)
    local = (values <= padded[:, :-2]) & (values <= padded[:, 2:])
    rows, columns = np.nonzero(local)
    order = np.argsort(values[rows, columns], kind="stable")[:number]
    return rows[order], columns[order]

"""Pockets: ranked clusters of alpha spheres, weighted by the predicted probabilities of the residues around them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from protgraph_plugins.pockets.cavity import touched_volume, volume_around
from protgraph_plugins.pockets.spheres import AlphaSpheres, alpha_spheres
from scipy.spatial import cKDTree

from protgraph.errors import MissingCoordinatesError, SelectionError
from protgraph.structure import ALPHABET, Residues
from protgraph.wording import count_noun

__all__ = ["GEOMETRY", "SMALLEST_PROTEIN", "Pocket", "pocket_features", "pockets_of", "probabilities_of"]

SMALLEST_PROTEIN = 30
_FEWEST_ATOMS = 5.5  # heavy atoms per residue; a backbone with CB has 5, proteins about 7.8
"""Residues; shorter chains are peptides, around which nothing is enclosed."""

GEOMETRY = "none"
"""Name of the model for pockets from geometry alone."""

_RANGE = 8.0  # Å, of the volume around a sphere, whose maxima are pockets
_STEP = 8.0  # Å to the next sphere uphill
_TRIM = 0.5  # spheres of a pocket have at least this part of the volume around its best one
_SHARPNESS = 3  # power of the weight of a sphere in the center of its pocket
_LEAST_WEIGHT = 1e-3  # of a sphere there, also where no residue has a probability
_LEAST_VOLUME = 15.0  # Å³, about a water molecule's

# Kyte & Doolittle 1982, doi:10.1016/0022-2836(82)90515-0, by type.
_SCALE = (
    "A1.8 R-4.5 N-3.5 D-3.5 C2.5 Q-3.5 E-3.5 G-0.4 H-3.2 I4.5 L3.8 K-3.9 M1.9 F2.8 P-1.6 S-0.8 T-0.7 W-0.9 Y-1.3 V4.2"
)
_HYDROPATHY = {word[0]: float(word[1:]) for word in _SCALE.split()}
_CHARGE = {"D": -1, "E": -1, "K": 1, "R": 1}
_AROMATIC, _POLAR = "FWYH", "STNQDEKRHYCW"


@dataclass(frozen=True, eq=False)
class Pocket:
    """A place in or on a protein where a small molecule may bind.

    Attributes
    ----------
    rank : int
        From 1.
    score : float
        Å³: the largest volume around one of its spheres, weighted by the probabilities of the residues there.
    probability : float
        Calibrated probability that a ligand binds there; NaN without a calibration of the model.
    center : ndarray
        ``(3,)`` Å.
    sphere_center, sphere_radius : ndarray
        ``(T, 3)`` and ``(T,)`` Å, the alpha spheres.
    volume : float
        Å³, of the tetrahedra between atom centers; see :class:`~protgraph_plugins.pockets.spheres.AlphaSpheres`.
    depth, enclosure : float
        Largest distance to the surface (Å), and mean enclosure (0 to 1).
    residues : ndarray
        Rows of the residues that line it, ascending.
    atoms : ndarray
        Rows of their atoms at its spheres, ascending.
    chains : tuple of str
        Names of the chains of these residues; several for a pocket between chains.
    letters : str
        One-letter codes of the residues, in their order.
    hydrophobicity : float
        Mean hydropathy of Kyte & Doolittle, −4.5 to 4.5.
    charge : int
        Sum of charges at pH 7: D, E −1; K, R +1.
    aromatic, polar : float
        Fractions of F, W, Y, H, and of residues with polar side chains.
    ligands : tuple of str
        Molecules of the file in it, e.g. "ATP A:401".
    ligand_overlap : float
        Largest fraction of the heavy atoms of one of these within its spheres; 0 without one.
    """

    rank: int
    score: float
    probability: float
    center: np.ndarray
    sphere_center: np.ndarray
    sphere_radius: np.ndarray
    volume: float
    depth: float
    enclosure: float
    residues: np.ndarray
    atoms: np.ndarray
    chains: tuple[str, ...]
    letters: str
    hydrophobicity: float
    charge: int
    aromatic: float
    polar: float
    ligands: tuple[str, ...] = ()
    ligand_overlap: float = 0.0

    def __repr__(self) -> str:
        return f"Pocket({self.rank}, probability {self.probability:.2f}, {self.volume:.0f} Å³, {self.letters})"


def pockets_of(residues: Residues, probability: np.ndarray | None = None, *, model: str = GEOMETRY) -> list[Pocket]:
    """Compute the pockets of a protein, ranked.

    Each alpha sphere has the volume around it, weighted by the mean probability of the residues that each of the
    spheres touches; without probabilities, by the enclosure. From each sphere a path leads uphill, always to the
    largest value within 8 Å. Spheres whose paths end in the same one are a pocket, if they have at least half of its
    value. Its center is the mean of their centers, weighted by the cube of the mean probability of the residues that
    each touches (or of its enclosure): in a large cavity it lies beside the residues that bind.

    Parameters
    ----------
    residues : Residues
        All chains count. Ligands, if read, are only compared with the pockets.
    probability : ndarray, optional
        ``(N,)`` probability of each residue to bind a ligand. Default: geometry alone.
    model : str
        Name of the model, whose calibration gives the probabilities of pockets.

    Raises
    ------
    SelectionError
        The protein has fewer than 30 residues.
    MissingCoordinatesError
        It has no side chains, e.g. a CA trace.
    """
    if len(residues) < SMALLEST_PROTEIN:
        raise SelectionError(
            f"pockets of {residues.name}: {count_noun(len(residues), 'residue')}. Allowed: {SMALLEST_PROTEIN} or more, "
            "since a peptide encloses nothing. Select its partner too, or all chains."
        )
    atoms = len(residues.atom_pos) / len(residues)
    if atoms < _FEWEST_ATOMS:
        raise MissingCoordinatesError(
            f"pockets of {residues.name}: {atoms:.1f} heavy atoms per residue. Allowed: {_FEWEST_ATOMS} or more, since "
            "the cavities of a CA trace or backbone are filled by side chains. Add these with another program."
        )
    spheres = alpha_spheres(residues.atom_pos)
    if len(spheres.radius) == 0:
        return []
    touched = touched_volume(residues, spheres)  # (N, T)
    weight = spheres.enclosure
    if probability is not None:
        weight = (touched.T @ probability) / np.maximum(touched.sum(0), 1e-9)
    (score,) = volume_around(spheres._replace(volume=spheres.volume * weight), [_RANGE])
    pockets = []
    for members in _clusters(spheres, score):
        if spheres.volume[members].sum() >= _LEAST_VOLUME and score[members].max() > 0:
            pockets.append(_pocket(residues, spheres, weight, score, members))
    # of equal scores, e.g. of two equal chains, the one at the first residue is first
    pockets.sort(key=lambda pocket: (-round(pocket.score, 3), pocket.residues.tolist()))
    chances = probabilities_of(model, pocket_features(pockets, probability))
    pockets = [replace(pocket, probability=float(p)) for pocket, p in zip(pockets, chances, strict=True)]
    if not np.isnan(chances).any():
        pockets.sort(key=lambda pocket: -round(pocket.probability, 6))  # of equal ones, the order stays
    return [replace(pocket, rank=rank) for rank, pocket in enumerate(pockets, 1)]


def pocket_features(pockets: list[Pocket], probability: np.ndarray | None) -> np.ndarray:
    """Return the numbers from which the probability of each pocket is computed, ``(P, 4)``.

    They are log(1 + score), log(sum of squared probabilities of the lining residues + 0.01) as in P2Rank, log(rank of
    the score), and log(1 + volume). Without probabilities, the second one is the mean enclosure.
    """
    by_score = sorted(range(len(pockets)), key=lambda number: -round(pockets[number].score, 3))
    rank_of_score = {number: rank for rank, number in enumerate(by_score, 1)}
    rows = []
    for number, pocket in enumerate(pockets):
        evidence = pocket.enclosure
        if probability is not None:
            evidence = np.log((probability[pocket.residues] ** 2).sum() + 0.01)
        rows.append([np.log1p(pocket.score), evidence, np.log(rank_of_score[number]), np.log1p(pocket.volume)])
    return np.array(rows).reshape(-1, 4)


def probabilities_of(model: str, features: np.ndarray) -> np.ndarray:
    """Return the probability that a ligand binds for each row of :func:`pocket_features`; NaN without a calibration."""
    fitted = _calibrations().get(model)
    if fitted is None:
        return np.full(len(features), np.nan)
    logit = features @ np.array(fitted["coefficients"]) + fitted["intercept"]
    return 1 / (1 + np.exp(-logit))


@cache
def _calibrations() -> Mapping[str, Any]:
    """Return the fitted logistic functions by model; ``protgraph bench pockets --fit`` writes the file."""
    text = resources.files("protgraph_plugins.pockets").joinpath("calibration.json").read_text(encoding="utf-8")
    return json.loads(text)


def _clusters(spheres: AlphaSpheres, score: np.ndarray) -> list[np.ndarray]:
    """Return the rows of the spheres of each pocket."""
    i, j = cKDTree(spheres.center).query_pairs(_STEP, output_type="ndarray").T
    own = np.arange(len(score))
    start, end = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    order = np.lexsort((score[end], start))
    start, end = start[order], end[order]
    is_best = np.append(np.diff(start) != 0, True)
    uphill = end[is_best]  # (T,) the sphere of the largest score within a step, for each
    while not np.array_equal(uphill, uphill[uphill]):
        uphill = uphill[uphill]
    is_member = score >= _TRIM * score[uphill]
    return [np.flatnonzero(is_member & (uphill == top)) for top in np.unique(uphill)]


def _pocket(
    residues: Residues, spheres: AlphaSpheres, weight: np.ndarray, score: np.ndarray, members: np.ndarray
) -> Pocket:
    """Return the pocket of some spheres, without rank and probability.

    ``weight``, ``score``: ``(T,)`` of all spheres, and the volume around them with that weight.
    """
    center, radius, volume = spheres.center[members], spheres.radius[members], spheres.volume[members]
    share = np.maximum(weight[members], _LEAST_WEIGHT) ** _SHARPNESS
    # atoms at the spheres
    near = cKDTree(center).sparse_distance_matrix(
        cKDTree(residues.atom_pos.astype(np.float64)), radius.max() + 1.0, output_type="coo_matrix"
    )
    atoms = np.unique(near.col[near.data <= radius[near.row] + 1.0]).astype(np.int64)
    rows = np.unique(residues.atom_residue[atoms])
    letters = "".join(ALPHABET[kind] for kind in residues.aatype[rows])
    ligands, overlap = _ligands_in(residues, center, radius)
    return Pocket(
        rank=0,
        score=float(score[members].max()),
        probability=np.nan,
        center=(center * share[:, None]).sum(0) / share.sum(),
        sphere_center=center,
        sphere_radius=radius,
        volume=float(volume.sum()),
        depth=float(spheres.depth[members].max()),
        enclosure=float((spheres.enclosure[members] * volume).sum() / volume.sum()),
        residues=rows,
        atoms=atoms,
        chains=tuple(dict.fromkeys(residues.chain[rows].tolist())),
        letters=letters,
        hydrophobicity=float(np.mean([_HYDROPATHY.get(letter, 0.0) for letter in letters])),
        charge=sum(_CHARGE.get(letter, 0) for letter in letters),
        aromatic=float(np.mean([letter in _AROMATIC for letter in letters])),
        polar=float(np.mean([letter in _POLAR for letter in letters])),
        ligands=ligands,
        ligand_overlap=overlap,
    )


def _ligands_in(residues: Residues, center: np.ndarray, radius: np.ndarray) -> tuple[tuple[str, ...], float]:
    """Return the names of molecules of the file with an atom in one of the spheres, and the largest fraction."""
    ligands = residues.ligands
    if ligands is None or len(ligands) == 0:
        return (), 0.0
    distance, _ = cKDTree(center).query(ligands.atom_pos.astype(np.float64))
    inside = np.bincount(ligands.atom_molecule, distance <= radius.mean(), len(ligands))
    fraction = inside / np.bincount(ligands.atom_molecule, minlength=len(ligands))
    names = [f"{name} {place}" for name, place in zip(ligands.res_name.tolist(), ligands.ids, strict=True)]
    found = tuple(name for name, part in zip(names, fraction, strict=True) if part > 0)
    return found, float(fraction.max())

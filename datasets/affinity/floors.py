"""Floors of ``affinity``: linear fits on the size of the ligand, its weight, and the area that it buries."""

from __future__ import annotations

import numpy as np
from biotite.structure import AtomArray, info, sasa
from protgraph_datasets.affinity.dataset import Affinity

from protgraph.structure import Residues, clean, load_structure

__all__ = ["evaluate_floors", "ligand_sizes"]

DESCRIPTORS = ("ligand heavy atoms", "ligand weight (heavy atoms)", "buried area")


def evaluate_floors(dataset: Affinity, *, split: str = "test") -> dict[str, tuple[float, float]]:
    """Fit pK on each descriptor of the training split by least squares, and score the fit on another split.

    Returns
    -------
    dict of str to (float, float)
        Descriptor → root-mean-square error and Pearson correlation; the mean of train has a correlation of NaN.
    """
    pk, sizes = _read(dataset, "train")
    truth, sizes_of_split = _read(dataset, split)
    mean_error = np.sqrt(np.mean((truth - pk.mean()) ** 2))
    floors = {"mean of train": (float(mean_error), float("nan"))}
    for column, name in enumerate(DESCRIPTORS):
        slope, intercept = np.polyfit(sizes[:, column], pk, 1)
        predicted = slope * sizes_of_split[:, column] + intercept
        error = np.sqrt(np.mean((truth - predicted) ** 2))
        floors[name] = float(error), float(np.corrcoef(truth, predicted)[0, 1])
    return floors


def _read(dataset: Affinity, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pK ``(P,)`` and descriptors ``(P, 3)`` of the complexes of a split."""
    rows = dataset.label_rows("pK")
    assert rows is not None  # contract: the dataset has labels of proteins
    labels, descriptors = [], []
    for example in dataset.examples("pK", split):
        labels.append(float(rows.values[rows.rows[example.id]][0].item()))
        descriptors.append(ligand_sizes(clean(load_structure(example.path), ligands=True)))
    return np.array(labels), np.array(descriptors)


def ligand_sizes(residues: Residues) -> tuple[float, float, float]:
    """Return the heavy atoms of the ligand, their mass in Da, and the area of the ligand that the protein buries, Å².

    The area is that of the ligand alone minus that in the complex, with a probe of 1.4 Å and radii of single atoms.
    """
    ligands = residues.ligands
    assert ligands is not None  # contract: read with ligands
    mass = sum(info.mass(element) for element in ligands.atom_element.tolist())
    elements = np.concatenate([ligands.atom_element, residues.atom_element])
    positions = np.concatenate([ligands.atom_pos, residues.atom_pos])
    count = len(ligands.atom_element)
    alone = _areas(elements[:count], positions[:count], count)
    bound = _areas(elements, positions, count)
    return float(count), float(mass), float(alone - bound)


def _areas(elements: np.ndarray, positions: np.ndarray, count: int) -> float:
    """Return the accessible area of the first atoms, Å², in the presence of all."""
    atoms = AtomArray(len(elements))
    atoms.coord = positions
    atoms.element = elements
    first = np.arange(len(elements)) < count
    return float(np.nansum(sasa(atoms, atom_filter=first, vdw_radii="Single", point_number=100)))

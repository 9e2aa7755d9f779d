"""Print the tables of ``docs/model_quality.md``: scores of whole models, and of perturbed native structures.

Run ``python tools/model_quality_scores.py SOURCE``, with the folder from which the dataset ``model_quality`` is
prepared. No option is chosen here; the trained model ``model_quality`` is used as it is, without its calibration.
"""

from __future__ import annotations

import csv
import gzip
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import pearsonr, spearmanr

import protgraph as pg
from protgraph.featurize.steps import ProteinRequest
from protgraph.file_io import unpack_tar
from protgraph.structure import Residues
from protgraph.structure.compare import compute_lddt

__all__ = ["main", "moved", "perturbed", "score_row", "smooth_field"]

MODEL = "model_quality"
NATIVES = 12
_WIDTH = 20.0  # residues over which a smooth displacement agrees


def mean_predictions(proteins: dict[str, Residues]) -> np.ndarray:
    """Return the mean prediction over the residues of each protein, ``(P,)``, uncalibrated."""
    requests = [ProteinRequest(name, read=lambda r=r: r) for name, r in proteins.items()]
    predictions = pg.predict(MODEL, requests, device="cpu", calibrated=False)
    values = defaultdict(list)
    for name, value in zip(predictions.column("file"), predictions.column(predictions.columns[-1]), strict=True):
        values[name].append(value)
    return np.array([np.mean(values[name]) for name in proteins])


def score_row(predicted: np.ndarray, true: np.ndarray, target: Sequence[str]) -> list[float]:
    """Return Pearson and Spearman, their means within targets, and RMSE of whole models.

    Parameters
    ----------
    predicted, true : ndarray
        ``(M,)`` of all models.
    target : sequence of str
        Protein of each model. Proteins with constant values are left out of the means.
    """
    groups = [np.flatnonzero(np.array(target) == name) for name in dict.fromkeys(target)]
    groups = [rows for rows in groups if np.ptp(predicted[rows]) > 0 and np.ptp(true[rows]) > 0]
    within = [np.mean([f(predicted[rows], true[rows])[0] for rows in groups]) for f in (pearsonr, spearmanr)]
    overall = [f(predicted, true)[0] for f in (pearsonr, spearmanr)]
    return [*map(float, (*overall, *within)), float(np.sqrt(np.mean((predicted - true) ** 2)))]


def moved(residues: Residues, step: np.ndarray) -> Residues:
    """Return residues with all atoms moved by ``step``, ``(N, 3)`` Å."""
    step = step.astype(np.float32)
    atoms = residues.atom_pos + step[residues.atom_residue]
    return replace(residues, pos=residues.pos + step, backbone=residues.backbone + step[:, None], atom_pos=atoms)


def smooth_field(size: int, distance: float, rng: np.random.Generator) -> np.ndarray:
    """Return displacements ``(N, 3)`` of root mean square ``distance`` Å that agree over about 20 residues."""
    offset = np.arange(size)[:, None] - np.arange(size)
    field = np.exp(-0.5 * (offset / (_WIDTH / 2)) ** 2) @ rng.normal(size=(size, 3))
    return field * distance / np.sqrt(np.mean(np.sum(field**2, axis=1)))


def perturbed(native: Residues, rng: np.random.Generator) -> Iterator[tuple[str, Residues]]:
    """Yield the name of each perturbation and the perturbed structure."""
    size = len(native)
    yield "native", native
    for distance in (2, 4, 8):
        yield f"smooth displacement of {distance} Å", moved(native, smooth_field(size, distance, rng))
    for noise in (0.5, 1, 2, 4):
        yield f"noise of {noise} Å on each CA", moved(native, rng.normal(0, noise, (size, 3)))
    yield "positions shuffled", moved(native, native.pos[rng.permutation(size)] - native.pos)
    order = rng.permutation(size)
    yield "residue types shuffled", replace(native, aatype=native.aatype[order], res_name=native.res_name[order])


def print_models(rows: list[dict[str, str]], folder: Path) -> None:
    """Print the table of whole models, and the RMSE of the mean of the training models."""
    test = [row for row in rows if row["split"] == "test"]
    files = {row["file"]: pg.clean(pg.load_structure(folder / "models" / row["file"])) for row in test}
    true, target = np.array([float(row["lddt_recomputed"]) for row in test]), [row["target"] for row in test]
    predicted, elbo = mean_predictions(files), np.array([float(row["elbo"]) for row in test])
    mean = np.mean([float(row["lddt_recomputed"]) for row in rows if row["split"] == "train"])
    print("score of the whole model | Pearson | Spearman | Pearson within | Spearman within | RMSE")
    scores = score_row(predicted, true, target), score_row(elbo, true, target)[:-1]  # ELBO has another unit
    for name, values in zip(("model_quality, mean, uncalibrated", "ELBO of EigenFold"), scores, strict=True):
        print(name, *(f"{value:.3f}" for value in values), sep=" | ")
    print(f"mean of the training models, RMSE | {np.sqrt(np.mean((true - mean) ** 2)):.3f}")


def print_perturbed(rows: list[dict[str, str]], folder: Path) -> None:
    """Print the table of perturbed native structures: predicted and true lDDT, means over the proteins."""
    names = sorted({row["native"] for row in rows if row["split"] == "test"})[:NATIVES]
    proteins, lddt = {}, defaultdict(list)
    for number, name in enumerate(names):
        native = pg.clean(pg.load_structure(folder / "natives" / name))
        for kind, residues in perturbed(native, np.random.default_rng(number)):
            proteins[f"{kind}#{name}"] = residues
            lddt[kind].append(compute_lddt(residues.pos, native.pos).score)
    predicted = dict(zip(proteins, mean_predictions(proteins), strict=True))
    print(f"\nstructure, {len(names)} proteins | predicted, uncalibrated | lDDT")
    for kind, values in lddt.items():
        print(kind, f"{np.mean([predicted[f'{kind}#{n}'] for n in names]):.2f}", f"{np.mean(values):.2f}", sep=" | ")


def main(arguments: list[str]) -> int:
    """Print both tables for the source folder, and return the exit code."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    source = Path(arguments[0])
    with gzip.open(source / "models.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("models.tar.xz", "natives.tar.xz"):
            unpack_tar(source / name, folder)
        print_models(rows, Path(folder))
        print_perturbed(rows, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

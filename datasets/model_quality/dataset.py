"""Dataset ``model_quality``: CA models of EigenFold with their lDDT and global scores."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_tsv

from protgraph.errors import DatasetError
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.compare import compute_lddt

__all__ = ["ModelQuality", "number_as_in_models", "residue_lddt"]
ENTRY_POINTS = {"protgraph.datasets": {"model_quality": "ModelQuality"}}

FOLDER = Path(__file__).resolve().parent
#: Folder of the models of a set, and, with ".csv", their scores.
MODELS = "pretrained_model/{}.csv.ep7.num5.step0.5.alpha1.0.beta3.0.elbo0.2"
SAMPLES = 5
GLOBAL = {"tm_score": "tm", "gdt_ts": "gdt_ts", "rmsd": "rmsd"}
#: Of an lDDT that is recomputed here. The source places residues beside gaps of 9 targets elsewhere.
TOLERANCE = 0.1


class ModelQuality(PreparedDataset):
    """CA models of a protein, each labeled by comparison with its native structure, which is not in the input.

    The source is the repository EigenFold: native structures in ``structures``, models and their scores in
    ``pretrained_model``. Groups, splits, and the places of the residues of native structures in the SEQRES are tables
    of the package.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the models with their lDDT, computed here, and the other global scores of the source."""
        scores: dict[tuple[str, str, str], dict[str, str]] = {}
        for row in read_tsv(FOLDER / "targets.tsv"):
            set_, target = row["set"], row["target"]
            if (set_, target, "0") not in scores:
                scores |= _scores(source, set_)
            native = clean(load_structure(source.path(f"structures/{target[:2]}/{target}.pdb")))
            native = number_as_in_models(native, target)
            for sample in range(SAMPLES):
                path = source.path(f"{MODELS.format(set_)}/{target}.pdb.{sample}.pdb")
                model = clean(load_structure(path))
                values, lddt = residue_lddt(model, native)
                published = scores[set_, target, str(sample)]
                if abs(lddt - float(published["lddt"])) > TOLERANCE:
                    raise DatasetError(f"{path}: lDDT {lddt:.4f}, the source has {published['lddt']}. Get it again.")
                labels = {"global_lddt": round(lddt, 4)}
                labels |= {task: float(published[column]) for task, column in GLOBAL.items()}
                yield SourceProtein(
                    f"{set_}_{target}.{sample}",
                    path,
                    row["split"],
                    None,
                    row["group"],
                    (model.chain, model.res_id, model.ins_code),
                    {"model_quality": values},
                    labels,
                )


def _scores(source: SourceFolder, set_: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """Return the published scores of the models of a set, by set, target and number of the sample."""
    with source.path(f"{MODELS.format(set_)}.csv").open(encoding="utf-8", newline="") as file:
        return {(set_, Path(row["path"]).stem, row["copy"]): row for row in csv.DictReader(file)}


def number_as_in_models(native: Residues, target: str) -> Residues:
    """Return a native structure with its residues numbered by their places in the SEQRES, as models are."""
    res_id, codes = native.res_id.copy(), native.ins_code.copy()
    for row in read_tsv(FOLDER / "numbering.tsv"):
        if row["target"] == target:
            first, size = int(row["source_first_res_id"]), int(row["last_res_id"]) - int(row["first_res_id"]) + 1
            offset = native.res_id - first
            inside = (native.ins_code == row["source_ins_code"]) & (offset >= 0) & (offset < size)
            res_id[inside] = int(row["first_res_id"]) + offset[inside]
            codes[inside] = ""
    return replace(native, res_id=res_id, ins_code=codes)


def residue_lddt(model: Residues, native: Residues) -> tuple[np.ndarray, float]:
    """Compute lDDT of the CA atoms (Mariani et al. 2013), radius 15 Å, of residues with equal numbers.

    Parameters
    ----------
    model, native : Residues
        Of one chain; a model may have residues that the native structure does not resolve.

    Returns
    -------
    ndarray
        ``(N,)`` float64, NaN for residues of the model that are not in the native structure.
    float
        lDDT of the whole model: over all distances, not over residues.
    """
    _, rows, others = np.intersect1d(model.res_id, native.res_id, return_indices=True)
    scores = compute_lddt(model.pos[rows], native.pos[others])
    values = np.full(len(model), np.nan)
    values[rows] = scores.residue
    return values, scores.score

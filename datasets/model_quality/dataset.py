"""Dataset ``model_quality``: CA models of EigenFold with their lDDT and global scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.errors import DatasetError
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.compare import compute_lddt

__all__ = ["ModelQuality", "residue_lddt"]
ENTRY_POINTS = {"protgraph.datasets": {"model_quality": "ModelQuality"}}

GLOBAL = {"global_lddt": "lddt_recomputed", "tm_score": "tm", "gdt_ts": "gdt_ts", "rmsd": "rmsd"}
TOLERANCE = 1e-3  # of a recomputed lDDT, of which the table has four digits


class ModelQuality(PreparedDataset):
    """CA models of a protein, each labeled by comparison with its native structure, which is not in the input.

    The source is a folder with ``models.tar.xz``, ``natives.tar.xz`` and ``models.tsv.gz``.
    """

    card_path = Path(__file__).with_name("dataset.toml")

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the models with their lDDT per residue, computed here, and the global scores of the table."""
        models = source.unpacked("models.tar.xz") / "models"
        natives = source.unpacked("natives.tar.xz") / "natives"
        native, name = None, ""
        for row in read_tsv(source.path("models.tsv.gz")):
            if native is None or row["native"] != name:
                name, native = row["native"], clean(load_structure(natives / row["native"]))
            path = models / row["file"]
            model = clean(load_structure(path))
            values, score = residue_lddt(model, native)
            if abs(score - float(row["lddt_recomputed"])) > TOLERANCE:
                raise DatasetError(f"{path}: lDDT {score:.4f}, the table has {row['lddt_recomputed']}. Copy it again.")
            labels = {task: float(row[column]) for task, column in GLOBAL.items()}
            keys = model.chain, model.res_id, model.ins_code
            yield SourceProtein(
                f"{row['set']}_{row['target']}.{row['sample']}",
                path,
                row["split"],
                None,
                row["group"],
                keys,
                {"model_quality": values},
                labels,
            )


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

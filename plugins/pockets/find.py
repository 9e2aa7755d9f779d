"""Find pockets of structure files: residues by a trained model, cavities by alpha spheres."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from protgraph_plugins.pockets.pockets import GEOMETRY, Pocket, pockets_of

from protgraph.checkpoint import Checkpoint, as_checkpoint
from protgraph.errors import OptionError, StructureFileError
from protgraph.inference import predict
from protgraph.model import find_device
from protgraph.structure import ReadOptions, Residues
from protgraph.structure.io import read_residues

__all__ = ["DEFAULT_MODEL", "PocketFinder", "ProteinPockets", "find_pockets"]

ENTRY_POINTS = {"protgraph.functions": {"find_pockets": "find_pockets"}}

DEFAULT_MODEL = "ligand_site"


class ProteinPockets(NamedTuple):
    """Pockets of one file.

    Attributes
    ----------
    residues : Residues
        The protein, with the ligands of the file.
    probability : ndarray, optional
        ``(N,)`` probability of each residue to bind a ligand; None without a model.
    pockets : list of Pocket
        The one of the highest probability first, without probabilities that of the highest score.
    """

    residues: Residues
    probability: np.ndarray | None
    pockets: list[Pocket]


class PocketFinder:
    """Find pockets of several files with one model.

    Parameters
    ----------
    model : str, Path or Checkpoint
        Trained model with one yes/no label per residue, by name or file; "none" for geometry alone.
    device : str
        "auto", "cpu", "cuda", "cuda:1".

    Raises
    ------
    OptionError
        The model predicts something else.
    """

    def __init__(self, model: str | Path | Checkpoint = DEFAULT_MODEL, *, device: str = "auto") -> None:
        self.name = model if isinstance(model, str) else "a file"
        self.device = str(find_device(device))
        self._checkpoint = None
        if model == GEOMETRY:
            return
        self._checkpoint = as_checkpoint(model)
        target = self._checkpoint.model.target
        if (target.level, target.kind, target.size) != ("node", "multilabel", 1):
            raise OptionError(
                f"pockets: model {self.name!r} predicts {target.name!r}, {target.kind} per {target.level}. Allowed: "
                f"models with one yes/no label per residue, e.g. {DEFAULT_MODEL}, or '{GEOMETRY}' for geometry alone."
            )

    def __call__(self, source: str | os.PathLike[str], read: ReadOptions | None = None) -> ProteinPockets:
        """Return the pockets of a structure file, ``pdb:1ubq``, or an entry of an archive.

        Raises
        ------
        SelectionError
            The protein is a peptide.
        MissingCoordinatesError
            It has no side chains.
        StructureFileError
            The file cannot be read, or the model cannot use it.
        """
        read = read or ReadOptions()
        residues = read_residues(source, read.with_ligands())
        probability = None
        if self._checkpoint is not None:
            probability = self._probabilities(source, read, residues)
        return ProteinPockets(residues, probability, pockets_of(residues, probability, model=self.name))

    def _probabilities(self, source: str | os.PathLike[str], read: ReadOptions, residues: Residues) -> np.ndarray:
        """Return the probability of each residue ``(N,)``; 0 where the model has none."""
        assert self._checkpoint is not None
        predictions = predict(self._checkpoint, [os.fspath(source)], read=read, device=self.device)
        if not predictions.rows:
            raise StructureFileError(f"{source}: {self.name} has no prediction. {predictions.failures[0].message}")
        value_of = {row[1:4]: float(row[-2]) for row in predictions.rows}
        keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
        return np.array([value_of.get(key, 0.0) for key in keys])


def find_pockets(
    source: str | os.PathLike[str],
    *,
    model: str | Path | Checkpoint = DEFAULT_MODEL,
    read: ReadOptions | None = None,
    device: str = "auto",
) -> list[Pocket]:
    """Find where small molecules may bind in a structure: ranked pockets with center, volume and lining residues.

    Pockets are clusters of alpha spheres, weighted by the probabilities that a trained model gives to the residues
    around them. They do not depend on the orientation of the file, nor on water, ligands and hydrogens in it.

    Parameters
    ----------
    source : str or PathLike
        Structure file, or ``"pdb:1aki"``.
    model : str, Path or Checkpoint
        Trained model with one yes/no label per residue; "none" for geometry alone.
    read : ReadOptions, optional
        Chains, model, alternate locations and assembly.
    device : str
        "auto", "cpu", "cuda", "cuda:1".

    Returns
    -------
    list of Pocket
        The one of the highest probability first, without probabilities that of the highest score.

    Raises
    ------
    SelectionError
        The protein has fewer than 30 residues.
    MissingCoordinatesError
        It has no side chains, e.g. a CA trace.
    """
    return PocketFinder(model, device=device)(source, read).pockets

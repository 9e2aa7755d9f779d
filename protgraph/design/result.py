"""What designing and scoring give for one protein."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.structure import Residues

__all__ = ["Design", "Scores"]


@dataclass(frozen=True, eq=False)
class Design:
    """S sequences for one protein.

    Parameters
    ----------
    residues : Residues
    designed : ndarray
        ``(N,)`` bool, which residues were chosen.
    aatype : ndarray
        ``(S, N)`` int64, temperature after temperature.
    temperature : ndarray
        ``(S,)`` at which each was drawn.
    score, global_score : ndarray
        ``(S,)`` mean of ``-log p`` over the designed residues, and over all with a backbone.
    native_score, native_global_score : float
        The same of the sequence in the structure, in the order of the first design.
    log_probs : ndarray, optional
        ``(S, N, types)``, what the model said of each residue from those before it; NaN without a backbone.
    probabilities : ndarray, optional
        ``(S, N, types)``, what types were drawn from; 0 where none was.
    ligand_score : ndarray, optional
        ``(S,)`` mean of ``-log p`` over the designed residues about ligands (:mod:`protgraph.design.ligand_contacts`); NaN, or
        None, without any.
    """

    residues: Residues
    designed: np.ndarray
    aatype: np.ndarray
    temperature: np.ndarray
    score: np.ndarray
    global_score: np.ndarray
    native_score: float
    native_global_score: float
    log_probs: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    ligand_score: np.ndarray | None = None

    @property
    def recovery(self) -> np.ndarray:
        """``(S,)`` share of designed residues that have the type in the structure."""
        return (self.aatype == self.residues.aatype)[:, self.designed].mean(1)

    @property
    def ligand_confidence(self) -> np.ndarray:
        """``(S,)`` ``exp(-ligand_score)``, from 0 to 1; NaN without residues about ligands."""
        return np.full(len(self.aatype), np.nan) if self.ligand_score is None else np.exp(-self.ligand_score)


@dataclass(frozen=True, eq=False)
class Scores:
    """How likely one sequence of one protein is.

    Parameters
    ----------
    residues : Residues
        Those that are scored.
    aatype : ndarray
        ``(N,)`` int64, the types that are scored.
    log_probs : ndarray
        ``(N, types)``; NaN for residues without a whole backbone.
    name : str
        Of the sequence; "" for the structure's own.
    """

    residues: Residues
    aatype: np.ndarray
    log_probs: np.ndarray
    name: str = ""

    @property
    def each(self) -> np.ndarray:
        """``(N,)`` log-probability of each residue's type; NaN where there is none."""
        known = self.aatype < self.log_probs.shape[1]
        place = np.where(known, self.aatype, 0)[:, None]
        return np.where(known, np.take_along_axis(self.log_probs, place, 1)[:, 0], np.nan)

    @property
    def score(self) -> float:
        """Mean of ``-log p`` over the residues that have one."""
        return float(-np.nanmean(self.each))

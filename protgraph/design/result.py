"""Results of design and scoring for one protein."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.structure import Residues

__all__ = ["Design", "Scores"]


@dataclass(frozen=True, eq=False)
class Design:
    """S designed sequences of one protein.

    Parameters
    ----------
    residues : Residues
    designed : ndarray
        ``(N,)`` bool, designed residues.
    aatype : ndarray
        ``(S, N)`` int64, sorted by temperature in the given order.
    temperature : ndarray
        ``(S,)``, sampling temperature of each sequence.
    score, global_score : ndarray
        ``(S,)`` mean of ``-log p`` over designed residues, and over all residues with a backbone.
    native_score, native_global_score : float
        The same for the native sequence, in the decoding order of the first design.
    log_probs : ndarray, optional
        ``(S, N, types)``, log-probabilities given the residues decoded before; NaN without a backbone.
    probabilities : ndarray, optional
        ``(S, N, types)``, probabilities that types were sampled from; 0 for fixed residues.
    ligand_score : ndarray, optional
        ``(S,)`` mean of ``-log p`` over the designed residues near ligands (:mod:`protgraph.design.ligand_contacts`);
        NaN or None if there are none.
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
        """Fraction of designed residues with the native type, ``(S,)``."""
        return (self.aatype == self.residues.aatype)[:, self.designed].mean(1)

    @property
    def ligand_confidence(self) -> np.ndarray:
        """``exp(-ligand_score)``, ``(S,)``, from 0 to 1; NaN without residues near ligands."""
        return np.full(len(self.aatype), np.nan) if self.ligand_score is None else np.exp(-self.ligand_score)


@dataclass(frozen=True, eq=False)
class Scores:
    """Log-probabilities of one sequence of one protein.

    Parameters
    ----------
    residues : Residues
        Scored residues.
    aatype : ndarray
        ``(N,)`` int64, scored types.
    log_probs : ndarray
        ``(N, types)``; NaN for residues without a complete backbone.
    name : str
        Name of the sequence; "" for the native one.
    """

    residues: Residues
    aatype: np.ndarray
    log_probs: np.ndarray
    name: str = ""

    @property
    def sequence_log_probs(self) -> np.ndarray:
        """Log-probability of the type of each residue, ``(N,)``; NaN where the model gives none."""
        predicted = self.aatype < self.log_probs.shape[1]
        index = np.where(predicted, self.aatype, 0)[:, None]
        return np.where(predicted, np.take_along_axis(self.log_probs, index, 1)[:, 0], np.nan)

    @property
    def score(self) -> float:
        """Mean of ``-log p`` over the residues with a log-probability."""
        return float(-np.nanmean(self.sequence_log_probs))

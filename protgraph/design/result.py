"""Results of design and scoring for one protein."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.errors import OptionError, suggest
from protgraph.structure import Residues
from protgraph.structure.io import ResidueValues

__all__ = ["SCORE_VALUES", "Design", "Scores", "check_score_value"]

SCORE_VALUES = ("p", "log_p")
"""Values of :meth:`Scores.residue_values`."""


def check_score_value(value: str) -> None:
    """Raise :class:`~protgraph.errors.OptionError` unless the value is one of :data:`SCORE_VALUES`."""
    if value not in SCORE_VALUES:
        raise OptionError(f"value {value!r}. Allowed: {', '.join(SCORE_VALUES)}.{suggest(value, SCORE_VALUES)}")


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

    def residue_values(self, value: str = "p", *, origin: Sequence[str] = ()) -> ResidueValues:
        """Return one value per residue, to write into a structure file.

        Parameters
        ----------
        value : {"p", "log_p"}
            Probability of the scored type, or its logarithm.
        origin : sequence of str
            Model and mode, one text each, for the headers of written files.

        Raises
        ------
        OptionError
            Another value.
        """
        check_score_value(value)
        r, log_probs = self.residues, self.sequence_log_probs
        return ResidueValues(
            name=value,
            chain=r.chain,
            res_id=r.res_id,
            ins_code=r.ins_code,
            res_name=r.res_name,
            values=np.exp(log_probs) if value == "p" else log_probs,
            is_probability=value == "p",
            origin=tuple(origin),
        )

    @property
    def score(self) -> float:
        """Mean of ``-log p`` over the residues with a log-probability."""
        return float(-np.nanmean(self.sequence_log_probs))

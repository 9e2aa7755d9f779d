"""Results of design and scoring for one protein, and their arrays in .npz files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.errors import OptionError, suggest
from protgraph.file_io import atomic_write
from protgraph.structure import Residues
from protgraph.structure.io import ResidueValues

__all__ = ["SCORE_VALUES", "Design", "Scores", "check_score_value", "write_designs", "write_scores"]

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
        ``(S,)`` mean of ``-log p`` over the designed residues with a ligand atom less than 8 Å from the virtual CB;
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


def write_designs(path: str | Path, designs: Sequence[Design]) -> Path:
    """Write the designs of P proteins with R residues in total, S sequences each, and return the path.

    An existing file is replaced.

    =====================================  =================  ========================================================
    array                                  shape              content
    =====================================  =================  ========================================================
    aatype                                 (S, R)             residue types
    log_probs, probabilities               (S, R, types)      where they were kept, see :class:`Design`
    score, global_score, recovery          (S, P)             see :class:`Design`
    ligand_score                           (S, P)             where every design has one
    native_score, native_global_score      (P,)               scores of the native sequence
    temperature                            (S,)               sampling temperature of each sequence
    designed, native                       (R,)               designed residues; types in the structure
    ptr                                    (P + 1,)           first residue of each protein
    proteins, residues                     (P,), (R,)         names
    =====================================  =================  ========================================================
    """
    residues = [design.residues for design in designs]
    arrays = {"aatype": np.concatenate(_values(designs, "aatype"), 1)}
    for name in ("log_probs", "probabilities"):
        tables = _values(designs, name)
        if all(table is not None for table in tables):
            arrays[name] = np.concatenate(tables, 1)
    for name in ("score", "global_score", "recovery", "ligand_score"):
        scores = _values(designs, name)  # of each sequence; None of a design without ligands
        if all(score is not None for score in scores):
            arrays[name] = np.stack(scores, 1)
    for name in ("native_score", "native_global_score"):
        arrays[name] = np.array(_values(designs, name))
    arrays["designed"] = np.concatenate(_values(designs, "designed"))
    arrays["native"] = np.concatenate(_values(residues, "aatype"))
    arrays["temperature"] = designs[0].temperature
    return _write(path, arrays, residues)


def _values(results: Sequence, name: str) -> list:
    return [getattr(result, name) for result in results]


def write_scores(path: str | Path, scores: Sequence[Scores]) -> Path:
    """Write P scored sequences with R residues in total, and return the path.

    An existing file is replaced.

    =====================================  =================  ========================================================
    array                                  shape              content
    =====================================  =================  ========================================================
    log_probs                              (R, types)         log-probabilities of all types
    aatype                                 (R,)               scored types
    ptr                                    (P + 1,)           first residue of each sequence
    proteins, sequences, residues          (P,), (P,), (R,)   names
    =====================================  =================  ========================================================
    """
    arrays = {name: np.concatenate(_values(scores, name)) for name in ("log_probs", "aatype")}
    arrays["sequences"] = np.array(_values(scores, "name"))
    return _write(path, arrays, _values(scores, "residues"))


def _write(path: str | Path, arrays: dict[str, np.ndarray], residues: Sequence) -> Path:
    path = Path(path)
    names = {
        "ptr": np.cumsum([0, *map(len, residues)]),
        "proteins": np.array([r.name for r in residues]),
        "residues": np.concatenate([r.ids for r in residues]),
    }
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays, **names)
    return path

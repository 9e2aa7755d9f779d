"""When two chains count as homologs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from protgraph.errors import OptionError

__all__ = ["GAP_EXTEND", "GAP_OPEN", "HomologyRule", "evalue", "least_score"]

GAP_OPEN, GAP_EXTEND = 11, 1  # a gap of k residues costs 11 + k
_LAMBDA, _K = 0.267, 0.041  # of BLOSUM62 with these gap costs, Altschul et al. 1997


@dataclass(frozen=True)
class HomologyRule:
    """Two chains are homologs if their best local alignment meets all of these.

    The alignment is that of Smith and Waterman (1981) with BLOSUM62 and affine gap costs (11 to open, 1 per residue).

    Parameters
    ----------
    identity : float
        Least fraction of columns with two identical residues, of all columns of the alignment, gaps included.
    coverage : float
        Least fraction of the residues of a chain between the first and the last aligned one.
    coverage_of : {"both", "shorter"}
        Chains whose coverage counts: both, or the shorter one, which also finds a single domain of a longer chain.
    max_evalue : float
        Largest number of alignments of this score that are expected by chance in all sequences together.

    Examples
    --------
    >>> HomologyRule(identity=0.3).text
    'identity ≥ 30 % over ≥ 80 % of both chains, E ≤ 0.001'
    """

    identity: float = 0.3
    coverage: float = 0.8
    coverage_of: Literal["both", "shorter"] = "both"
    max_evalue: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("identity", "coverage"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise OptionError(f"{name}: {value:g} is not a fraction. Allowed: 0 to 1.")
        if self.coverage_of not in ("both", "shorter"):
            raise OptionError(f"coverage_of: {self.coverage_of!r} is not known. Allowed: 'both', 'shorter'.")
        if not self.max_evalue > 0:
            raise OptionError(f"max_evalue: {self.max_evalue:g} is not positive.")

    @property
    def text(self) -> str:
        """The rule in a line."""
        chains = "both chains" if self.coverage_of == "both" else "the shorter chain"
        covered = f"≥ {100 * self.coverage:g} % of {chains}"
        return f"identity ≥ {100 * self.identity:g} % over {covered}, E ≤ {self.max_evalue:g}"

    def holds(self, identity: np.ndarray, first: np.ndarray, second: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return where identity and coverage suffice.

        Parameters
        ----------
        identity, first, second : ndarray
            ``(P,)`` identity, and coverage of the first and of the second chain.
        lengths : ndarray
            ``(P, 2)`` residues of the two chains.

        Returns
        -------
        ndarray
            ``(P,)`` bool.
        """
        both = np.minimum(first, second)
        shorter = np.where(lengths[:, 0] <= lengths[:, 1], first, second)
        return (identity >= self.identity) & ((both if self.coverage_of == "both" else shorter) >= self.coverage)


def evalue(score: np.ndarray, length: np.ndarray, residues: int) -> np.ndarray:
    """Compute E = K m n exp(−λ S) (Karlin & Altschul 1990), m the length of the longer chain, n all residues.

    ``score``, ``length`` and the result have the same shape, e.g. ``(P,)``.
    """
    return _K * np.asarray(length, np.float64) * residues * np.exp(-_LAMBDA * np.asarray(score, np.float64))


def least_score(length: np.ndarray, residues: int, max_evalue: float) -> np.ndarray:
    """Return the least whole scores ``(P,)`` int64 for ``length (P,)`` with :func:`evalue` at most ``max_evalue``."""
    return np.ceil(np.log(_K * np.asarray(length, np.float64) * residues / max_evalue) / _LAMBDA).astype(np.int64)

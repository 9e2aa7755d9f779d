"""Score every single substitution of a structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from protgraph_plugins.mutations.mutation import Mutation
from protgraph_plugins.mutations.scorer import MutationScorer, score_column, score_with_spread, sign_convention

from protgraph.errors import Interrupted, OptionError
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.residues import UNKNOWN

__all__ = ["SubstitutionScan", "scan_mutations"]

_AT_ONCE = 32  # residues: after an interruption, those before are kept


@dataclass(frozen=True, eq=False)
class SubstitutionScan:
    """Scores of all single substitutions of some residues.

    Parameters
    ----------
    residues : Residues
        The whole structure.
    rows : ndarray
        ``(R,)`` int64, scanned residues.
    scores : ndarray
        ``(R, 20)`` float64 in the order of :data:`protgraph.structure.ALPHABET`, 0 for the wild type, positive for
        unfavorable substitutions; NaN without a value.
    scorer, column, convention : str
        Name of the scorer, name of the column of its scores, and their definition and sign.
    spread : ndarray, optional
        ``(R, 20)`` float64, standard deviation of the members of the scorer; None for one model.
    """

    residues: Residues
    rows: np.ndarray
    scores: np.ndarray
    scorer: str
    column: str
    convention: str
    spread: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"SubstitutionScan of {self.residues.name}: {self.column} of {len(self.rows)} residues by {self.scorer}"

    @property
    def wild_type(self) -> np.ndarray:
        """Types of the scanned residues, ``(R,)`` int64."""
        return self.residues.aatype[self.rows]

    @property
    def substitutions(self) -> np.ndarray:
        """Scores without those of the wild type, ``(R, 19)``."""
        other = np.arange(UNKNOWN) != self.wild_type[:, None]
        return self.scores[other].reshape(len(self.rows), UNKNOWN - 1)

    @property
    def percentiles(self) -> np.ndarray:
        """Percentage of the scanned substitutions with a lower score ``(R, 20)``, ties half; NaN for the wild type."""
        known = np.sort(self.substitutions[np.isfinite(self.substitutions)])
        below, up_to = (np.searchsorted(known, self.scores, side) for side in ("left", "right"))
        percentiles = 50.0 * (below + up_to) / max(len(known), 1)
        is_wild_type = np.arange(UNKNOWN) == self.wild_type[:, None]
        return np.where(is_wild_type | np.isnan(self.scores), np.nan, percentiles)

    @property
    def without_value(self) -> list[str]:
        """Ids of scanned residues for which the scorer has no value, e.g. without a complete backbone."""
        ids = self.residues.ids
        return [ids[row] for row in self.rows[np.isnan(self.substitutions).all(1)]]


def scan_mutations(
    scorer: MutationScorer, residues: Residues, rows: Sequence[int] | np.ndarray | None = None
) -> SubstitutionScan:
    """Score the 19 substitutions of each residue, one at a time.

    Parameters
    ----------
    scorer : MutationScorer
    residues : Residues
    rows : sequence of int, optional
        ``(R,)`` residues to scan; all by default. Those without one of the 20 types are left out.

    Raises
    ------
    OptionError
        No residue is left.
    Interrupted
        On Ctrl-C, a KeyboardInterrupt; its attribute ``result`` has the residues that were finished.
    """
    chosen = np.arange(len(residues)) if rows is None else np.unique(np.asarray(rows, np.int64))
    chosen = chosen[residues.aatype[chosen] != UNKNOWN]
    if not len(chosen):
        raise OptionError(f"no residue with one of the 20 types to scan in {residues.name}.")
    column, convention = score_column(scorer), sign_convention(scorer)
    blocks: list[np.ndarray] = []  # (R, 20) of the residues that are finished
    spreads: list[np.ndarray] = []  # as blocks, if the scorer has members
    try:
        for start in range(0, len(chosen), _AT_ONCE):
            variants = _substitutions(residues, chosen[start : start + _AT_ONCE])
            scored = score_with_spread(scorer, residues, variants)
            if scored.spread is not None:
                spreads.append(scored.spread.reshape(-1, UNKNOWN))
            blocks.append(scored.values.reshape(-1, UNKNOWN))
    except KeyboardInterrupt as e:
        if not blocks:
            raise
        scores = np.concatenate(blocks)
        spread = np.concatenate(spreads)[: len(scores)] if spreads else None
        scan = SubstitutionScan(residues, chosen[: len(scores)], scores, scorer.name, column, convention, spread)
        raise Interrupted(e, scan) from e
    spread = np.concatenate(spreads) if spreads else None
    return SubstitutionScan(residues, chosen, np.concatenate(blocks), scorer.name, column, convention, spread)


def _substitutions(residues: Residues, rows: np.ndarray) -> list[tuple[Mutation, ...]]:
    """Return one variant for each of the 20 types at each of the rows ``(R,)``, the wild type included."""
    letters, variants = residues.sequence, []
    for row in rows.tolist():
        place = str(residues.chain[row]), int(residues.res_id[row]), str(residues.ins_code[row])
        variants += [(Mutation(*place, letters[row], new),) for new in ALPHABET[:UNKNOWN]]
    return variants

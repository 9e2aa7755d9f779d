"""Features of the columns of an alignment: frequencies, scores, conservation and gaps."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from protgraph.data.graph import Conformity, FieldSpec, field, register_field
from protgraph.errors import AlignmentError
from protgraph.featurize import StructureFeaturizer
from protgraph.structure import ALPHABET, GAP, Alignment, Residues

__all__ = [
    "ABSENT",
    "BACKGROUND",
    "AlignmentRows",
    "Conservation",
    "EffectiveSequences",
    "ExtraAlignmentRows",
    "GapFraction",
    "Pssm",
    "ResidueFrequency",
    "alignment_of",
    "residue_frequencies",
]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "alignment": "AlignmentRows",
        "conservation": "Conservation",
        "effective_sequences": "EffectiveSequences",
        "extra_alignment": "ExtraAlignmentRows",
        "gap_fraction": "GapFraction",
        "pssm": "Pssm",
        "residue_frequency": "ResidueFrequency",
    }
}

_TYPES = 20
_UNKNOWN = ALPHABET.index("X")
ABSENT = GAP + 1
"""Type beyond the last sequence in the field ``alignment``."""
_MOST_DELETIONS = 255

#: Frequencies of amino acids in the blocks of BLOSUM62, in thousandths and in the order of ``ALPHABET`` (Henikoff &
#: Henikoff 1992, PNAS 89, 10915; rounded as in the program of Capra & Singh 2007).
_BLOSUM62 = (78, 24, 52, 59, 44, 83, 25, 62, 56, 92, 24, 41, 43, 34, 51, 59, 55, 72, 14, 34)
BACKGROUND = np.array(_BLOSUM62) / 1000

register_field(
    FieldSpec(
        "alignment",
        "node",
        "1x0e",
        "int8",
        shape=(None,),
        classes=ABSENT + 1,
        doc="types of the residue's column in each sequence: aatype, 21 for a gap, 22 beyond the last sequence",
    )
)
register_field(
    FieldSpec("alignment_deletions", "node", "1x0e", "uint8", shape=(None,), doc="residues left out before the column")
)
register_field(field("alignment").as_("extra_alignment"))
register_field(field("alignment_deletions").as_("extra_alignment_deletions"))
register_field(FieldSpec("residue_frequency", "node", "20x0e", doc="frequencies of amino acids in the column"))
register_field(FieldSpec("pssm", "node", "20x0e", unit="bit", doc="log-odds of amino acids in the column"))
register_field(FieldSpec("conservation", "node", "1x0e", unit="bit", doc="Jensen–Shannon divergence of the column"))
register_field(FieldSpec("gap_fraction", "node", "1x0e", doc="weighted share of gaps in the column"))
register_field(FieldSpec("effective_sequences", "graph", "1x0e", doc="sum of the weights of the sequences"))


def alignment_of(residues: Residues) -> Alignment:
    """Return the alignment of a protein; raise :class:`protgraph.errors.AlignmentError` without one."""
    if residues.alignment is None:
        raise AlignmentError(f"{residues.name} has no alignment. Give one with --alignment FILE or FOLDER.")
    return residues.alignment


class AlignmentFeaturizer(StructureFeaturizer):
    """Base class of featurizers that read the alignment of a protein, and not its coordinates."""

    needs_coordinates: ClassVar[bool] = False
    needs_alignment: ClassVar[bool] = True
    zero_gradient: ClassVar[bool] = True


class AlignmentRows(AlignmentFeaturizer):
    """Sequences of the alignment, for layers that read it.

    Parameters
    ----------
    rows : int
        Largest number of sequences: the protein's own, and random others.
    seed : int
        Seed of the random choice.

    Writes
    ------
    alignment : (N, S), int8
        Type of the residue's column in each of S = ``rows`` sequences: 0 to 20 as ``aatype``, 21 for a gap, 22 beyond
        the last sequence of the alignment.
    alignment_deletions : (N, S), uint8
        Residues of the sequence that were left out in front of the column, at most 255.

    Notes
    -----
    Rows of the field are residues, like those of every other node field. So proteins of a batch are concatenated along
    residues without padding, and selecting residues, atoms and chains works as for all fields. Only the direction of
    sequences is padded, up to ``rows``, with one byte a place.
    """

    writes: ClassVar[tuple[str, ...]] = ("alignment", "alignment_deletions")
    conformity = Conformity(options={"rows": 16})

    def __init__(self, *, rows: Annotated[int, Ge(1)] = 128, seed: int = 0) -> None:
        super().__init__()
        self.rows, self.seed = rows, seed
        for name in self.writes:
            self.out[name] = field(name).as_(name, irreps=f"{rows}x0e", shape=(rows,))

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        sampled = alignment_of(residues).sample(self.rows, seed=self.seed)
        shape = (len(residues), self.rows)
        types = np.full(shape, ABSENT, np.int8)
        deletions = np.zeros(shape, np.uint8)
        types[:, : len(sampled)] = sampled.rows.T
        deletions[:, : len(sampled)] = np.minimum(sampled.deletions.toarray(), _MOST_DELETIONS).T
        return {"alignment": types, "alignment_deletions": deletions}


class ExtraAlignmentRows(AlignmentRows):
    """More sequences of the alignment, drawn apart from ``alignment``, for layers whose cost is linear in them.

    Parameters
    ----------
    rows : int
        Largest number of sequences: the protein's own, and random others.
    seed : int
        Seed of the random choice.

    Writes
    ------
    extra_alignment, extra_alignment_deletions : (N, S), int8 and uint8
        As ``alignment`` and ``alignment_deletions``.
    """

    writes: ClassVar[tuple[str, ...]] = ("extra_alignment", "extra_alignment_deletions")

    def __init__(self, *, rows: Annotated[int, Ge(1)] = 512, seed: int = 1) -> None:
        super().__init__(rows=rows, seed=seed)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {f"extra_{name}": value for name, value in super().__call__(residues).items()}


def residue_frequencies(alignment: Alignment, *, pseudocount: float) -> np.ndarray:
    """Return the frequencies of the 20 amino acids in each column, ``(N, 20)`` float64.

    ``f_a = (Σ_s w_s [x_s = a] + β p_a) / (Σ_s w_s [x_s is an amino acid] + β)`` with sequence weights w, pseudocount β
    and background p. Gaps and X do not count.
    """
    counts = _weighted_counts(alignment.rows, alignment.weights)[:, :_TYPES]
    total = counts.sum(1, keepdims=True) + pseudocount
    return (counts + pseudocount * BACKGROUND / BACKGROUND.sum()) / total


def _weighted_counts(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sum of the weights of each type in each column, ``(N, 22)`` float64."""
    counts = np.zeros((rows.shape[1], GAP + 1))
    for kind in range(GAP + 1):
        counts[:, kind] = weights @ (rows == kind)
    return counts


class ResidueFrequency(AlignmentFeaturizer):
    """Frequencies of the 20 amino acids in the column of each residue, with sequence weights at 80 % identity.

    Parameters
    ----------
    pseudocount : float
        Effective sequences of the background distribution (BLOSUM62) that are added.

    Writes
    ------
    residue_frequency : (N, 20), 20x0e, dimensionless
        Sum 1; amino acids in the order of ``aatype``.
    """

    writes: ClassVar[tuple[str, ...]] = ("residue_frequency",)

    def __init__(self, *, pseudocount: Annotated[float, Ge(1e-6)] = 1.0) -> None:
        super().__init__()
        self.pseudocount = pseudocount

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        frequencies = residue_frequencies(alignment_of(residues), pseudocount=self.pseudocount)
        return {"residue_frequency": frequencies.astype(np.float32)}


class Pssm(AlignmentFeaturizer):
    """Position-specific scores ``log₂(f_a / p_a)`` of the 20 amino acids; f as ``residue_frequency``, p of BLOSUM62.

    Parameters
    ----------
    pseudocount : float
        See ``residue_frequency``.

    Writes
    ------
    pssm : (N, 20), 20x0e, bit
        Amino acids in the order of ``aatype``.
    """

    writes: ClassVar[tuple[str, ...]] = ("pssm",)

    def __init__(self, *, pseudocount: Annotated[float, Ge(1e-6)] = 1.0) -> None:
        super().__init__()
        self.pseudocount = pseudocount

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        frequencies = residue_frequencies(alignment_of(residues), pseudocount=self.pseudocount)
        return {"pssm": np.log2(frequencies / (BACKGROUND / BACKGROUND.sum())).astype(np.float32)}


class Conservation(AlignmentFeaturizer):
    """Conservation of each column: Jensen–Shannon divergence from the background (Capra & Singh 2007).

    ``½ KL(f, r) + ½ KL(p, r)`` in bits, ``r = ½ (f + p)``, times the weight of the sequences without a gap, and then
    averaged with the columns beside it. 0: as the background; near 1: one rare amino acid.

    Parameters
    ----------
    window : int
        Columns on each side that are averaged; 0 for none.
    mix : float
        Share of the column itself in the average, 0 to 1.
    max_gaps : float
        Share of gaps above which a column has the score 0, and does not count in averages.

    Writes
    ------
    conservation : (N, 1), 1x0e, bit

    Notes
    -----
    The defaults are those of the published program: sequence weights by positions (Henikoff & Henikoff 1994, J. Mol.
    Biol. 243, 574), background of BLOSUM62, pseudocount 10⁻⁷. X counts as a gap. Averages do not cross chains.

    References
    ----------
    Capra & Singh 2007, Bioinformatics 23, 1875, doi:10.1093/bioinformatics/btm270.
    """

    writes: ClassVar[tuple[str, ...]] = ("conservation",)

    def __init__(
        self,
        *,
        window: Annotated[int, Ge(0)] = 3,
        mix: Annotated[float, Ge(0.0), Le(1.0)] = 0.5,
        max_gaps: Annotated[float, Ge(0.0), Le(1.0)] = 0.3,
    ) -> None:
        super().__init__()
        self.window, self.mix, self.max_gaps = window, mix, max_gaps

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        rows = alignment_of(residues).rows
        rows = np.where(rows == _UNKNOWN, GAP, rows)
        is_scored = (rows == GAP).mean(0) <= self.max_gaps
        score = np.where(is_scored, _divergence(rows), 0.0)
        smooth = score.copy()
        for name in residues.chain_names:
            of_chain = np.flatnonzero(residues.chain == name)
            smooth[of_chain] = _average(score[of_chain], is_scored[of_chain], self.window, self.mix)
        return {"conservation": smooth.astype(np.float32)[:, None]}


_PSEUDOCOUNT = 1e-7


def _divergence(rows: np.ndarray) -> np.ndarray:
    """Return the divergence of each column, ``(N,)`` float64, times the weight of the sequences without a gap."""
    weights = _position_weights(rows)
    counts = _weighted_counts(rows, weights)
    f = counts[:, :_TYPES] + _PSEUDOCOUNT
    f /= f.sum(1, keepdims=True)  # (N, 20)
    r = 0.5 * (f + BACKGROUND)
    divergence = (f * np.log2(f / r) + BACKGROUND * np.log2(BACKGROUND / r)).sum(1) / 2
    return divergence * (1 - counts[:, GAP] / weights.sum())


def _position_weights(rows: np.ndarray) -> np.ndarray:
    """Return the weight of each sequence, ``(S,)``: the mean over columns of 1 / (types × sequences of its type).

    Gaps have no weight; if all sequences are gaps, they have equal weights.
    """
    weights = np.zeros(len(rows))
    for column in rows.T:
        counts = np.bincount(column, minlength=GAP + 1)
        of_type = np.zeros(GAP + 1)
        present = np.flatnonzero(counts[:_TYPES])
        of_type[present] = 1.0 / (len(present) * counts[present])
        weights += of_type[column]
    return weights if weights.any() else np.ones(len(rows))


def _average(score: np.ndarray, is_scored: np.ndarray, window: int, mix: float) -> np.ndarray:
    """Return ``mix`` of each score and the rest of the mean of those beside it, where the window is complete."""
    averaged = score.copy()
    for i in range(window, len(score) - window):
        beside = [j for j in range(i - window, i + window + 1) if j != i and is_scored[j]]
        if is_scored[i] and beside:
            averaged[i] = mix * score[i] + (1 - mix) * score[beside].mean()
    return averaged


class GapFraction(AlignmentFeaturizer):
    """Share of gaps in the column of each residue, with sequence weights at 80 % identity.

    Writes
    ------
    gap_fraction : (N, 1), 1x0e, dimensionless
        0 to 1.
    """

    writes: ClassVar[tuple[str, ...]] = ("gap_fraction",)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        alignment = alignment_of(residues)
        share = alignment.weights @ (alignment.rows == GAP) / alignment.weights.sum()
        return {"gap_fraction": share.astype(np.float32)[:, None]}


class EffectiveSequences(AlignmentFeaturizer):
    """Number of effective sequences of the alignment: the sum of the weights at 80 % identity.

    Writes
    ------
    effective_sequences : (1, 1), 1x0e, dimensionless
        1 or more.
    """

    writes: ClassVar[tuple[str, ...]] = ("effective_sequences",)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {"effective_sequences": np.array([[alignment_of(residues).weights.sum()]], np.float32)}

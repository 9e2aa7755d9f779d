"""Chains with similar structures: the rule, structural letters, and the search of all pairs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from protgraph_plugins.similarity.local_alignment import STRUCTURAL, local_aligner
from protgraph_plugins.similarity.pair_search import PairSearch, Rows, search_pairs
from protgraph_plugins.similarity.tm_align import align_structures

from protgraph.errors import OptionError

__all__ = [
    "LEAST_CHAIN",
    "ChainTrace",
    "StructurePairs",
    "StructureRule",
    "find_structure_pairs",
    "structural_letters",
]

LEAST_CHAIN = 20
"""Residues that a chain must have to be compared; the TM-score of shorter ones means little."""
_LETTER_SCORE = 0.7  # per residue of the shorter chain, least score of the structural letters
_CELLS = 20_000_000  # pairs of residues in a block: a minute
_FORMAT = 2  # of the files of finished blocks


@dataclass(frozen=True)
class StructureRule:
    """Two chains have similar structures if their TM-score is at least this.

    Parameters
    ----------
    tm : float
        Least TM-score; 0.5 means that chains probably have the same fold (Xu & Zhang 2010).
    normalized_by : {"longer", "shorter"}
        Chain whose number of residues the score is divided by: the longer one, so that both chains are alike as a
        whole, or the shorter one, which also finds a domain in a longer chain.

    Examples
    --------
    >>> StructureRule().text
    'TM-score ≥ 0.5, normalized by the longer chain'
    """

    tm: float = 0.5
    normalized_by: Literal["longer", "shorter"] = "longer"

    def __post_init__(self) -> None:
        if not 0.3 <= self.tm <= 1:
            raise OptionError(f"tm: {self.tm:g} is not allowed. Allowed: 0.3 (unrelated chains) to 1.")
        if self.normalized_by not in ("longer", "shorter"):
            raise OptionError(f"normalized_by: {self.normalized_by!r} is not known. Allowed: 'longer', 'shorter'.")

    @property
    def text(self) -> str:
        """The rule in a line."""
        return f"TM-score ≥ {self.tm:g}, normalized by the {self.normalized_by} chain"

    def last_partners(self, lengths: np.ndarray) -> np.ndarray:
        """Return the end of the window of each chain that has all longer similar ones, ``(N,)``, for sorted lengths.

        A TM-score that is normalized by the longer chain is at most the fraction of its residues that the shorter one
        has.
        """
        if self.normalized_by == "shorter":
            return np.full(len(lengths), len(lengths))
        return np.searchsorted(lengths, lengths / self.tm + 1e-9, side="right")


@dataclass(frozen=True, eq=False)
class ChainTrace:
    """Structure of a chain, as far as it is compared.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` float32, CA atoms with coordinates, Å.
    letters : str
        Structural letters of these residues; empty if N and C are missing.
    """

    pos: np.ndarray
    letters: str = ""

    @classmethod
    def of_backbone(cls, backbone: np.ndarray) -> ChainTrace:
        """Return the trace of a chain from ``(N, 4, 3)`` N, CA, C, O, NaN for missing atoms, Å."""
        known = np.asarray(backbone)[np.isfinite(backbone[:, 1]).all(1)]
        return cls(known[:, 1].astype(np.float32), structural_letters(known) if len(known) >= LEAST_CHAIN else "")

    def __len__(self) -> int:
        return len(self.pos)


def structural_letters(backbone: np.ndarray) -> str:
    """Return the 3Di letter of each residue: the class of its nearest contact, by a network that biotite has.

    Parameters
    ----------
    backbone : ndarray
        ``(N, 4, 3)`` N, CA, C, O of one chain, Å; NaN for missing atoms. CB is placed from N, CA and C.

    Returns
    -------
    str
        ``N`` letters; empty if N or C are missing in all residues.

    References
    ----------
    van Kempen et al. 2024, Nature Biotechnology 42, 243 (Foldseek).
    """
    from biotite.structure.alphabet import I3DSequence
    from biotite.structure.alphabet.encoder import Encoder

    n, ca, c = (np.asarray(backbone[:, k], np.float64) for k in range(3))
    if not np.isfinite(np.concatenate([n, c], 1)).all(1).any():
        return ""
    with np.errstate(invalid="ignore", divide="ignore"):
        codes = Encoder().encode(ca, np.full_like(ca, np.nan), n, c).filled()
    letters = I3DSequence.alphabet.get_symbols()
    return "".join(letters[k] for k in codes)


@dataclass(frozen=True, eq=False)
class StructurePairs:
    """Pairs of chains with similar structures.

    Parameters
    ----------
    number : int
        Number of chains.
    first, second : ndarray
        ``(P,)`` int64, the two chains of each pair, first < second, sorted.
    tm : ndarray
        ``(P,)`` float64, TM-score as the rule normalizes it.
    compared : int
        Pairs of chains of which the rule could hold by their lengths.
    aligned : int
        Of these, pairs that were aligned; the others have too different structural letters.
    left_out : int
        Chains that were not compared: fewer than 20 residues with coordinates.
    """

    number: int
    first: np.ndarray
    second: np.ndarray
    tm: np.ndarray
    compared: int = 0
    aligned: int = 0
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.first)


def find_structure_pairs(
    chains: Sequence[ChainTrace],
    rule: StructureRule | None = None,
    *,
    groups: Sequence[int] | None = None,
    workers: int = 1,
    cache: Path | None = None,
    report: Callable[[int, int], None] | None = None,
) -> StructurePairs:
    """Find all pairs of chains with similar structures.

    Pairs are excluded by their lengths, which is exact, then by the local alignment of their structural letters, which
    misses some similar pairs of low TM-score, and the others are aligned by :func:`align_structures`. Chains of CA
    atoms alone have no structural letters: all their pairs are aligned.

    Parameters
    ----------
    chains : sequence of ChainTrace
    rule : StructureRule, optional
    groups : sequence of int, optional
        Group of each chain, e.g. its split; pairs of one group are left out.
    workers : int
        Number of processes.
    cache : Path, optional
        Folder for finished blocks, with which an interrupted search continues.
    report : callable, optional
        Called with the numbers of finished and of all pairs.
    """
    rule = rule or StructureRule()
    # chains that are compared, in order of length
    used = sorted((i for i in range(len(chains)) if len(chains[i]) >= LEAST_CHAIN), key=lambda i: (len(chains[i]), i))
    compared_chains = [chains[i] for i in used]
    compared_groups = None if groups is None else np.asarray(groups, np.int64)[used]
    # every alignment as a row of two numbers and a TM-score
    lengths = np.array([len(chain) for chain in compared_chains], np.int64)
    compare = _Superpositions(compared_chains, rule)
    search = PairSearch(lengths, rule.last_partners(lengths), compare, compared_groups)
    folder = None if cache is None else cache / "structure_pairs" / _digest(compared_chains, rule, compared_groups)
    table, total = search_pairs(search, cells=_CELLS, workers=workers, folder=folder, report=report)
    table = table.reshape(-1, 3)
    # similar pairs, in the order of all chains
    similar = table[table[:, 2] >= rule.tm]
    ends = np.sort(np.array(used, np.int64)[similar[:, :2].astype(np.int64)].reshape(-1, 2), axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    first, second = ends[order].T
    return StructurePairs(len(chains), first, second, similar[order, 2], total, len(table), len(chains) - len(used))


def _digest(chains: Sequence[ChainTrace], rule: StructureRule, groups: np.ndarray | None) -> str:
    """Return a name for the search: everything that its result depends on."""
    settings = [_FORMAT, asdict(rule), None if groups is None else groups.tolist(), _LETTER_SCORE]
    content = hashlib.sha256(json.dumps(settings).encode())
    for chain in chains:
        content.update(np.ascontiguousarray(chain.pos, np.float32).tobytes() + chain.letters.encode() + b"\n")
    return content.hexdigest()[:20]


@dataclass(frozen=True, eq=False)
class _Superpositions:
    """Alignments of a chain with those of similar letters, as rows: two numbers and the TM-score, 0 if given up."""

    chains: list[ChainTrace]
    rule: StructureRule

    def __call__(self, i: int, partners: np.ndarray) -> Rows:
        chain = self.chains[i]
        align = local_aligner(chain.letters, STRUCTURAL) if chain.letters else None
        rows: Rows = []
        for j in partners.tolist():
            other, seed = self.chains[j], None
            if align is not None and other.letters:
                seed = align(other.letters, math.ceil(_LETTER_SCORE * len(chain)))
                if seed is None:
                    continue
            alignment = align_structures(chain.pos, other.pos, least=self.rule.tm)
            if alignment is None:
                tm = 0.0
            else:
                tm = alignment.second_tm if self.rule.normalized_by == "longer" else alignment.first_tm
            rows.append((i, j, tm))
        return rows

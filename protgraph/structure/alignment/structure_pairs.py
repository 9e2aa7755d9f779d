"""Find all pairs of chains with similar structures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from protgraph.errors import OptionError
from protgraph.similarity.block_search import Block, run_blocks
from protgraph.structure.alignment.structural_letters import letter_aligner, structural_letters
from protgraph.structure.alignment.tm_align import align_structures

__all__ = ["LEAST_CHAIN", "ChainTrace", "StructurePairs", "StructureRule", "find_structure_pairs"]

LEAST_CHAIN = 20
"""Residues that a chain must have to be compared; the TM-score of shorter ones means little."""
_LETTER_SCORE = 0.7  # per residue of the shorter chain, least score of the structural letters
_CELLS = 20_000_000  # pairs of residues in a block: a minute
_FORMAT = 1  # of the files of finished blocks


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

    def select(self, rows: np.ndarray) -> StructurePairs:
        """Return some pairs, by a mask ``(P,)`` or by indices ``(R,)``."""
        kept = self.first[rows], self.second[rows], self.tm[rows]
        return StructurePairs(self.number, *kept, self.compared, self.aligned, self.left_out)


def find_structure_pairs(
    chains: Sequence[ChainTrace],
    rule: StructureRule | None = None,
    *,
    groups: Sequence[int] | None = None,
    prefilter: bool = True,
    workers: int = 1,
    cache: Path | None = None,
    report: Callable[[int, int], None] | None = None,
) -> StructurePairs:
    """Find all pairs of chains with similar structures.

    Pairs are excluded by their lengths, which is exact, then by the local alignment of their structural letters, which
    misses some similar pairs of low TM-score, and the others are aligned by
    :func:`~protgraph.structure.alignment.align_structures`. Chains of CA atoms alone have no structural letters: all
    their pairs are aligned.

    Parameters
    ----------
    chains : sequence of ChainTrace
    rule : StructureRule, optional
    groups : sequence of int, optional
        Group of each chain, e.g. its split; pairs of one group are left out.
    prefilter : bool
        False: align all pairs that the lengths allow.
    workers : int
        Number of processes.
    cache : Path, optional
        Folder for finished blocks, with which an interrupted search continues.
    report : callable, optional
        Called with the numbers of finished and of all pairs.
    """
    rule = rule or StructureRule()
    used = sorted((i for i in range(len(chains)) if len(chains[i]) >= LEAST_CHAIN), key=lambda i: (len(chains[i]), i))
    own = None if groups is None else np.asarray(groups, np.int64)[used]
    search = _Search([chains[i] for i in used], rule, own, prefilter)
    blocks = search.blocks()
    counts = [search.pairs(block) for block in blocks]
    folder = None if cache is None else cache / "structure_pairs" / search.digest()
    rows, done, total = [np.zeros((0, 3))], 0, sum(counts)
    for (_, found), count in zip(run_blocks(search, blocks, workers, folder), counts, strict=True):
        rows.append(found)
        done += count
        if report is not None:
            report(done, total)
    table = np.concatenate(rows)
    aligned, table = len(table), table[table[:, 2] >= rule.tm]
    ends = np.sort(np.array(used, np.int64)[table[:, :2].astype(np.int64)].reshape(-1, 2), axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    first, second = ends[order].T
    return StructurePairs(len(chains), first, second, table[order, 2], total, aligned, len(chains) - len(used))


class _Search:
    """Chains in order of length, with what is compared with what."""

    def __init__(
        self, chains: list[ChainTrace], rule: StructureRule, groups: np.ndarray | None, prefilter: bool
    ) -> None:
        self.chains, self.rule, self.groups, self.prefilter = chains, rule, groups, prefilter
        self.lengths = np.array([len(chain) for chain in chains], np.int64)

    def digest(self) -> str:
        """Return a name for the search: everything that its result depends on."""
        content = hashlib.sha256()
        groups = None if self.groups is None else self.groups.tolist()
        content.update(json.dumps([_FORMAT, asdict(self.rule), groups, self.prefilter, _LETTER_SCORE]).encode())
        for chain in self.chains:
            content.update(np.ascontiguousarray(chain.pos, np.float32).tobytes() + chain.letters.encode() + b"\n")
        return content.hexdigest()[:20]

    def others(self, i: int) -> np.ndarray:
        """Return the longer chains that chain i is compared with.

        A TM-score that is normalized by the longer chain is at most the fraction of its residues that the shorter one
        has.
        """
        last = len(self.chains)
        if self.rule.normalized_by == "longer":
            last = int(np.searchsorted(self.lengths, self.lengths[i] / self.rule.tm + 1e-9, side="right"))
        others = np.arange(i + 1, max(last, i + 1))
        return others if self.groups is None else others[self.groups[others] != self.groups[i]]

    def pairs(self, block: Block) -> int:
        """Return the number of pairs of a block."""
        return sum(len(self.others(i)) for i in range(block.start, block.stop))

    def blocks(self) -> list[Block]:
        """Return blocks of about equal work."""
        blocks, start, cells = [], 0, 0
        for i in range(len(self.chains)):
            cells += int(self.lengths[i]) * int(self.lengths[self.others(i)].sum())
            if cells >= _CELLS or i == len(self.chains) - 1:
                blocks.append(Block(start, i + 1))
                start, cells = i + 1, 0
        return blocks

    def run(self, block: Block) -> np.ndarray:
        """Return the aligned pairs of a block, ``(P, 3)``: two numbers and the TM-score, 0 if it was given up."""
        rows = [
            (i, j, self._tm(i, j)) for i in range(block.start, block.stop) for j in self._similar(i, self.others(i))
        ]
        return np.array(rows, np.float64).reshape(-1, 3)

    def _similar(self, i: int, others: np.ndarray) -> list[int]:
        """Return the chains with similar structural letters, and those without letters."""
        own = self.chains[i].letters
        if not self.prefilter or not own:
            return others.tolist()
        score, least = letter_aligner(own), _LETTER_SCORE * len(own)
        letters = ((j, self.chains[j].letters) for j in others.tolist())
        return [j for j, other in letters if not other or score(other) >= least]

    def _tm(self, i: int, j: int) -> float:
        """Return the TM-score of chain i, which is not longer, and chain j."""
        found = align_structures(self.chains[i].pos, self.chains[j].pos, least=self.rule.tm)
        if found is None:
            return 0.0
        return found.second_tm if self.rule.normalized_by == "longer" else found.first_tm

"""Which split each protein of one's own is in: as a table says, or at random with what belongs together in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from protgraph.data.datasets.splits import group_split, linked_groups
from protgraph.errors import DatasetError

__all__ = ["SplitAssignment", "SplitUnit", "splits_from_table", "assign_random_splits"]


class SplitUnit(NamedTuple):
    """One protein, and what ties it to others.

    Parameters
    ----------
    name : str
        Unique.
    sequences : frozenset of str
        Digests of the sequences of its chains; see :class:`protgraph.data.datasets.fingerprint.Fingerprint`.
    clusters : frozenset of str
        Clusters that a table puts it in.
    is_readable : bool
        Whether a protein can be read from its file at all.
    """

    name: str
    sequences: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    is_readable: bool = True

    def joined(self, other: SplitUnit) -> SplitUnit:
        """Both as one, which has the name that is first in order."""
        ties = self.sequences | other.sequences, self.clusters | other.clusters
        return SplitUnit(min(self.name, other.name), *ties, self.is_readable or other.is_readable)


@dataclass(frozen=True)
class SplitAssignment:
    """What :func:`assign_random_splits` and :func:`splits_from_table` come to.

    Parameters
    ----------
    splits : tuple of str
        The split of each protein.
    rule : str
        How they were divided, for the card.
    notes : tuple of str
        What whoever made the split should know.
    """

    splits: tuple[str, ...]
    rule: str
    notes: tuple[str, ...] = ()


def assign_random_splits(proteins: Sequence[SplitUnit], *, fractions: Mapping[str, float], seed: int) -> SplitAssignment:
    """A random split in which proteins that share a cluster or a sequence, also by way of others, stay together.

    The same proteins in another order get the same splits. What cannot be read goes to the training split, where it is
    missed the least.
    """
    links = [{("sequence", s) for s in p.sequences} | {("cluster", c) for c in p.clusters} for p in proteins]
    first: dict[int, str] = {}
    group = linked_groups(links)
    for g, protein in zip(group, proteins, strict=True):
        first[g] = min(first.get(g, protein.name), protein.name)
    readable = [i for i, protein in enumerate(proteins) if protein.is_readable]
    drawn = group_split([first[group[i]] for i in readable], fractions=fractions, seed=seed)
    where = dict(zip(readable, drawn, strict=True))
    by = "a sequence or cluster" if any(p.clusters for p in proteins) else "a sequence"
    rule = f"random, seed {seed}, {dict(fractions)}; proteins that share {by} are in one split"
    often = Counter(sequence for protein in proteins for sequence in protein.sequences)
    tied = sum(any(often[s] > 1 for s in protein.sequences) for protein in proteins)
    shared = [f"{tied} of {len(proteins)} proteins share a sequence with another one and are in one split with it"]
    empty = [name for name, share in fractions.items() if share > 0 and name not in drawn]
    few = f"nothing is left for {' and '.join(empty)}: give more proteins, or a table with a column 'split'"
    told = (*(shared if tied else ()), *([few] if empty else ()))
    return SplitAssignment(tuple(where.get(i, "train") for i in range(len(proteins))), rule, told)


def splits_from_table(given: Sequence[str], proteins: Sequence[SplitUnit], where: str) -> SplitAssignment:
    """The splits of a table; sequences that are in more than one are noted.

    Parameters
    ----------
    given : sequence of str
        The split of each protein.
    proteins : sequence of SplitUnit
    where : str
        What errors call the table.

    Raises
    ------
    DatasetError
        Nothing is in the split "train".
    """
    found = set(given)
    if "train" not in found:
        raise DatasetError(
            f"{where}: no protein is in split 'train', only in {sorted(found)}; call the usual ones train, val and test"
        )
    splits: dict[str, set[str]] = {}
    for split, protein in zip(given, proteins, strict=True):
        for sequence in protein.sequences:
            splits.setdefault(sequence, set()).add(split)
    crossing = [names for names in splits.values() if len(names) > 1]
    notes = ()
    if crossing:
        number = "1 sequence is" if len(crossing) == 1 else f"{len(crossing)} sequences are"
        notes = (f"{number} in more than one split ({', '.join(sorted(set.union(*crossing)))}), as {where} has it",)
    return SplitAssignment(tuple(given), f"as {where} says", notes)

"""Assignment of user proteins to splits, from a table or at random by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from protgraph.data.datasets.label_strata import LabelStrata
from protgraph.data.datasets.splits import group_split, linked_groups
from protgraph.errors import DatasetError

__all__ = ["SplitAssignment", "SplitUnit", "assign_random_splits", "splits_from_table"]

_SPLIT_NAMES = {
    **{name: name for name in ("train", "val", "test")},
    "training": "train",
    "validation": "val",
    "valid": "val",
    "dev": "val",
    "testing": "test",
}  # name in lower case → split


class SplitUnit(NamedTuple):
    """Protein to assign to a split, and its links to other proteins.

    Parameters
    ----------
    name : str
        Unique name.
    sequences : frozenset of str
        Digests of the sequences of its chains; see :class:`protgraph.data.datasets.fingerprint.Fingerprint`.
    clusters : frozenset of str
        Clusters from the table.
    is_readable : bool
        False if no protein can be read from the file.
    counts : tuple of int
        Label counts of the protein in each stratum (:class:`protgraph.data.datasets.label_strata.LabelStrata`).
    """

    name: str
    sequences: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    is_readable: bool = True
    counts: tuple[int, ...] = ()

    def merge(self, other: SplitUnit) -> SplitUnit:
        """Merge two units; the name is the first in sorted order, and label counts are added."""
        links = self.sequences | other.sequences, self.clusters | other.clusters
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return SplitUnit(min(self.name, other.name), *links, self.is_readable or other.is_readable, counts)


@dataclass(frozen=True)
class SplitAssignment:
    """Result of :func:`assign_random_splits` and :func:`splits_from_table`.

    Parameters
    ----------
    splits : tuple of str
        Split of each protein.
    rule : str
        Rule of the assignment, for the dataset card.
    notes : tuple of str
        Messages for the user, e.g. about shared sequences.
    """

    splits: tuple[str, ...]
    rule: str
    notes: tuple[str, ...] = ()


def assign_random_splits(
    proteins: Sequence[SplitUnit], *, fractions: Mapping[str, float], seed: int, strata: LabelStrata | None = None
) -> SplitAssignment:
    """Assign proteins to random splits; proteins linked by clusters or equal sequences stay together.

    With ``strata``, the label counts of the proteins are balanced over the splits. The result does not depend on the
    order of proteins. Unreadable proteins are assigned to the training split.
    """
    links = [{("sequence", s) for s in p.sequences} | {("cluster", c) for c in p.clusters} for p in proteins]
    first: dict[int, str] = {}
    group = linked_groups(links)
    for g, protein in zip(group, proteins, strict=True):
        first[g] = min(first.get(g, protein.name), protein.name)
    readable = [i for i, protein in enumerate(proteins) if protein.is_readable]
    labels = {}
    if strata is not None:
        labels = {"counts": np.array([proteins[i].counts for i in readable]), "required": strata.required}
    assigned = group_split([first[group[i]] for i in readable], fractions=fractions, seed=seed, **labels)
    split_of = dict(zip(readable, assigned, strict=True))
    by = "a sequence or cluster" if any(p.clusters for p in proteins) else "a sequence"
    shares = ", ".join(f"{name} {share:g}" for name, share in fractions.items())
    rule = f"random, seed {seed}, {shares}; proteins that share {by} are in the same split"
    rule += f"; {strata.text} are balanced over the splits" if strata is not None else ""
    frequency = Counter(sequence for protein in proteins for sequence in protein.sequences)
    linked = sum(any(frequency[s] > 1 for s in protein.sequences) for protein in proteins)
    shared = f"{linked} of {len(readable)} proteins share a sequence with another protein and are in the same split"
    empty = [name for name, share in fractions.items() if share > 0 and name not in assigned]
    few = f"no proteins are left for {' and '.join(empty)}: add proteins, or a table with a column 'split'"
    notes = (*([shared] if linked else ()), *([few] if empty else ()))
    return SplitAssignment(tuple(split_of.get(i, "train") for i in range(len(proteins))), rule, notes)


def splits_from_table(splits: Sequence[str], proteins: Sequence[SplitUnit], where: str) -> SplitAssignment:
    """Check the splits of a table, and note sequences that are in more than one split."""
    given = sorted(set(splits))
    split_of = {name: _SPLIT_NAMES.get(name.lower(), name) for name in given}
    splits = [split_of[name] for name in splits]
    named = [f"split {name!r} is {split_of[name]}" for name in given if name != split_of[name]]
    further = [name for name in given if split_of[name] not in _SPLIT_NAMES]
    if further:
        named.append(f"further test sets, not trained on: {', '.join(map(repr, further))}")
    if "train" not in splits:
        raise DatasetError(f"{where}: no protein is in split 'train', only in {given}. Use the names train, val, test.")
    splits_of: dict[str, set[str]] = {}
    for split, protein in zip(splits, proteins, strict=True):
        for sequence in protein.sequences:
            splits_of.setdefault(sequence, set()).add(split)
    crossing = [names for names in splits_of.values() if len(names) > 1]
    notes = tuple(named)
    if crossing:
        number = "1 sequence is" if len(crossing) == 1 else f"{len(crossing)} sequences are"
        notes += (f"{number} in more than one split ({', '.join(sorted(set.union(*crossing)))}) of {where}",)
    return SplitAssignment(tuple(splits), f"column 'split' of {where}", notes)

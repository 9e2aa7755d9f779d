"""Leaks between splits: related proteins, as lines and as a table."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from protgraph.failure import Failure
from protgraph.file_io import write_text_file
from protgraph.similarity import HomologyRule
from protgraph.wording import count_noun

__all__ = ["SplitCheck", "SplitLeak"]

_SHOWN = 5
_BINS = (0, 30, 40, 50, 70, 95, 100)  # % identity of the nearest training protein


@dataclass(frozen=True)
class SplitLeak:
    """Two related proteins in different splits.

    Parameters
    ----------
    kind : {"file", "entry", "sequence", "homolog", "structure"}
        What they share: the structure file, the entry of the database, the sequence of a chain, ancestry, or the fold.
    split, protein : str
        The one that is not in the training split, if the other is.
    other_split, other_protein : str
    identity, coverage, other_coverage, evalue : float
        Of the alignment, see :class:`~protgraph.similarity.HomologyRule`; NaN for "file", "entry" and "structure".
    tm : float
        TM-score for "structure", else NaN.
    """

    kind: str
    split: str
    protein: str
    other_split: str
    other_protein: str
    identity: float = float("nan")
    coverage: float = float("nan")
    other_coverage: float = float("nan")
    evalue: float = float("nan")
    tm: float = float("nan")


@dataclass(frozen=True)
class SplitCheck:
    """Relatives in different splits of a dataset; ``str`` returns the lines of ``protgraph data check``.

    Parameters
    ----------
    name : str
        Name of the dataset.
    rule : HomologyRule
    sizes : dict of str to int
        Proteins of each split.
    leaks : tuple of SplitLeak
        All related proteins in different splits; for "homolog", "sequence" and "structure", the most similar pair of
        two proteins.
    nearest : tuple of SplitLeak
        The most similar training protein of each other protein that has a significant alignment with one, whatever its
        identity and coverage.
    failures : tuple of Failure
        Proteins that could not be read.
    aligned : int
        Pairs of chains that were compared.
    engine : str
        Program that found the homologs.
    structures : str
        How structures were compared; empty if they were not.
    """

    name: str
    rule: HomologyRule
    sizes: dict[str, int]
    leaks: tuple[SplitLeak, ...]
    nearest: tuple[SplitLeak, ...]
    failures: tuple[Failure, ...] = ()
    aligned: int = 0
    engine: str = ""
    structures: str = ""

    @property
    def has_leaks(self) -> bool:
        """True if any two related proteins are in different splits."""
        return bool(self.leaks)

    def related(self, split: str, other: str, *, kind: str | None = None, identity: float = 0.0) -> list[str]:
        """Return the proteins of a split that have a relative in another one."""
        pairs = [(leak, leak.split, leak.protein, leak.other_split) for leak in self.leaks]
        pairs += [(leak, leak.other_split, leak.other_protein, leak.split) for leak in self.leaks]
        found = {
            protein
            for leak, own, protein, theirs in pairs
            if (own, theirs) == (split, other)
            and kind in (None, leak.kind)
            and (identity == 0 or leak.identity >= identity)
        }
        return sorted(found)

    def __str__(self) -> str:
        """Return splits, leaks by kind with examples, and the distribution of the nearest training proteins."""
        sizes = ", ".join(f"{name} {size}" for name, size in self.sizes.items())
        lines = [f"dataset {self.name}: {sizes} proteins; {count_noun(self.aligned, 'pair')} of chains compared"]
        lines += [f"homologs by {self.engine}: {self.rule.text}"]
        lines += [self.structures] if self.structures else []
        names = list(self.sizes)
        for i, own in enumerate(names):
            for other in names[:i]:
                related = self.related(own, other)
                line = (
                    f"{own} ~ {other}: {len(related)} of {self.sizes[own]} proteins of {own} have a relative in {other}"
                )
                close = len(self.related(own, other, identity=0.95))
                lines.append(f"{line} ({close} at ≥ 95 % identity)" if related else line)
        kinds = Counter(leak.kind for leak in self.leaks)
        for kind, number in kinds.items():
            lines.append(f"{kind}: {count_noun(number, 'pair')}")
            shown = sorted(
                (k for k in self.leaks if k.kind == kind), key=lambda k: -np.nan_to_num([k.identity, k.tm]).sum()
            )
            lines += [f"  {_describe(leak)}" for leak in shown[:_SHOWN]]
            lines += [f"  and {number - _SHOWN} more"] if number > _SHOWN else []
        lines += self._histogram()
        if self.failures:
            lines.append(f"{count_noun(len(self.failures), 'protein')} not read; the first: {self.failures[0]}")
        lines.append("no leak found" if not self.leaks else f"{count_noun(len(self.leaks), 'pair')} of relatives")
        return "\n".join(lines)

    def _histogram(self) -> list[str]:
        """Return how many proteins have a nearest training protein of which identity."""
        lines = []
        for split in [name for name in self.sizes if name != "train"] if "train" in self.sizes else []:
            identity = np.array([100 * leak.identity for leak in self.nearest if leak.split == split])
            counts = np.histogram(identity, _BINS)[0]
            parts = [f"{a}–{b} %: {n}" for a, b, n in zip(_BINS, _BINS[1:], counts.tolist(), strict=False) if n]
            none = self.sizes[split] - len(identity)
            lines.append(f"nearest training protein of {split}: {', '.join([*parts, f'none found: {none}'])}")
        return lines

    def write(self, path: str | Path) -> Path:
        """Write a CSV of all leaks, then of the nearest training proteins (kind "nearest")."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([field.name for field in fields(SplitLeak)])
        rows = [*self.leaks, *self.nearest]
        writer.writerows([f"{v:.4g}" if isinstance(v, float) else v for v in astuple(row)] for row in rows)
        write_text_file(path, text.getvalue())
        return Path(path)


def _describe(leak: SplitLeak) -> str:
    pair = f"{leak.protein} ({leak.split}) – {leak.other_protein} ({leak.other_split})"
    if leak.kind == "structure":
        return f"{pair}: TM-score {leak.tm:.2f}"
    if np.isnan(leak.identity):
        return pair
    return f"{pair}: identity {leak.identity:.0%} over {leak.coverage:.0%} and {leak.other_coverage:.0%}"

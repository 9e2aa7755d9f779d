"""Counts of what was left out or changed between a file and its residues, stored with the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from protgraph.errors import StructureFileError

__all__ = ["LossReport"]


def _count(text: str) -> int:
    return field(default=0, metadata={"text": text})


def _counts(text: str) -> Mapping[str, int]:
    return field(default_factory=dict, metadata={"text": text})


@dataclass(frozen=True)
class LossReport:
    """Counts of everything that is in a file and not in the result, and of what was changed.

    Examples
    --------
    >>> report = LossReport(waters=3).merge(LossReport(waters=1, ligands={"HEM": 2}))
    >>> report.lines()
    ['4 water molecules left out', '2 other molecules left out (HEM 2)']
    """

    models: int = _count("other model{s} left out")  # models besides the selected one
    # atoms of alternate locations besides the selected one
    altloc_atoms: int = _count("atom{s} of alternate locations left out")
    # atoms with a name that occurs before in their residue; the first is kept
    duplicate_atoms: int = _count("atom{s} with a name that occurs before in the residue left out")
    # atoms without usable coordinates (NaN, infinite or beyond 10⁵ Å)
    invalid_atoms: int = _count("atom{s} without usable coordinates left out")
    # atoms whose element is inferred from their name, because the file has no symbol of an element
    inferred_elements: int = _count("element{s} inferred from atom names")
    hydrogens: int = _count("hydrogen atom{s} left out")  # hydrogen and deuterium atoms
    # atoms of residues that are none, e.g. pseudoatoms of NMR (QB), PyMOL (PS1), and lone pairs (LPA).
    dummy_atoms: int = _count("dummy atom{s} left out")
    # residues whose atoms the file has apart from their chain, moved to their place: modified residues that follow the
    # chain, and alternate locations that are not next to their residue
    moved_residues: int = _count("residue{s} moved to the right place in the chain")
    waters: int = _count("water molecule{s} left out")
    # molecules that are neither protein, water nor nucleic acid, by residue name
    ligands: Mapping[str, int] = _counts("other molecule{s} left out")
    nucleic: int = _count("nucleotide{s} left out")
    # residues of unselected chains, of every kind of molecule, by chain
    excluded_chains: Mapping[str, int] = _counts("residue{s} of other chains left out")
    # residues outside the parts of the protein that a model reads, e.g. antibody domains, by chain.
    outside_parts: Mapping[str, int] = _counts("residue{s} outside the parts that the model reads left out")
    # residues of a second chain with an id already used, by their new chain id, e.g. "A-2".
    repeated_chains: Mapping[str, int] = _counts("residue{s} of a repeated chain id renamed")
    # modified residues read as their parent amino acid, by residue name
    modified: Mapping[str, int] = _counts("modified residue{s} read as the parent")
    # residues without a known parent, read as X, by residue name
    unknown: Mapping[str, int] = _counts("residue{s} of unknown type read as X")
    # amino-acid residues left out because they lack CA, by residue name
    without_ca: Mapping[str, int] = _counts("residue{s} without CA left out")
    missing_backbone: int = _count("residue{s} without all backbone atoms")  # residues that lack N, C or O
    gap_letters: int = _count("gap{s} of the sequence left out")  # gaps ("-" and ".") of a sequence, left out
    stops: int = _count("stop{s} at the end of the sequence left out")  # stops ("*") at the end of a sequence, left out
    # Lower-case letters of a sequence, read as residues
    lower_case: int = _count("lower-case letter{s} read as residues")
    gaps: int = _count("chain break{s}")  # chain breaks: consecutive residues without a peptide bond between them
    # warnings of the parser
    warnings: tuple[str, ...] = field(default=(), metadata={"text": "warning{s} of the parser"})

    def merge(self, *others: LossReport) -> LossReport:
        """Return the sum of reports; equal warnings are kept once."""
        sums: dict[str, Any] = {}
        for other in others:
            for name, value in vars(other).items():
                if value:
                    sums[name] = _add(sums.get(name, getattr(self, name)), value)
        return replace(self, **sums) if sums else self

    def without(self, *names: str) -> LossReport:
        """Return this report with the named entries reset."""
        empty = LossReport()
        return replace(self, **{name: getattr(empty, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return the entries that are not zero or empty, as JSON types."""
        entries: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, Mapping) and value:
                entries[entry.name] = dict(value)
            elif isinstance(value, tuple) and value:
                entries[entry.name] = list(value)
            elif value:
                entries[entry.name] = value
        return entries

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LossReport:
        """Return a report from the output of :meth:`to_dict`.

        Raises :class:`StructureFileError` if an entry is unknown.
        """
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        if unknown:
            raise StructureFileError(
                f"unknown entry {unknown[0]!r} of a loss report. Was it written by a newer version?"
            )
        entries: dict[str, Any] = dict(data)
        if "warnings" in entries:
            entries["warnings"] = tuple(entries["warnings"])
        return cls(**entries)

    def changes(self) -> list[str]:
        """Return one readable line for each thing that the reader repaired, renamed or had to decide.

        These make residues differ from the records of the file; other entries are what is left out of every file.

        Examples
        --------
        >>> LossReport(waters=3, repeated_chains={"A-2": 7}, warnings=("no B factors",)).changes()
        ['7 residues of a repeated chain id renamed (A-2 7)', 'no B factors']
        """
        repaired = LossReport(
            duplicate_atoms=self.duplicate_atoms, dummy_atoms=self.dummy_atoms, repeated_chains=self.repeated_chains
        )
        return [*repaired.lines(), *self.warnings]

    def lines(self) -> list[str]:
        """Return one readable line for each entry that is not zero or empty."""
        lines = []
        for entry in fields(self):
            value, text = getattr(self, entry.name), entry.metadata["text"]
            if isinstance(value, Mapping) and value:
                names = ", ".join(f"{name or 'blank'} {count}" for name, count in sorted(value.items()))
                lines.append(f"{_counted(sum(value.values()), text)} ({names})")
            elif isinstance(value, tuple) and value:
                lines.append(f"{_counted(len(value), text)}: {'; '.join(value)}")
            elif value:
                lines.append(_counted(value, text))
        return lines


def _counted(count: int, text: str) -> str:
    return f"{count} {text.format(s='' if count == 1 else 's')}"


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, int):
        return a + b
    if isinstance(a, tuple):
        return (*a, *(text for text in b if text not in a))
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}

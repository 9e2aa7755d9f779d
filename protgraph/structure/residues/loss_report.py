"""What was left out or changed on the way from a file to residues, as counts that travel with the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from protgraph.errors import StructureFileError

__all__ = ["LossReport"]


def _count(says: str) -> int:
    return field(default=0, metadata={"says": says})


def _counts(says: str) -> Mapping[str, int]:
    return field(default_factory=dict, metadata={"says": says})


@dataclass(frozen=True)
class LossReport:
    """Counts of everything that a file holds and a result does not, and of what was changed.

    Parameters
    ----------
    models : int
        Models besides the chosen one.
    altloc_atoms : int
        Atoms of alternate locations besides the chosen one.
    duplicate_atoms : int
        Atoms whose name their residue already has; the first is kept.
    invalid_atoms : int
        Atoms without usable coordinates (NaN, infinite or beyond 10⁶ Å).
    hydrogens : int
        Hydrogen and deuterium atoms.
    waters : int
        Water molecules.
    ligands : mapping of str to int
        Molecules that are neither protein, water nor nucleic acid, by residue name.
    nucleic : int
        Nucleotides.
    excluded_chains : mapping of str to int
        Residues of chains that were not asked for, by chain: of every kind that was still there.
    repeated_chains : mapping of str to int
        Residues of a second chain under an id already used, by the new chain id ("A-2") that they were given.
    modified : mapping of str to int
        Modified residues that count as their parent amino acid, by residue name.
    unknown : mapping of str to int
        Residues of no known parent, which count as X, by residue name.
    without_ca : int
        Amino-acid residues left out because they have no CA.
    missing_backbone : int
        Residues kept without all of N, C and O.
    gap_letters : int
        Gaps of a sequence ("-" and ".") left out.
    stops : int
        Stops ("*") at the end of a sequence left out.
    lower_case : int
        Lower-case letters of a sequence read as residues like any other.
    gaps : int
        Breaks of a chain: neighbors in the file with no peptide bond between them.
    warnings : tuple of str
        What the parser warned of.

    Examples
    --------
    >>> report = LossReport(waters=3).merge(LossReport(waters=1, ligands={"HEM": 2}))
    >>> report.lines()
    ['4 water molecules left out', '2 other molecules left out (HEM 2)']
    """

    models: int = _count("other models left out")
    altloc_atoms: int = _count("atoms of alternate locations left out")
    duplicate_atoms: int = _count("atoms with a name that their residue already has left out")
    invalid_atoms: int = _count("atoms without usable coordinates left out")
    hydrogens: int = _count("hydrogen atoms left out")
    waters: int = _count("water molecules left out")
    ligands: Mapping[str, int] = _counts("other molecules left out")
    nucleic: int = _count("nucleotides left out")
    excluded_chains: Mapping[str, int] = _counts("residues of other chains left out")
    repeated_chains: Mapping[str, int] = _counts("residues of a repeated chain id renamed")
    modified: Mapping[str, int] = _counts("modified residues read as their parent")
    unknown: Mapping[str, int] = _counts("residues of unknown type read as X")
    without_ca: int = _count("residues without CA left out")
    missing_backbone: int = _count("residues miss backbone atoms")
    gap_letters: int = _count("gaps of the sequence left out")
    stops: int = _count("stops at the end of the sequence left out")
    lower_case: int = _count("lower-case letters read as residues")
    gaps: int = _count("chain breaks")
    warnings: tuple[str, ...] = field(default=(), metadata={"says": "warnings of the parser"})

    def merge(self, other: LossReport) -> LossReport:
        """The sum of two reports; equal warnings are kept once."""
        added = {name: _add(getattr(self, name), value) for name, value in vars(other).items() if value}
        return replace(self, **added) if added else self

    def without(self, *names: str) -> LossReport:
        """This report with the named entries set back to nothing."""
        empty = LossReport()
        return replace(self, **{name: getattr(empty, name) for name in names})

    def to_dict(self) -> dict[str, object]:
        """The entries that are not zero or empty, of plain types that JSON holds."""
        plain = {int: int, tuple: list}
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: plain.get(type(value), dict)(value) for name, value in values.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> LossReport:
        """The report that :meth:`to_dict` gave."""
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        if unknown:
            raise StructureFileError(f"a loss report has no entry {unknown[0]!r}; was it written by a newer version?")
        return cls(**{name: tuple(value) if name == "warnings" else value for name, value in data.items()})

    def lines(self) -> list[str]:
        """One readable line for each entry that is not zero or empty."""
        found = []
        for entry in fields(self):
            value, says = getattr(self, entry.name), entry.metadata["says"]
            if isinstance(value, Mapping) and value:
                names = ", ".join(f"{name or 'blank'} {count}" for name, count in sorted(value.items()))
                found.append(f"{sum(value.values())} {says} ({names})")
            elif isinstance(value, tuple) and value:
                found.append(f"{len(value)} {says}: {'; '.join(value)}")
            elif value:
                found.append(f"{value} {says}")
        return found


def _add(a: object, b: object) -> object:
    if isinstance(a, int):
        return a + b
    if isinstance(a, tuple):
        return (*a, *(text for text in b if text not in a))
    return {name: a.get(name, 0) + b.get(name, 0) for name in (*a, *(n for n in b if n not in a))}

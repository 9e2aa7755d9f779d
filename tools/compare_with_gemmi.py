"""Compare the PDB reader with gemmi, atom by atom and residue by residue, and judge every difference.

Run ``python tools/compare_with_gemmi.py PATH ...`` in the checkout, with PDB files (also gzipped), folders and tar
archives. Prints one line per kind of difference: its judgement, the number of files, atoms or residues, and an
example; ``--all`` prints one line per file. Exits with 1 if a difference has no judgement.

Compared are all atoms of the first model (chain, residue number, insertion code, residue name, atom name, element,
alternate location, occupancy, B factor, coordinates), then the residues of the protein chains after the choice of
alternate locations (identity, order, heavy atoms with elements and coordinates).
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import gemmi
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from protgraph.errors import ProtgraphError
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.io.pdb_lines import model_lines
from protgraph.structure.io.readers import read_atoms
from protgraph.structure.io.sniff import FileContent

__all__ = ["Difference", "compare", "main", "pdb_files"]

FIELDS = ("chain", "number", "insertion code", "residue name", "element", "occupancy", "B factor")
SUFFIXES = (".pdb", ".ent", ".pdb.gz", ".ent.gz")
BOND = 2.5  # Å, longest C–N distance of a peptide bond

Identity = tuple[str, int, str]
Atom = tuple[float, float, float, str, str]  # coordinates, name, altloc


@dataclass(frozen=True)
class Difference:
    """Atoms or residues of one file that differ in the same way.

    Parameters
    ----------
    file, kind : str
        Name of the file, and what differs.
    count : int
        Atoms or residues.
    example : str
        The first of them: ours, then gemmi's.
    judgement : str
        Why ours is right or why both are; "" for a difference that is not explained.
    """

    file: str
    kind: str
    count: int
    example: str
    judgement: str


def pdb_files(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content, decompressed, of each PDB file of files, folders and tar archives."""
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.name.lower().endswith(SUFFIXES) or ".tar" in p.name)
            yield from pdb_files(inside)
        elif ".tar" in path.name:
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and member.name.lower().endswith(SUFFIXES):
                        yield member.name, _decompressed(archive.extractfile(member).read())
        else:
            yield str(path), _decompressed(path.read_bytes())


def _decompressed(content: bytes) -> bytes:
    try:
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except (OSError, EOFError):
        return content


def compare(file: str, content: bytes) -> list[Difference]:
    """Compare one PDB file; an empty list if atoms and residues are equal."""
    text = content.decode("latin-1")
    witness, refusal = _gemmi_model(text)
    try:
        ours = read_atoms(FileContent(file, content)).atoms
    except ProtgraphError as e:
        has_atoms = witness is not None and any(True for _ in witness.all())
        return [Difference(file, "file", 1, str(e).split("\n")[0], "" if has_atoms else "gemmi reads no atoms either")]
    if witness is None:
        return [Difference(file, "file", 1, f"{len(ours)} atoms; gemmi: {refusal}", "gemmi refuses the file")]
    lines, models = model_lines(text)
    records = [line.ljust(80) for line in lines[slice(*models[0])] if line[:6].upper() in ("ATOM  ", "HETATM")]
    differences = list(_compare_atoms(file, ours, records, witness))
    try:
        residues = clean(load_structure(FileContent(file, content)))
    except ProtgraphError:
        residues = None
    return [*differences, *_compare_residues(file, residues, witness)]


def _gemmi_model(text: str) -> tuple[gemmi.Model | None, str]:
    """Return the first model as gemmi reads it, or None and why it does not.

    Columns 77–80 with a line number, which gemmi takes for a charge and refuses, are blanked first.
    """
    lines = [
        line[:76] if line.startswith(("ATOM", "HETATM")) and re.fullmatch(r"[ \d]*\d\s*", line[76:80]) else line
        for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ]
    try:
        structure = gemmi.read_pdb_string("\n".join(lines))
    except (RuntimeError, ValueError) as e:
        return None, str(e).split("\n")[0]
    if len(structure) == 0:
        return None, "no model"
    structure.setup_entities()
    return structure[0], ""


def _compare_atoms(file: str, ours, records: Sequence[str], model: gemmi.Model) -> Iterator[Difference]:
    """Yield the differences of all atoms; those at the same place with the same name and altloc are compared."""
    waiting: dict[Atom, list[tuple]] = defaultdict(list)
    for cra in model.all():
        atom, residue = cra.atom, cra.residue
        row = (cra.chain.name, residue.seqid.num, residue.seqid.icode.strip(), residue.name)
        row += (atom.element.name.upper(), round(atom.occ, 3), round(atom.b_iso, 3))
        waiting[(*_float32(atom.pos.tolist()), atom.name, atom.altloc.replace("\0", ""))].append(row)
    columns = (ours.chain_id, ours.res_id, ours.ins_code, ours.res_name, ours.element)
    numbers = (ours.occupancy.round(3), ours.b_factor.round(3))
    rows = zip(*(c.tolist() for c in (*columns, *numbers)), strict=True)
    keys = zip(*(c.tolist() for c in (*ours.coord.T, ours.atom_name, ours.altloc_id)), strict=True)
    findings: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, row, record in zip(keys, rows, records, strict=True):
        candidates = waiting.get(key)
        if not candidates:
            findings["atom", _judge_missing(record)].append(f"{record[:54]!r}; gemmi: none")
            continue
        other = candidates.pop(candidates.index(row)) if row in candidates else candidates.pop(0)
        for name, a, b in zip(FIELDS, row, other, strict=True):
            if a != b:
                findings[name, _judge(name, a, b, record)].append(f"{record[12:27]!r} {a!r}; gemmi: {b!r}")
    for key, candidates in waiting.items():
        if candidates:
            findings["atom", ""].append(f"none; gemmi: {key}")
    for (kind, judgement), examples in findings.items():
        yield Difference(file, kind, len(examples), examples[0], judgement)


def _float32(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(np.array(list(values), np.float32).tolist())


def _judge(name: str, ours: object, theirs: object, record: str) -> str:
    """Return why a value differs, by the text of the record; "" if unknown."""
    if name == "chain":
        return _judge_chain(ours, theirs, record)
    symbol = record[76:78].strip().upper()
    if name == "element" and (not symbol or gemmi.Element(symbol).atomic_number == 0):
        return "columns 77-78 hold no element: ours by residue and name, gemmi's by the columns of the name or X"
    is_blank = not record[60:66].strip()
    if name == "B factor" and is_blank and (ours, theirs) == (0.0, 20.0):
        return "blank B factor: ours 0 with a note, gemmi 20"
    is_hexadecimal = re.fullmatch("[0-9a-f]{4}", record[22:26]) is not None
    if name == "number" and is_hexadecimal and ours == int(record[22:26], 16):
        return "hexadecimal residue numbers after 9999"
    return ""


def _judge_chain(ours: object, theirs: object, record: str) -> str:
    if record[20] != " " and theirs == record[20:22].strip():
        return "column 21 is part of a long residue name; gemmi reads two-character chain ids"
    if record[21] == " " and ours == record[72:76].strip():
        return "no chain ids: ours are the segment ids"
    return ""


def _judge_missing(record: str) -> str:
    return "lower-case names of amino acids" if record[12:20] != record[12:20].upper() else ""


@dataclass
class _Reference:
    """A residue as gemmi reads it: one conformation of its heavy atoms, and what gemmi takes it for."""

    name: str
    atoms: dict[str, tuple[str, tuple[float, ...]]]
    is_polymer: bool
    is_hetero: bool


def _reference(model: gemmi.Model) -> dict[Identity, _Reference]:
    """Return all residues in gemmi's order with the conformation of the highest summed occupancy, by loops."""
    fragments: dict[Identity, list[gemmi.Residue]] = defaultdict(list)
    for chain in model:
        for residue in chain:
            fragments[chain.name, residue.seqid.num, residue.seqid.icode.strip()].append(residue)
    return {identity: _one_conformation(residues) for identity, residues in fragments.items()}


def _one_conformation(fragments: Sequence[gemmi.Residue]) -> _Reference:
    """Return the conformation of the highest summed occupancy of a residue."""
    location_of = _locations(fragments)
    best = _best_location(fragments, location_of)
    chosen = []
    for residue in fragments:
        for atom in residue:
            if location_of(residue, atom) in ("", best):
                chosen.append((residue, atom))
    residue = next((residue for residue, atom in chosen if atom.name == "CA"), chosen[0][0])
    atoms: dict[str, tuple[str, tuple[float, ...]]] = {}
    for other, atom in chosen:
        if other.name == residue.name and not atom.is_hydrogen():
            atoms.setdefault(atom.name, (atom.element.name.upper(), _float32(atom.pos.tolist())))
    is_polymer = any(r.entity_type == gemmi.EntityType.Polymer for r in fragments)
    return _Reference(residue.name, atoms, is_polymer, residue.het_flag == "H")


def _locations(fragments: Sequence[gemmi.Residue]) -> Callable[[gemmi.Residue, gemmi.Atom], str]:
    """Return the function from an atom to the id of its alternate location; "" for an atom of all conformations.

    Atoms without an id are a location of their own, " ", if one of them has the name of an atom with an id.
    """
    atoms_without_id, atoms_with_id, residues_with_id = set(), set(), set()
    for residue in fragments:
        for atom in residue:
            if atom.altloc == "\0":
                atoms_without_id.add(atom.name)
            else:
                atoms_with_id.add(atom.name)
                residues_with_id.add(residue.name)
    collide = bool(atoms_without_id & atoms_with_id)

    def location_of(residue: gemmi.Residue, atom: gemmi.Atom) -> str:
        if atom.altloc != "\0":
            return atom.altloc
        is_location = collide and (atom.name in atoms_with_id or residue.name not in residues_with_id)
        return " " if is_location else ""

    return location_of


def _best_location(fragments: Sequence[gemmi.Residue], location_of: Callable[[gemmi.Residue, gemmi.Atom], str]) -> str:
    """Return the location of the highest summed occupancy, the first in sorted order of equal ones; "" without any."""
    total: Counter[str] = Counter()
    for residue in fragments:
        for atom in residue:
            total[location_of(residue, atom)] += atom.occ
    del total[""]
    return min(total, key=lambda location: (-round(total[location], 3), location), default="")


def _compare_residues(file: str, residues: Residues | None, model: gemmi.Model) -> Iterator[Difference]:
    """Yield the differences of the residues of protein chains and of their heavy atoms."""
    theirs = _reference(model)
    ours = {} if residues is None else _ours(residues)
    findings: dict[tuple[str, str], list[str]] = defaultdict(list)
    expected = {i: r for i, r in theirs.items() if r.is_polymer and r.atoms.get("CA", ("",))[0] == "C"}
    for identity in expected.keys() - ours.keys():
        reason = _judge_absent(residues, identity, ours, theirs[identity])
        if reason != "nucleotide":
            findings["residue", reason].append(f"none; gemmi: {identity} {theirs[identity].name}")
    for identity, (name, atoms) in ours.items():
        other = theirs.get(identity)
        if other is None:
            findings["residue", _judge_identity(residues, identity)].append(f"{identity} {name}; gemmi: none")
            continue
        if identity not in expected:
            reason = _judge_extra(identity, other, theirs)
            findings["residue", reason].append(f"{identity} {name}; gemmi: not a polymer")
        if (name, atoms) != (other.name, other.atoms):
            findings["atoms of residue", _judge_content(residues, atoms, other)].append(f"{identity} {name}")
    for (kind, judgement), examples in findings.items():
        yield Difference(file, kind, len(examples), examples[0], judgement)
    yield from _compare_order(file, ours, theirs)


def _compare_order(
    file: str, ours: Mapping[Identity, object], theirs: Mapping[Identity, _Reference]
) -> Iterator[Difference]:
    """Yield the first residue that is at another place than in gemmi's order."""
    order = [identity for identity in ours if identity in theirs]
    expected = [identity for identity in theirs if identity in ours]
    moved = [identity for identity, other in zip(order, expected, strict=True) if identity != other]
    if moved:
        example = f"{moved[0]} {theirs[moved[0]].name}"
        yield Difference(file, "order", 1, example, _judge_order(theirs, order, expected))


def _ours(r: Residues) -> dict[Identity, tuple[str, dict[str, tuple[str, tuple[float, ...]]]]]:
    rows: list[dict[str, tuple[str, tuple[float, ...]]]] = [{} for _ in range(len(r))]
    columns = (r.atom_residue, r.atom_name, r.atom_element, r.atom_pos)
    for row, name, element, position in zip(*(c.tolist() for c in columns), strict=True):
        rows[row][name] = (element, tuple(position))
    identities = zip(r.chain.tolist(), r.res_id.tolist(), r.ins_code.tolist(), strict=True)
    return {i: (n, atoms) for i, n, atoms in zip(identities, r.res_name.tolist(), rows, strict=True)}


def _judge_absent(residues: Residues | None, identity: Identity, ours: Mapping, other: _Reference) -> str:
    chain, *number = identity
    renamed = [] if residues is None else residues.report.repeated_chains
    if any(name.startswith(f"{chain}-") and (name, *number) in ours for name in renamed):
        return "a second chain of the same id is renamed; gemmi merges both"
    if residues is not None and any("segment ids" in text for text in residues.report.warnings):
        return "chain ids are segment ids, see the atoms"
    info = gemmi.find_tabulated_residue(other.name)
    if info.is_nucleic_acid():
        return "nucleotide"
    is_complete = {"N", "CA", "C"} <= other.atoms.keys()
    return "" if info.is_amino_acid() or is_complete else "a terminal group in HETATM records, without N or C"


def _judge_identity(residues: Residues, identity: Identity) -> str:
    if identity[0] in residues.report.repeated_chains or "-" in identity[0]:
        return "a second chain of the same id is renamed; gemmi merges both"
    return "chain ids are segment ids, see the atoms" if residues.report.warnings else ""


def _judge_extra(identity: Identity, other: _Reference, theirs: dict[Identity, _Reference]) -> str:
    if other.atoms.get("CA", ("C",))[0] != "C":
        return "CA without an element in columns 77-78"
    if not other.is_hetero:
        return "amino acid in ATOM records; gemmi ends polymers at TER"
    for key, neighbor in theirs.items():
        if key[0] == identity[0] and (_bond(neighbor, other) <= BOND or _bond(other, neighbor) <= BOND):
            is_free = neighbor.is_hetero and not neighbor.is_polymer
            return f"HETATM residue bonded to {'another one' if is_free else 'the chain'}; gemmi ends polymers at TER"
    return ""


def _bond(left: _Reference, right: _Reference) -> float:
    if "C" not in left.atoms or "N" not in right.atoms:
        return np.inf
    return float(np.linalg.norm(np.subtract(left.atoms["C"][1], right.atoms["N"][1])))


def _judge_content(residues: Residues, ours: dict, other: _Reference) -> str:
    if residues.report.repeated_chains:
        return "a second chain of the same id is renamed; gemmi merges both"
    same_places = {n: p for n, (_, p) in ours.items()} == {n: p for n, (_, p) in other.atoms.items()}
    if residues.report.inferred_elements and (same_places or "X" in {e for e, _ in other.atoms.values()}):
        return "columns 77-78 hold no element"
    return ""


def _judge_order(theirs: dict[Identity, _Reference], ours: Sequence[Identity], file: Sequence[Identity]) -> str:
    """Explain another order if it has more peptide bonds between successive residues."""
    if _peptide_bonds(theirs, ours) > _peptide_bonds(theirs, file):
        return "residues apart from their chain are at the place where they are bonded"
    return ""


def _peptide_bonds(residues: dict[Identity, _Reference], order: Sequence[Identity]) -> int:
    """Return the number of successive residues that are bonded."""
    return sum(_bond(residues[a], residues[b]) <= BOND for a, b in pairwise(order))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the differences of files, folders and archives; return 1 if one has no judgement."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="PDB files, folders, tar archives")
    parser.add_argument("--all", action="store_true", help="print one line per file and difference")
    options = parser.parse_args(arguments)
    count, differing, unexplained = 0, 0, 0
    groups: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for file, content in pdb_files(options.paths):
        differences = compare(file, content)
        count += 1
        differing += bool(differences)
        for difference in differences:
            groups[difference.kind, difference.judgement].append(difference)
            if not difference.judgement:
                unexplained += difference.count
    for (kind, judgement), group in sorted(groups.items()):
        print(f"{kind}: {judgement or 'NOT EXPLAINED'}")
        print(f"  {sum(d.count for d in group)} in {len({d.file for d in group})} files, e.g.")
        listed = group if options.all or not judgement else group[:1]
        for d in listed:
            print(f"  {d.file}: {d.count}, {d.example}")
    print(f"{count} files: {count - differing} equal, {differing} differ, {unexplained} not explained")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Polymers, entities and ``label_*`` identifiers of mmCIF for the atoms of a file that has none, e.g. a PDB file.

References
----------
wwPDB, PDBx/mmCIF dictionary, categories ``entity``, ``entity_poly_seq``, ``struct_asym`` and ``pdbx_poly_seq_scheme``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.io.cif_text import Columns, quote_all
from protgraph.structure.residues.alphabet import residue_kind
from protgraph.structure.residues.runs import split_repeats
from protgraph.structure.residues.structure import residue_starts

__all__ = ["POLYMER_CATEGORIES", "Identity", "Polymers", "find_polymers", "letters", "run_starts", "same_columns"]

Identity = tuple[str, int, str]
"""Chain, residue number and insertion code."""

POLYMER_CATEGORIES = ("entity", "entity_poly", "entity_poly_seq", "struct_asym", "pdbx_poly_seq_scheme")
"""Categories of :attr:`Polymers.categories`."""

_CategoryRow = tuple[str | None, ...]
_TYPES = {"protein": "polypeptide(L)", "DNA": "polydeoxyribonucleotide", "RNA": "polyribonucleotide"}
_WATER = "water"


@dataclass(frozen=True, eq=False)
class Polymers:
    """Polymers of A atoms, and the identifiers of all atoms by molecule.

    ``asym``, ``entity``: ``(A,)`` bytes, ``label_asym_id`` and ``label_entity_id``. ``position``: ``(A,)`` int64, place
    of the residue in its polymer, from 1; 0 for atoms of other molecules. ``categories``: category → its columns,
    ``(R,)`` bytes each, for each of :data:`POLYMER_CATEGORIES`.
    """

    asym: np.ndarray
    entity: np.ndarray
    position: np.ndarray
    categories: Mapping[str, Columns]

    @property
    def sequence_id(self) -> np.ndarray:
        """``label_seq_id``, ``(A,)`` bytes."""
        return np.where(self.position > 0, self.position.astype("S"), b".")


@dataclass
class _Molecule:
    """A polymer, a ligand, or the water of a chain: one row of ``struct_asym``.

    ``kind``: a key of ``_TYPES``, "water", or the name of the ligand. ``residues``: residues of a polymer in its order
    → their names, several for microheterogeneity. ``asym``, ``entity``: identifiers.
    """

    kind: str
    residues: dict[Identity, list[str]] = field(default_factory=dict)
    asym: str = ""
    entity: str = ""

    @property
    def is_polymer(self) -> bool:
        return bool(self.residues)

    @property
    def content(self) -> tuple[object, ...]:
        """What is equal for molecules of one entity."""
        return (self.kind, *map(tuple, self.residues.values()))


def run_starts(atoms: AtomArray) -> np.ndarray:
    """Return the first atom of each run of atoms of one residue, ``(R,)`` int64, as residues of the file have them."""
    return split_repeats(atoms.atom_name, atoms.coord, residue_starts(atoms))


def find_polymers(atoms: AtomArray, identity: Sequence[Identity], protein: Sequence[Identity]) -> Polymers:
    """Find the polymers of a model.

    Residues of a polymer have positions in the order of the chain, whatever their numbers are. Each ligand is a
    molecule of its own, and so is the water of a chain. Polymers of equal sequence are one entity.

    ``identity``: of each run of atoms (:func:`run_starts`), with a distinct chain for each molecule, e.g. "A-2" for the
    second chain "A".
    """
    start = run_starts(atoms)
    names, hetero = atoms.res_name[start].tolist(), atoms.hetero[start].tolist()
    rank = {key: i for i, key in enumerate(protein)}
    molecules: dict[tuple[object, ...], _Molecule] = {}
    of_run: list[_Molecule] = []
    for name, is_hetero, key in zip(names, hetero, identity, strict=True):
        kind = _polymer_kind(name, is_hetero, key in rank)
        if kind is not None:
            molecule = molecules.setdefault((kind, key[0]), _Molecule(kind))
            types = molecule.residues.setdefault(key, [])
            if name not in types:
                types.append(name)
        elif residue_kind(name) == "water":
            molecule = molecules.setdefault((_WATER, key[0]), _Molecule(_WATER))
        else:
            molecule = molecules.setdefault((*key, name), _Molecule(name))
        of_run.append(molecule)
    ordered = sorted(molecules.values(), key=lambda molecule: not molecule.is_polymer)
    _name(ordered)
    position: dict[tuple[str, Identity], int] = {}
    for molecule in ordered:
        molecule.residues = {key: molecule.residues[key] for key in _chain_order(list(molecule.residues), rank)}
        position |= {(molecule.asym, key): number for number, key in enumerate(molecule.residues, 1)}
    length = np.diff(start, append=len(atoms))
    places = [position.get((m.asym, key), 0) for key, m in zip(identity, of_run, strict=True)]
    return Polymers(
        np.array([m.asym.encode() for m in of_run]).repeat(length),
        np.array([m.entity.encode() for m in of_run]).repeat(length),
        np.array(places, np.int64).repeat(length),
        _categories(ordered, atoms, start, identity),
    )


def _polymer_kind(name: str, is_hetero: bool, is_protein: bool) -> str | None:
    """Return the key of ``_TYPES`` for a residue of a polymer, None for another molecule."""
    kind = residue_kind(name)
    if kind == "nucleic":
        return None if is_hetero else _nucleic_kind(name)
    if is_protein and kind != "water":
        return "protein"
    return "protein" if kind == "protein" and not is_hetero else None


def _nucleic_kind(name: str) -> str:
    return "DNA" if name.startswith("D") else "RNA"


def _chain_order(keys: list[Identity], rank: dict[Identity, int]) -> list[Identity]:
    """Return the residues of a polymer in the order of the chain; those without a rank follow the one before them."""
    ordered = sorted((key for key in keys if key in rank), key=rank.__getitem__)
    if len(ordered) == len(keys):
        return ordered
    follows: dict[Identity | None, list[Identity]] = {}
    last = None
    for key in keys:
        if key in rank:
            last = key
        else:
            follows.setdefault(last, []).append(key)
    result = follows.get(None, [])
    for key in ordered:
        result += [key, *follows.get(key, [])]
    return result


def _name(molecules: Sequence[_Molecule]) -> None:
    """Set the identifiers of molecules: A to Z, AA to ZZ, …, and the numbers of the distinct contents."""
    entities: dict[object, str] = {}
    for number, molecule in enumerate(molecules):
        molecule.asym = letters(number)
        molecule.entity = entities.setdefault(molecule.content, str(len(entities) + 1))


def letters(number: int) -> str:
    """Return an identifier for a number from 0: A to Z, AA to ZZ, …."""
    text = ""
    number += 1
    while number:
        number, last = divmod(number - 1, 26)
        text = chr(ord("A") + last) + text
    return text


def _categories(
    molecules: Sequence[_Molecule], atoms: AtomArray, start: np.ndarray, identity: Sequence[Identity]
) -> Mapping[str, Columns]:
    first = {molecule.entity: molecule for molecule in reversed(molecules)}
    entities = sorted(first.values(), key=lambda molecule: int(molecule.entity))
    polymers = [molecule for molecule in entities if molecule.is_polymer]
    scheme = _scheme_rows(molecules, atoms, start, identity)
    tables: dict[str, tuple[str, Sequence[_CategoryRow]]] = {
        "entity": ("id type", [(m.entity, _entity_type(m)) for m in entities]),
        "entity_poly": ("entity_id type", [(m.entity, _TYPES[m.kind]) for m in polymers]),
        "entity_poly_seq": ("entity_id num mon_id hetero", _sequence_rows(polymers)),
        "struct_asym": ("id entity_id", [(m.asym, m.entity) for m in molecules]),
        "pdbx_poly_seq_scheme": ("asym_id entity_id seq_id mon_id auth_seq_num pdb_strand_id pdb_ins_code", scheme),
    }
    categories = {name: _columns(items, rows) for name, (items, rows) in tables.items() if rows}
    if scheme:
        categories["pdbx_poly_seq_scheme"] |= same_columns(categories["pdbx_poly_seq_scheme"])
    return categories


def _sequence_rows(polymers: Sequence[_Molecule]) -> list[_CategoryRow]:
    """Return entity, position and name of each residue, and "y" if there are several names at its position."""
    rows: list[_CategoryRow] = []
    for molecule in polymers:
        for number, names in enumerate(molecule.residues.values(), 1):
            is_heterogeneous = "y" if len(names) > 1 else "n"
            rows += [(molecule.entity, str(number), name, is_heterogeneous) for name in names]
    return rows


def _scheme_rows(
    molecules: Sequence[_Molecule], atoms: AtomArray, start: np.ndarray, identity: Sequence[Identity]
) -> list[_CategoryRow]:
    """Return the identifiers of each residue of a polymer in the polymer and in the file."""
    # An atom of each residue has its number in the file, which may differ from that of its identity.
    numbers, chains, codes = (x[start].tolist() for x in (atoms.res_id, atoms.chain_id, atoms.ins_code))
    author = dict(zip(identity, zip(numbers, chains, codes, strict=True), strict=True))
    rows: list[_CategoryRow] = []
    for molecule in molecules:
        for position, (key, names) in enumerate(molecule.residues.items(), 1):
            number, chain, code = author[key]
            in_file = str(number), chain or None, code or None
            for name in names:
                rows.append((molecule.asym, molecule.entity, str(position), name, *in_file))
    return rows


def same_columns(scheme: Columns) -> dict[str, np.ndarray]:
    """Return the columns ``(R,)`` of ``pdbx_poly_seq_scheme`` that equal another one where each residue has atoms.

    ``scheme``: ``(R,)`` bytes each.
    """
    names = {"ndb_seq_num": "seq_id", "pdb_seq_num": "auth_seq_num", "pdb_mon_id": "mon_id", "auth_mon_id": "mon_id"}
    return {name: scheme[same] for name, same in names.items()}


def _entity_type(molecule: _Molecule) -> str:
    if molecule.is_polymer:
        return "polymer"
    return "water" if molecule.kind == _WATER else "non-polymer"


def _columns(items: str, rows: Sequence[_CategoryRow]) -> dict[str, np.ndarray]:
    return {item: quote_all(values) for item, values in zip(items.split(), zip(*rows, strict=True), strict=True)}

"""Extract the protein of a structure as residues, with a report of everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from biotite.structure import AtomArray

from protgraph.argument_types import check_arguments
from protgraph.errors import EmptyStructureError
from protgraph.structure.residues.alphabet import KINDS, UNKNOWN, aatype, name_numbers
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.chain_members import chain_members
from protgraph.structure.residues.duplicates import Deduplicated, resolve_duplicates
from protgraph.structure.residues.identity import run_lengths
from protgraph.structure.residues.ligands import gather_ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.noise import CA
from protgraph.structure.residues.residues import BACKBONE, Residues
from protgraph.structure.residues.structure import Structure, residue_starts, select_chains
from protgraph.structure.residues.text_codes import pack_text, pack_texts

__all__ = ["clean"]

_PROTEIN, _WATER, _NUCLEIC, _OTHER = (KINDS.index(kind) for kind in ("protein", "water", "nucleic", "other"))
_HYDROGENS = tuple(pack_text(symbol) for symbol in ("H", "D", "T"))
_LARGEST = float(np.finfo(np.float32).max)


@check_arguments("structure", "chains", "ligands", "nucleic")
def clean(
    structure: Structure, *, chains: str | Sequence[str] | None = None, ligands: bool = False, nucleic: bool = False
) -> Residues:
    """Return the protein residues of a structure with their heavy atoms.

    Parameters
    ----------
    structure : Structure
        Output of :func:`~protgraph.structure.load_structure`.
    chains : str or sequence of str, optional
        Author chain ids to keep. None: all.
    ligands : bool
        True: keep molecules that are neither polymer nor water in ``Residues.ligands``, for graphs of atoms.
    nucleic : bool
        True: keep nucleotides there.

    Returns
    -------
    Residues
        Chains in order of appearance, residues in the order of the chain. The report is the structure's, extended.

    Raises
    ------
    EmptyStructureError
        The structure has no protein residue with a CA atom.
    SelectionError
        The structure does not have a chain.

    Notes
    -----
    A residue is protein if its type is peptide-linking in the Chemical Component Dictionary, or if it has atoms N, CA
    and C and is not a nucleotide, saccharide or water. One in HETATM records must be part of a chain: bonded to another
    protein residue (C–N at most 2.5 Å, or CA–CA at most 4.3 Å if C or N is missing), or before the last residue of the
    chain in ATOM records. A free amino acid is a ligand. Modified residues and residues in HETATM records that the file
    has apart from their chain are at the place where they are bonded, and counted in ``moved_residues``.

    Examples
    --------
    >>> from protgraph.structure import load_structure
    >>> residues = clean(load_structure("datasets/pdb_core/structures/1lcd.bcif"))
    >>> residues.sequence
    'MKPVTLYDVAEYAGVSYQTVSRVVNQASHVSAKTREKVEAAMAELNYIPNR'
    >>> residues.report.lines()
    ['1 other molecules left out (NA 1)', '22 nucleotides left out']
    """
    if chains is not None:
        structure = select_chains(structure, chains)
    atoms = structure.atoms
    atom_name, element = pack_texts(atoms.atom_name), pack_texts(atoms.element)
    slot = _backbone_slots(atom_name, element)
    table = _tabulate(atoms, slot)
    polymer, rank, moved = _in_chain(atoms, table)
    in_polymer = polymer[table.run]
    heavy = element != _HYDROGENS[0]
    for symbol in _HYDROGENS[1:]:
        heavy &= element != symbol
    heavy &= in_polymer
    rows = _heavy_rows(heavy.nonzero()[0], table.run, rank)
    unique = resolve_duplicates(atoms, atom_name, rows, table.run)
    residues, losses = _residues(structure, unique, slot, table)
    hydrogens = int(np.count_nonzero(in_polymer)) - len(rows)
    losses |= {**_count_others(table, polymer), "hydrogens": hydrogens, "moved_residues": moved}
    report = structure.report.merge(unique.report)
    if len(residues) == 0:
        report = report.merge(LossReport(**losses))
        content = "; ".join(report.without("warnings").lines()) or "no known molecule"
        raise EmptyStructureError(
            f"{structure.source or structure.name}: no protein residue with a CA atom in {len(atoms)} atoms: {content}"
        )
    if ligands or nucleic:
        other, is_nucleic = ~polymer & (table.kind != _WATER), table.kind == _NUCLEIC
        chosen = other & ((nucleic & is_nucleic) | (ligands & ~is_nucleic))
        losses |= {"ligands": {}} if ligands else {}
        losses |= {"nucleic": 0} if nucleic else {}
        residues = replace(residues, ligands=gather_ligands(atoms, table.start, table.run, chosen))
    return _finish(residues, report, losses)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of consecutive atoms of one residue, one row per run.

    ``start`` ``(R,)`` first atom; ``run`` and ``slot`` ``(A,)`` run and index in the backbone of each atom, −1 for
    others; ``coord`` ``(A, 3)``; ``name`` ``(R,)`` str; ``kind`` ``(R,)`` int64, index in ``KINDS``; ``amino_acid``
    ``(R,)`` int64, ``aatype`` of unmodified residues, −1 for all others; ``hetero`` ``(R,)`` bool.
    """

    start: np.ndarray
    run: np.ndarray
    slot: np.ndarray
    coord: np.ndarray
    name: np.ndarray
    kind: np.ndarray
    amino_acid: np.ndarray
    hetero: np.ndarray

    @cached_property
    def backbone(self) -> np.ndarray:
        """N, CA, C, O of each run, ``(R, 4, 3)`` float32, Å, NaN for missing atoms."""
        return _backbone(self.coord, self.slot, self.run, len(self.start))

    @property
    def is_candidate(self) -> np.ndarray:
        """True for runs that are peptide-linking by name, or unknown by name and with N, CA and C, ``(R,)`` bool."""
        is_protein, is_other = self.kind == _PROTEIN, self.kind == _OTHER
        if not is_other.any() or not (is_other[self.run] & (self.slot == CA)).any():  # as in most files
            return is_protein
        return is_protein | (is_other & ~np.isnan(self.backbone[:, :3, 0]).any(axis=1))


def _tabulate(atoms: AtomArray, slot: np.ndarray) -> _Runs:
    start = residue_starts(atoms)
    run = np.arange(len(start)).repeat(run_lengths(start, len(atoms)))
    name = atoms.res_name[start]
    return _Runs(start, run, slot, atoms.coord, name, *name_numbers(name.tolist()), atoms.hetero[start])


def _backbone_slots(atom_name: np.ndarray, element: np.ndarray) -> np.ndarray:
    """Return the index of each atom in :data:`BACKBONE`, ``(A,)`` int8, -1 for others and for calcium."""
    slot = np.full(len(atom_name), -1, np.int8)
    for i, name in enumerate(BACKBONE):
        slot += (atom_name == pack_text(name)).view(np.int8) * np.int8(i + 1)
    is_calcium = element == pack_text("CA")
    if is_calcium.any():
        slot[(slot == CA) & is_calcium] = -1
    return slot


def _backbone(coord: np.ndarray, slot: np.ndarray, residue: np.ndarray, size: int) -> np.ndarray:
    """Return N, CA, C, O of each residue, ``(size, 4, 3)`` float32, Å, NaN if missing; the first of a name counts."""
    atom = np.full(size * len(BACKBONE), len(coord))
    atoms = (slot >= 0).nonzero()[0][::-1]  # backwards, so that the first is written last
    atom[residue[atoms] * len(BACKBONE) + slot[atoms]] = atoms
    with_missing = np.empty((len(coord) + 1, 3), np.float32)
    with_missing[:-1], with_missing[-1] = coord, np.nan
    return with_missing.take(atom, axis=0).reshape(size, len(BACKBONE), 3)


def _in_chain(atoms: AtomArray, table: _Runs) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Select the runs that are residues of protein chains.

    Returns
    -------
    polymer : ndarray
        ``(R,)`` bool.
    rank : ndarray or None
        ``(R,)`` int64, place of each run in the order of the chains; None for that of the file.
    moved : int
        Residues that are not at their place in the file.
    """
    candidate = table.is_candidate
    rows = candidate.nonzero()[0]
    hetero, modified = table.hetero[rows], table.amino_acid[rows] < 0
    if not (hetero.any() or modified.any()):
        return candidate, None, 0
    start = table.start[rows]
    found = chain_members(atoms.chain_id[start], atoms.res_id[start], table.backbone[rows], hetero, modified)
    polymer = np.zeros(len(candidate), bool)
    polymer[rows[found.member]] = True
    if not found.moved:
        return polymer, None, 0
    rank = np.arange(len(candidate))
    rank[rows[found.order]] = rows
    return polymer, rank, found.moved


def _heavy_rows(rows: np.ndarray, run: np.ndarray, rank: np.ndarray | None) -> np.ndarray:
    """Return atoms ``(A,)`` in the order of the chains."""
    return rows if rank is None else rows[np.argsort(rank[run[rows]], kind="stable")]


def _count_others(table: _Runs, polymer: np.ndarray) -> dict[str, Any]:
    """Count the molecules that are not protein, by entry of the report."""
    if polymer.all():
        return {}
    water, nucleic = table.kind == _WATER, table.kind == _NUCLEIC
    ligands = Counter(table.name[~(polymer | water | nucleic)].tolist())
    return {
        "waters": int(np.count_nonzero(water)),
        "nucleic": int(np.count_nonzero(nucleic)),
        "ligands": dict(sorted(ligands.items())),
    }


def _residues(
    structure: Structure, unique: Deduplicated, slot: np.ndarray, table: _Runs
) -> tuple[Residues, dict[str, Any]]:
    """Return the residues that have a CA, ``seq_pos`` still 0, and counts for the report."""
    atoms = structure.atoms
    rows, residue, start = unique.rows, unique.residue, unique.start
    part = _as_slice(rows)
    coord, slot = atoms.coord[part].astype(np.float32), slot[part]
    backbone = _backbone(coord, slot, residue, len(start))
    has_ca = ~np.isnan(backbone[:, CA, 0])
    res_name, amino_acid = atoms.res_name[start], table.amino_acid[table.run[start]]
    named = _count_names(res_name, amino_acid, has_ca)
    alpha = (slot == CA).nonzero()[0]
    categories, of_residue = atoms.get_annotation_categories(), rows[alpha]
    of_alpha = {"b_factor": np.zeros(len(start), np.float32), "occupancy": np.ones(len(start), np.float32)}
    for column, values in of_alpha.items():
        if column in categories:
            value = atoms.get_annotation(column)[of_residue]
            values[residue[alpha]] = np.where(np.abs(value) < _LARGEST, value, 0.0)  # NaN too
    residues = Residues(
        name=structure.name,
        chain=unique.chain,
        res_id=atoms.res_id[start].astype(np.int64),
        ins_code=atoms.ins_code[start],
        res_name=res_name,
        aatype=amino_acid,
        pos=backbone[:, CA],
        backbone=backbone,
        **of_alpha,
        seq_pos=np.zeros(len(start), np.int64),
        atom_pos=coord,
        atom_name=atoms.atom_name[part].copy(),
        atom_element=atoms.element[part].copy(),
        atom_residue=residue,
        report=structure.report,
        predicted=structure.predicted,
    )
    return (residues.select(has_ca) if "without_ca" in named else residues), named


def _count_names(res_name: np.ndarray, amino_acid: np.ndarray, has_ca: np.ndarray) -> dict[str, dict[str, int]]:
    """Set the types of modified residues, and count names of modified and unknown residues and of those without CA."""
    counts: dict[str, dict[str, int]] = {}
    if not has_ca.all():
        counts["without_ca"] = dict(sorted(Counter(res_name[~has_ca].tolist()).items()))
    is_other = (amino_acid < 0) | (amino_acid == UNKNOWN)
    rows = is_other.nonzero()[0]
    if len(rows):
        names = res_name[rows].tolist()
        amino_acid[rows] = list(map(aatype, names))
        number = dict(sorted(Counter(res_name[is_other & has_ca].tolist()).items()))
        counts["modified"] = {name: n for name, n in number.items() if aatype(name) != UNKNOWN}
        counts["unknown"] = {name: n for name, n in number.items() if aatype(name) == UNKNOWN}
    return counts


def _as_slice(rows: np.ndarray) -> slice | np.ndarray:
    """Return a slice of the same rows if they are consecutive, as in most files."""
    if len(rows) == 0 or rows[-1] - rows[0] != len(rows) - 1 or (rows[1:] <= rows[:-1]).any():
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1)


def _finish(residues: Residues, report: LossReport, losses: Mapping[str, Any]) -> Residues:
    """Set ``seq_pos`` and the report, and count missing backbone atoms and chain breaks."""
    res_id = residues.res_id
    same_chain = residues.chain[1:] == residues.chain[:-1]
    linked = linked_to_next(residues)[:-1]
    step = np.where(linked, 1, np.maximum(res_id[1:] - res_id[:-1], 1))
    seq_pos = np.zeros(len(residues), np.int64)
    np.cumsum(np.where(same_chain, step, 0), out=seq_pos[1:])
    ends = (~same_chain).nonzero()[0]
    if len(ends):
        first = np.concatenate([[0], ends + 1])
        seq_pos -= np.repeat(seq_pos[first], run_lengths(first, len(residues)))
    changes = LossReport(
        **losses,
        missing_backbone=len(residues) - int(np.count_nonzero(residues.backbone_mask.all(axis=1))),
        gaps=int(np.count_nonzero(same_chain & ~linked)),
    )
    return residues.copy_with(seq_pos=seq_pos, report=report.merge(changes))

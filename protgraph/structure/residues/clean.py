"""Extract the protein of a structure as residues, with a report of everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from biotite.structure import AtomArray

from protgraph.argument_types import check_arguments
from protgraph.errors import EmptyStructureError, list_first
from protgraph.structure.residues.alphabet import KINDS, UNKNOWN, aatype
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.chain_members import chain_members
from protgraph.structure.residues.duplicates import Deduplicated, resolve_duplicates
from protgraph.structure.residues.identity import run_lengths
from protgraph.structure.residues.ligands import gather_ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import BACKBONE, CA, Residues
from protgraph.structure.residues.runs import Runs, backbone_of, backbone_slots, tabulate_runs
from protgraph.structure.residues.structure import Structure, select_chains
from protgraph.structure.vectors import length

__all__ = ["clean"]

_PROTEIN, _WATER, _NUCLEIC = (KINDS.index(kind) for kind in ("protein", "water", "nucleic"))
_HYDROGENS = ("H", "D", "T")
_AMBIGUOUS = ("AD1", "AD2", "AE1", "AE2", "XD1", "XD2", "XE1", "XE2")  # amide N or O
_O, _C = BACKBONE.index("O"), BACKBONE.index("C")
_CARBONYL = 1.6  # longest distance of C and its oxygen atoms, Å; 1.23 in a peptide, 1.25 in a carboxylate
_LISTED = 5
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
        Chain ids to keep, those of the authors or of the result, e.g. "A-2" for a second chain "A". None: all.
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
    chain in ATOM records, with a number that fits there. A free amino acid is a ligand, and so are molecules with N, CA
    and C that the dictionary does not list as peptide-linking, e.g. SAM, if they have no peptide bond. Modified
    residues and residues in HETATM records that the file has apart from their chain are at the place where they are
    bonded, and counted in ``moved_residues``.

    Examples
    --------
    >>> from protgraph.structure import load_structure
    >>> residues = clean(load_structure("datasets/pdb_core/structures/1lcd.bcif"))
    >>> residues.sequence
    'MKPVTLYDVAEYAGVSYQTVSRVVNQASHVSAKTREKVEAAMAELNYIPNR'
    >>> residues.report.lines()
    ['1 other molecule left out (NA 1)', '22 nucleotides left out']
    """
    if isinstance(chains, str):
        chains = [chains]
    if chains is not None:
        return _of_chains(structure, chains, ligands=ligands, nucleic=nucleic)
    atoms = structure.atoms
    source = structure.source or structure.name

    # heavy atoms of protein chains, in the order of the chains
    slot = backbone_slots(atoms.atom_name, atoms.element)
    table = tabulate_runs(atoms, slot)
    polymer, rank, moved = _in_chain(atoms, table)
    rows, losses = _heavy_atoms(atoms, table, polymer)
    losses["moved_residues"] = moved
    if rank is not None:
        rank_of_atom = rank[table.run[rows]]
        rows = rows[np.argsort(rank_of_atom, kind="stable")]

    # residues of unique identity, and counts of all that is not among them
    unique = resolve_duplicates(atoms, rows, table, source)
    residues, names = _residues(structure, unique, slot, table)
    losses |= _count_others(table, polymer)
    losses |= names
    report = structure.report.merge(unique.report)
    if len(residues) == 0:
        report = report.merge(LossReport(**losses))
        content = "; ".join(report.without("warnings").lines()) or "no known molecule"
        raise EmptyStructureError(f"{source}: no protein residue with a CA atom in {len(atoms)} atoms: {content}")

    # other molecules that are kept are no losses
    is_chosen = np.zeros(len(table.kind), bool)
    if ligands:
        is_chosen |= (table.kind != _WATER) & (table.kind != _NUCLEIC)
        losses["ligands"] = {}
    if nucleic:
        is_chosen |= table.kind == _NUCLEIC
        losses["nucleic"] = 0
    if ligands or nucleic:
        chosen = gather_ligands(atoms, table.start, table.run, is_chosen & ~polymer)
        residues = replace(residues, ligands=chosen)
    return _finish(residues, report, losses)


def _in_chain(atoms: AtomArray, table: Runs) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Select the runs that are residues of protein chains.

    Returns ``polymer``: ``(R,)`` bool. ``rank``: ``(R,)`` int64, place of each run in the order of the chains; None for
    that of the file.
    """
    candidate = table.is_candidate
    rows = candidate.nonzero()[0]
    hetero = table.hetero[rows]
    modified = table.amino_acid[rows] < 0
    if not (hetero.any() or modified.any()):
        return candidate, None, 0
    start = table.start[rows]
    known = table.kind[rows] == _PROTEIN
    chain = atoms.chain_id[start]
    res_id = atoms.res_id[start]
    members = chain_members(chain, res_id, table.backbone[rows], hetero, modified, known)
    polymer = np.zeros(len(candidate), bool)
    polymer[rows[members.member]] = True
    if not members.moved:
        return polymer, None, 0
    rank = np.arange(len(candidate))
    rank[rows[members.order]] = rows
    return polymer, rank, members.moved


def _heavy_atoms(atoms: AtomArray, table: Runs, polymer: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the heavy atoms of residues ``(A,)`` in file order, and counts of their hydrogens and dummy atoms.

    Atoms of unknown element are dummies, apart from backbone atoms and those that are N or O (names of the CCD).
    """
    in_polymer = polymer[table.run]
    heavy = in_polymer & ~np.isin(atoms.element, _HYDROGENS)
    counts = {"hydrogens": int(np.count_nonzero(in_polymer) - np.count_nonzero(heavy))}
    dummy = heavy & (atoms.element == "X")
    if dummy.any():
        dummy &= (table.slot < 0) & ~np.isin(atoms.atom_name, _AMBIGUOUS)
        heavy &= ~dummy
        counts["dummy_atoms"] = int(np.count_nonzero(dummy))
    return heavy.nonzero()[0], counts


def _count_others(table: Runs, polymer: np.ndarray) -> dict[str, Any]:
    """Count the molecules that are not protein, by entry of the report."""
    if polymer.all():
        return {}
    water = table.kind == _WATER
    nucleic = table.kind == _NUCLEIC
    return {
        "waters": int(np.count_nonzero(water)),
        "nucleic": int(np.count_nonzero(nucleic)),
        "ligands": _frequencies(table.name[~(polymer | water | nucleic)]),
    }


def _residues(
    structure: Structure, unique: Deduplicated, slot: np.ndarray, table: Runs
) -> tuple[Residues, dict[str, Any]]:
    """Return the residues that have a CA, ``seq_pos`` still 0, and counts for the report."""
    atoms = structure.atoms
    rows = unique.rows
    residue = unique.residue
    start = unique.start
    coord = atoms.coord[rows].astype(np.float32, copy=False)
    slot = slot[rows]
    atom_name = atoms.atom_name[rows]
    element = atoms.element[rows]
    backbone = backbone_of(coord, slot, residue, len(start))
    has_ca = ~np.isnan(backbone[:, CA, 0])
    oxygens = _name_oxygens(backbone, coord, atom_name, element, residue)
    res_name = atoms.res_name[start]
    amino_acid = table.amino_acid[table.run[start]]
    named: dict[str, Any] = {**_count_names(res_name, amino_acid, has_ca)}

    # B factor and occupancy of the CA atom
    alpha = (slot == CA).nonzero()[0]
    b_factor = np.zeros(len(start), np.float32)
    occupancy = np.ones(len(start), np.float32)
    for column, values in (("b_factor", b_factor), ("occupancy", occupancy)):
        if column in atoms.get_annotation_categories():
            of_alpha = atoms.get_annotation(column)[rows[alpha]]
            is_usable = np.abs(of_alpha) < _LARGEST  # False for NaN
            values[residue[alpha]] = np.where(is_usable, of_alpha, 0.0)

    residues = Residues(
        name=structure.name,
        chain=unique.chain,
        res_id=atoms.res_id[start].astype(np.int64),
        ins_code=unique.ins_code,
        res_name=res_name,
        aatype=amino_acid,
        pos=backbone[:, CA],
        backbone=backbone,
        b_factor=b_factor,
        occupancy=occupancy,
        seq_pos=np.zeros(len(start), np.int64),
        atom_pos=coord,
        atom_name=atom_name,
        atom_element=element,
        atom_residue=residue,
        report=structure.report,
        predicted=structure.predicted,
    )
    if len(oxygens):
        ids = residues.ids
        texts = [f"{ids[row]} {name}" for row, name in oxygens]
        named["warnings"] = (f"{len(texts)} atoms O have another name: {list_first(texts, _LISTED)}",)
    if "without_ca" in named:
        residues = residues.select(has_ca)
    return residues, named


def _name_oxygens(
    backbone: np.ndarray, coord: np.ndarray, atom_name: np.ndarray, element: np.ndarray, residue: np.ndarray
) -> list[tuple[int, str]]:
    """Name the oxygen atoms of the last residues O and OXT, in place; return the residues and the former name of O.

    Programs name them OT1 and OT2 (CHARMM, X-PLOR), O1 and O2 or OC1 and OC2 (GROMACS), O' and O''. They are the
    oxygen atoms at C of residues without O; the first by name is O. A single OXT stays.
    """
    lacking = np.isnan(backbone[:, _O, 0]) & ~np.isnan(backbone[:, _C, 0])
    if not lacking.any():
        return []
    rows = lacking[residue].nonzero()[0]
    rows = rows[element[rows] == "O"]
    distance = length(coord[rows] - backbone[residue[rows], _C])
    rows = rows[distance <= _CARBONYL]
    renamed = []
    for number in np.unique(residue[rows]).tolist():
        atoms = rows[residue[rows] == number].tolist()
        atoms = sorted(atoms, key=lambda row: str(atom_name[row]))
        oxygens = [row for row in atoms if atom_name[row] != "OXT"]
        if not oxygens:
            continue
        first = oxygens[0]
        renamed.append((number, str(atom_name[first])))
        backbone[number, _O] = coord[first]
        atom_name[first] = "O"
        atom_name[oxygens[1:2]] = "OXT"
    return renamed


def _count_names(res_name: np.ndarray, amino_acid: np.ndarray, has_ca: np.ndarray) -> dict[str, dict[str, int]]:
    """Set the types of modified residues, and count names of modified and unknown residues and of those without CA."""
    counts: dict[str, dict[str, int]] = {}
    if not has_ca.all():
        counts["without_ca"] = _frequencies(res_name[~has_ca])
    is_other = (amino_acid < 0) | (amino_acid == UNKNOWN)
    if is_other.any():
        amino_acid[is_other] = [aatype(name) for name in res_name[is_other].tolist()]
        frequencies = _frequencies(res_name[is_other & has_ca])
        counts["modified"] = {name: n for name, n in frequencies.items() if aatype(name) != UNKNOWN}
        counts["unknown"] = {name: n for name, n in frequencies.items() if aatype(name) == UNKNOWN}
    return counts


def _frequencies(names: np.ndarray) -> dict[str, int]:
    """Count each name, in sorted order."""
    return dict(sorted(Counter(names.tolist()).items()))


def _of_chains(structure: Structure, names: Sequence[str], *, ligands: bool, nucleic: bool) -> Residues:
    """Return the residues of some chains by their names in the result: "A" is the first chain "A", "A-2" the second."""
    in_file = set(structure.atoms.chain_id.tolist())
    copies = [name for name in names if name not in in_file and name.rpartition("-")[0] in in_file]
    if not copies:
        structure = select_chains(structure, names)
    residues = clean(structure, ligands=ligands, nucleic=nucleic)
    if copies:
        unknown = set(names) - in_file - set(residues.chain_names)
        chosen = [name for name in names if name in residues.chain_names or name in unknown]
        return residues.chains(chosen)
    chosen = [name for name in residues.chain_names if name in names]
    if len(chosen) == len(residues.chain_names):
        return residues
    return residues.chains(chosen)


def _finish(residues: Residues, report: LossReport, losses: Mapping[str, Any]) -> Residues:
    """Set ``seq_pos`` and the report, and count missing backbone atoms and chain breaks."""
    same_chain = residues.chain[1:] == residues.chain[:-1]
    linked = linked_to_next(residues)[:-1]
    unresolved = np.maximum(np.diff(residues.res_id), 1)  # step across a gap
    step = np.where(linked, 1, unresolved)
    seq_pos = np.zeros(len(residues), np.int64)
    np.cumsum(np.where(same_chain, step, 0), out=seq_pos[1:])
    ends = (~same_chain).nonzero()[0]
    if len(ends):
        first = np.concatenate([[0], ends + 1])
        seq_pos -= np.repeat(seq_pos[first], run_lengths(first, len(residues)))
    is_complete = residues.backbone_mask.all(axis=1)
    is_gap = same_chain & ~linked
    changes = LossReport(
        **losses, missing_backbone=int(np.count_nonzero(~is_complete)), gaps=int(np.count_nonzero(is_gap))
    )
    return residues.copy_with(seq_pos=seq_pos, report=report.merge(changes))

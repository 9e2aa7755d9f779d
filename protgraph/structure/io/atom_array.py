"""Convert between biotite's ``AtomArray`` and protgraph's structures."""

from __future__ import annotations

import numpy as np
from biotite.structure import AtomArray, AtomArrayStack

from protgraph.argument_types import check_arguments
from protgraph.errors import EmptyStructureError, MissingCoordinatesError, StructureFileError
from protgraph.structure.io.elements import complete_elements
from protgraph.structure.io.load import resolve_atoms
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues
from protgraph.structure.residues.structure import Structure

__all__ = ["from_atom_array", "to_atom_array"]


@check_arguments("name", "altloc")
def from_atom_array(atoms: AtomArray, *, name: str = "atoms", altloc: str = "occupancy") -> Structure:
    """Return the structure that a file of these atoms would give.

    Parameters
    ----------
    atoms : AtomArray
        One model. Missing occupancies are 1, missing B factors 0; missing elements are inferred from atom names.
    name : str
        Name of the structure.
    altloc : str
        As in :func:`~protgraph.structure.load_structure`; used if there is an annotation ``altloc_id``.

    Raises
    ------
    StructureFileError
        ``atoms`` is a stack of models or not an AtomArray.
    EmptyStructureError
        No atom has usable coordinates.

    Examples
    --------
    >>> from protgraph.structure import clean, load_structure
    >>> atoms = load_structure("datasets/pdb_core/structures/1crn.bcif").atoms
    >>> clean(from_atom_array(atoms, name="1crn"))
    Residues('1crn', 46 residues of 'A', 327 atoms)
    """
    if not isinstance(atoms, AtomArray):
        hint = " Select one model: atoms[0]." if isinstance(atoms, AtomArrayStack) else ""
        raise StructureFileError(f"{name}: expected an AtomArray, got {type(atoms).__name__}.{hint}")
    if len(atoms) == 0:
        raise EmptyStructureError(f"{name}: the AtomArray has no atoms")
    atoms = atoms.copy()
    available = atoms.get_annotation_categories()
    size = len(atoms)
    defaults = {"occupancy": np.ones(size), "b_factor": np.zeros(size), "altloc_id": np.full(size, "")}
    for annotation, value in defaults.items():
        if annotation not in available:
            atoms.set_annotation(annotation, value)
    is_none = np.isin(atoms.altloc_id, (" ", ".", "?"))
    atoms.set_annotation("altloc_id", np.where(is_none, "", atoms.altloc_id))
    elements, inferred = complete_elements(atoms.element, atoms.res_name, atoms.atom_name)
    atoms.set_annotation("element", elements)
    report = LossReport(inferred_elements=inferred)
    return resolve_atoms(atoms, name=name, source="", form="biotite", altloc=altloc, report=report)


@check_arguments("residues")
def to_atom_array(residues: Residues) -> AtomArray:
    """Return the heavy atoms of residues, each with the B factor and occupancy of its residue.

    ``clean(from_atom_array(to_atom_array(residues)))`` gives equal residues, except for the report and ``predicted``,
    which atoms do not have.

    Raises :class:`MissingCoordinatesError` if the residues are only a sequence.
    """
    if not residues.has_coordinates:
        raise MissingCoordinatesError(f"{residues.name!r} is only a sequence and has no atoms")
    atoms = AtomArray(len(residues.atom_name))
    atoms.coord = residues.atom_pos.copy()
    row = residues.atom_residue
    annotations = {
        "chain_id": residues.chain[row],
        "res_id": residues.res_id[row],
        "ins_code": residues.ins_code[row],
        "res_name": residues.res_name[row],
        "hetero": np.zeros(len(row), bool),
        "atom_name": residues.atom_name,
        "element": residues.atom_element,
        "b_factor": residues.b_factor[row].astype(float),
        "occupancy": np.ones(len(row)) if residues.occupancy is None else residues.occupancy[row].astype(float),
    }
    for annotation, value in annotations.items():
        atoms.set_annotation(annotation, value)
    return atoms

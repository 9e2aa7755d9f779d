"""Between biotite's ``AtomArray`` in a session and protgraph's structures, without a file."""

from __future__ import annotations

import numpy as np
from biotite.structure import AtomArray, AtomArrayStack

from protgraph.errors import EmptyStructureError, MissingCoordinatesError, StructureFileError
from protgraph.structure.io.load import settle
from protgraph.structure.io.readers import normalize_annotations
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues
from protgraph.structure.residues.structure import Structure

__all__ = ["from_atom_array", "to_atom_array"]


def from_atom_array(atoms: AtomArray, *, name: str = "atoms", altloc: str = "occupancy") -> Structure:
    """The structure that a file of these atoms would give.

    Parameters
    ----------
    atoms : AtomArray
        One model. ``occupancy`` is 1, ``b_factor`` 0, and elements follow from the atoms' names where it has none.
    name : str
        What to call it.
    altloc : str
        As for :func:`~protgraph.structure.load_structure`; only where there is an annotation ``altloc_id``.

    Raises
    ------
    StructureFileError
        Where it is a stack of models.
    EmptyStructureError
        Where it has no atoms with usable coordinates.

    Examples
    --------
    >>> residues = clean(from_atom_array(atoms, name="mine"))  # doctest: +SKIP
    """
    if not isinstance(atoms, AtomArray):
        what = "a stack of models; give one, atoms[0]" if isinstance(atoms, AtomArrayStack) else "no AtomArray"
        raise StructureFileError(f"{name}: {type(atoms).__name__} is {what}")
    if len(atoms) == 0:
        raise EmptyStructureError(f"{name}: an AtomArray without atoms")
    atoms = atoms.copy()
    there = atoms.get_annotation_categories()
    size = len(atoms)
    defaults = {"occupancy": np.ones(size), "b_factor": np.zeros(size), "altloc_id": np.full(size, "")}
    for annotation, value in defaults.items():
        if annotation not in there:
            atoms.set_annotation(annotation, value)
    normalize_annotations(atoms)
    return settle(atoms, name=name, source="", form="biotite", altloc=altloc, report=LossReport())


def to_atom_array(residues: Residues) -> AtomArray:
    """The heavy atoms of residues, in order, all in ATOM records; each with its residue's B factor and occupancy.

    ``clean(from_atom_array(to_atom_array(residues)))`` gives equal residues; only the report begins anew, and atoms do
    not say whether they are predicted.

    Raises
    ------
    MissingCoordinatesError
        Where the residues are only a sequence.
    """
    if not residues.has_coordinates:
        raise MissingCoordinatesError(f"{residues.name!r} is only a sequence; there are no atoms to hand over")
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

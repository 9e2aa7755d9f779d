"""Conversion to a biotite AtomArray and back gives equal residues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from biotite.structure import AtomArray, stack

from protgraph.errors import EmptyStructureError, StructureFileError
from protgraph.structure import LossReport, clean, from_atom_array, load_structure, to_atom_array


@pytest.mark.parametrize(
    "name", ["formats/1igy.cif", "formats/1k6p.pdb", "formats/2d0f.bcif", "robustness/modres__1o6u.cif",
             "robustness/icode__1a0q.pdb", "robustness/numbering__chainIDrepeat.pdb.gz", "robustness/missing__1BHL.pdb",
             "robustness/ca-only__calcium-calpha-example.pdb"]
)  # fmt: skip
def test_residues_survive_a_round_trip_through_atoms(shared_data, assert_same, name):
    residues = clean(load_structure(shared_data / name))
    back = clean(from_atom_array(to_atom_array(residues), name=residues.name))
    assert_same(replace(back, report=LossReport()), replace(residues, report=LossReport()))
    for name in ("modified", "unknown", "missing_backbone", "gaps"):
        assert getattr(back.report, name) == getattr(residues.report, name)


def test_atoms_in_memory_and_a_file_give_the_same_residues(shared_data, assert_same):
    structure = load_structure(shared_data / "formats" / "1igy.cif")
    assert_same(clean(from_atom_array(structure.atoms, name="1igy")), clean(structure))


def test_missing_annotations_are_filled_in(structures_dir):
    atoms = load_structure(structures_dir / "1crn.bcif").atoms
    bare = AtomArray(len(atoms))
    bare.coord = atoms.coord
    for name in ("chain_id", "res_id", "ins_code", "res_name", "hetero", "atom_name"):
        bare.set_annotation(name, getattr(atoms, name))
    residues = clean(from_atom_array(bare))
    assert residues.sequence == clean(load_structure(structures_dir / "1crn.bcif")).sequence
    assert not residues.b_factor.any() and set(residues.atom_element) == {"C", "N", "O", "S"}
    assert "occupancy" not in bare.get_annotation_categories()


def test_one_conformation_is_selected(structures_dir):
    atoms = load_structure(structures_dir / "1crn.bcif").atoms
    twice = atoms + atoms
    twice.set_annotation("altloc_id", np.repeat(["A", "B"], len(atoms)))
    twice.set_annotation("occupancy", np.repeat([0.4, 0.6], len(atoms)))
    assert from_atom_array(twice).report.altloc_atoms == len(atoms)


def test_stacks_and_empty_arrays_raise(structures_dir):
    atoms = load_structure(structures_dir / "1crn.bcif").atoms
    with pytest.raises(StructureFileError, match=r"AtomArrayStack"):
        from_atom_array(stack([atoms, atoms]))
    with pytest.raises(EmptyStructureError):
        from_atom_array(AtomArray(0))

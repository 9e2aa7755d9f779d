"""One conformation per residue, against a slow reference."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from protgraph.errors import OptionError
from protgraph.structure import clean, load_structure
from protgraph.structure.io.altloc import altloc_mask, group_residues
from protgraph.structure.io.readers import read_atoms

IDS = np.array(["", "A", "B", "A", "B", "A", "C", "C"])
OCC = np.array([1.0, 0.4, 0.6, 0.4, 0.6, 0.5, 0.5, 0.0])
RES = np.array([0, 0, 0, 0, 0, 1, 1, 1])


def _slow(atoms, altloc):
    """Choose with dictionaries: total occupancy and first appearance of each id of each residue."""
    total, order = defaultdict(lambda: defaultdict(float)), defaultdict(list)
    keys = list(zip(atoms.chain_id, atoms.res_id, atoms.ins_code, strict=True))
    for key, alt, occupancy in zip(keys, atoms.altloc_id, atoms.occupancy, strict=True):
        if alt:
            total[key][alt] += float(occupancy)
            order[key].append(alt)
    keep = []
    for key, alt in zip(keys, atoms.altloc_id, strict=True):
        best = sorted(total[key], key=lambda a: (-round(total[key][a], 3), a))
        chosen = order[key][0] if altloc == "first" and best else altloc if altloc in total[key] else (best or [""])[0]
        keep.append(alt in ("", chosen))
    return np.array(keep)


@pytest.mark.parametrize("altloc", ["occupancy", "first", "A", "B", "2"])
@pytest.mark.parametrize("entry", ["1k6p", "1o1z", "3o5r", "3wip"])
def test_choice_equals_a_slow_reference_on_real_entries(shared_data, entry, altloc):
    atoms = read_atoms(shared_data / "formats" / f"{entry}.cif").atoms
    residue = group_residues(atoms.chain_id, atoms.res_id, atoms.ins_code)
    keep = altloc_mask(atoms.altloc_id, atoms.occupancy, residue, altloc=altloc)
    assert not keep.all()
    np.testing.assert_array_equal(keep, _slow(atoms, altloc))


def test_highest_summed_occupancy_wins_and_ties_go_to_the_first_letter():
    keep = altloc_mask(IDS, OCC, RES)
    assert keep.tolist() == [True, False, True, False, True, True, False, False]


def test_first_uses_the_order_of_the_file():
    assert altloc_mask(IDS, OCC, RES, altloc="first").tolist() == [True, True, False, True, False, True, False, False]


def test_an_id_falls_back_to_occupancy_in_residues_without_it():
    assert altloc_mask(IDS, OCC, RES, altloc="C").tolist() == [True, False, True, False, True, False, True, True]


def test_unknown_occupancies_count_as_zero():
    keep = altloc_mask(np.array(["A", "B"]), np.array([np.nan, 0.1]), np.zeros(2, int))
    assert keep.tolist() == [False, True]


def test_an_unknown_policy_raises(structures_dir):
    with pytest.raises(OptionError, match="'best'"):
        load_structure(structures_dir / "1crn.bcif", altloc="best")


def test_group_residues_does_not_depend_on_row_order():
    number = group_residues(np.array(["A", "B", "A", "A"]), np.array([1, 1, 1, 1]), np.array(["", "", "", "A"]))
    assert number[0] == number[2] and len(set(number.tolist())) == 3


def test_numeric_altloc_ids_keep_every_residue(shared_data):
    for suffix in ("pdb", "cif", "bcif"):
        assert len(clean(load_structure(shared_data / "formats" / f"1k6p.{suffix}"))) == 198


def test_all_atoms_of_a_residue_have_one_conformation(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(
        residue("SER", "A", 22, 0.0, alt="A", occ=0.4),
        residue("PRO", "A", 22, 0.5, alt="B", occ=0.6),
        residue("GLU", "A", 23, 3.9),
    )
    chosen = clean(load_structure(path))
    assert chosen.res_name.tolist() == ["PRO", "GLU"] and chosen.report.altloc_atoms == 4
    assert clean(load_structure(path, altloc="A")).res_name.tolist() == ["SER", "GLU"]


@pytest.mark.parametrize("altloc", ["occupancy", "first", "B"])
def test_a_conformation_without_ca_is_not_chosen_over_one_with_ca(write_pdb, pdb_lines, altloc):
    atom, residue = pdb_lines
    side = [atom(name, "LYS", "A", 2, (5.4, y, 0.0), alt="B", occ=0.9)
            for y, name in enumerate(("CB", "CG", "CD", "CE", "NZ"), 1)]  # fmt: skip
    backbone = residue("LYS", "A", 2, 3.9, alt="A", occ=0.3)
    path = write_pdb(residue("GLY", "A", 1, 0.0), side, backbone, residue("GLU", "A", 3, 7.8))
    residues = clean(load_structure(path, altloc=altloc))
    assert residues.sequence == "GKE" and residues.report.altloc_atoms == 5 and not residues.report.without_ca


def test_a_second_chain_of_the_same_name_keeps_its_conformations(write_pdb, pdb_lines):
    _, residue = pdb_lines
    chain = [[residue("GLY", "A", 1, x), residue("SER", "A", 2, x + 3.9, alt="A", occ=0.4),
              residue("SER", "A", 2, x + 3.9, alt="B", occ=0.6), residue("GLU", "A", 3, x + 7.8)]
             for x in (0.0, 50.0)]  # fmt: skip
    residues = clean(load_structure(write_pdb(*(line for copy in chain for line in copy))))
    assert residues.ids == ["A:1", "A:2", "A:3", "A-2:1", "A-2:2", "A-2:3"] and residues.report.moved_residues == 0


@pytest.mark.parametrize(("occupancy", "sequence"), [(0.4, "GSE"), (0.6, "GPE")])
def test_a_conformation_without_id_competes_with_those_that_have_one(write_pdb, pdb_lines, occupancy, sequence):
    _, residue = pdb_lines
    chain = [residue("GLY", "A", 1, 0.0), residue("SER", "A", 2, 3.9, occ=0.5),
             residue("PRO", "A", 2, 3.9, alt="B", occ=occupancy), residue("GLU", "A", 3, 7.8)]  # fmt: skip
    path = write_pdb(*chain)
    residues = clean(load_structure(path))
    assert residues.sequence == sequence and residues.report.altloc_atoms == 4 and residues.report.gaps == 0
    assert clean(load_structure(path, altloc="B")).sequence == "GPE"
    assert clean(load_structure(path, altloc="first")).sequence == "GSE"

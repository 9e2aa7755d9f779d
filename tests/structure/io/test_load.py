"""Loading keeps everything except other models, other conformations and unusable atoms, and reports these."""

from __future__ import annotations

import numpy as np
import pytest
from biotite.structure import filter_amino_acids
from biotite.structure.io import pdbx

from protgraph.errors import EmptyStructureError, OptionError, SelectionError
from protgraph.structure import ReadOptions, clean, load_structure


def test_atoms_equal_those_of_biotite_without_alternate_locations(shared_data):
    path = shared_data / "formats" / "1igy.bcif"
    ours = load_structure(path).atoms
    fields = ["b_factor", "occupancy"]
    theirs = pdbx.get_structure(pdbx.BinaryCIFFile.read(path), model=1, extra_fields=fields, use_author_fields=True)
    assert ours.equal_annotations(theirs) and np.array_equal(ours.coord, theirs.coord)
    assert not filter_amino_acids(ours).all()


def test_name_is_the_file_name_without_suffixes(shared_data):
    structure = load_structure(shared_data / "robustness" / "ligand__1oky.pdb.gz")
    assert structure.name == "ligand__1oky" and repr(structure) == "Structure('ligand__1oky', 2463 atoms, pdb)"


def test_other_models_are_counted(shared_data):
    assert load_structure(shared_data / "formats" / "1l2y.cif").report.to_dict() == {"models": 37}


def test_chains_are_selected_with_their_ligands_and_the_others_counted(structures_dir):
    path = structures_dir / "1jk9.bcif"
    whole, part = load_structure(path), load_structure(path, chains=["B"])
    assert set(part.atoms.chain_id) == {"B"}
    assert set(part.report.excluded_chains) == set(whole.atoms.chain_id) - {"B"}
    np.testing.assert_array_equal(clean(part).pos, clean(whole).chains(["B"]).pos)


def test_an_unknown_chain_raises_with_the_available_ones(structures_dir):
    with pytest.raises(SelectionError, match="'Z'.*'A', 'B', 'C', 'D'"):
        load_structure(structures_dir / "1jk9.bcif", chains=["A", "Z"])


@pytest.mark.parametrize("x", ["     nan", "     inf", "1.0e+009", "-999999."])
def test_unusable_coordinates_are_left_out_and_counted(write_pdb, pdb_lines, x):
    lines = pdb_lines.residue("GLY", "A", 1, 0.0)
    structure = load_structure(write_pdb(lines[:3], lines[3][:30] + x + lines[3][38:]))
    assert len(structure.atoms) == 3 and structure.report.invalid_atoms == 1
    residues = clean(structure)
    assert residues.report.missing_backbone == 1 and residues.backbone_mask.tolist() == [[True, True, True, False]]


def test_a_file_without_usable_coordinates_raises(write_pdb, pdb_lines):
    lines = [line[:30] + "     nan" + line[38:] for line in pdb_lines.residue("GLY", "A", 1, 0.0)]
    with pytest.raises(EmptyStructureError, match="4 atoms"):
        load_structure(write_pdb(lines))


def test_read_options_survive_conversion_to_plain_data():
    options = ReadOptions(chains=("A", "B"), model_number=2, altloc="B", assembly="1", ligands=True)
    assert ReadOptions.from_dict(options.to_dict()) == options
    assert ReadOptions.from_dict({}) == ReadOptions() and ReadOptions().to_dict() == {}


@pytest.mark.parametrize(
    ("data", "part"),
    [({"chain": "A"}, "x: .*'chains'"), ({"chains": "A"}, r"x\.chains = 'A'"), ({"model_number": True}, "x.*True"),
     ({"model_number": 0}, "x: .*0"), ({"altloc": 1}, r"x\.altloc = 1"), ({"ligands": 1}, r"x\.ligands = 1")],
)  # fmt: skip
def test_invalid_read_options_raise_with_the_key(data, part):
    with pytest.raises(OptionError, match=f"^{part}"):
        ReadOptions.from_dict(data, where="x")

"""Assemblies of REMARK 350 and of mmCIF in every legal form of their lists; gemmi is the witness."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import SelectionError, StructureFileError
from protgraph.structure import clean, load_structure

IDENTITY = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)]
TURN = [(-1, 0, 0, 5), (0, -1, 0, 0), (0, 0, 1, 70)]


def _biomt(*operations):
    return [
        f"REMARK 350   BIOMT{row}{number:4d}" + "".join(f"{v:10.6f}" for v in values[:3]) + f"{values[3]:15.5f}"
        for number, operation in enumerate(operations, 1)
        for row, values in enumerate(operation, 1)
    ]


def _chains(pdb_lines, names):
    return [
        line for i, c in enumerate(names) for n in (1, 2) for line in pdb_lines.residue("GLY", c, n, 50 * i + 3.9 * n)
    ]


HEADERS = {
    "no empty line": ["REMARK 350 BIOMOLECULE: 1", "REMARK 350 APPLY THE FOLLOWING TO CHAINS: A, B"],
    "two names": ["REMARK 350", "REMARK 350 BIOMOLECULE: 1, 2", "REMARK 350 APPLY THE FOLLOWING TO CHAINS: A,B"],
    "as deposited": ["REMARK 350", "REMARK 350 COORDINATES FOR A COMPLETE MULTIMER", "REMARK 350 BIOMOLECULE: 1   ",
                     "REMARK 350 AUTHOR DETERMINED BIOLOGICAL UNIT: TETRAMERIC",
                     "REMARK 350 APPLY THE FOLLOWING TO CHAINS: A,", "REMARK 350                    AND CHAINS: B"],
    "trailing comma": ["REMARK 350 BIOMOLECULE:   1", "REMARK 350 APPLY THE FOLLOWING TO CHAINS: A, B,"],
}  # fmt: skip


@pytest.mark.parametrize("form", HEADERS)
def test_every_form_of_remark_350_is_read(write_pdb, pdb_lines, form):
    gemmi = pytest.importorskip("gemmi", reason="gemmi is not installed")
    path = write_pdb(HEADERS[form], _biomt(IDENTITY, TURN), _chains(pdb_lines, "ABC"))
    residues = clean(load_structure(path, assembly="1"))
    assert sorted(residues.chain_names) == ["A", "A-2", "B", "B-2"] and len(residues) == 8
    structure = gemmi.read_structure(str(path))
    naming = gemmi.HowToNameCopiedChain.AddNumber
    made = gemmi.make_assembly(structure.assemblies[0], structure[0], naming)
    theirs = sorted([round(v, 3) for v in atom.pos.tolist()] for chain in made for r in chain for atom in r)
    np.testing.assert_allclose(sorted(residues.atom_pos.round(3).tolist()), theirs, atol=2e-3)
    if form == "two names":
        other = clean(load_structure(path, assembly="2"))
        np.testing.assert_array_equal(other.pos, residues.pos)


def test_parts_of_an_assembly_have_their_own_operations(write_pdb, pdb_lines):
    lines = ["REMARK 350 BIOMOLECULE: 1", "REMARK 350 APPLY THE FOLLOWING TO CHAINS: A", *_biomt(IDENTITY, TURN)]
    lines += ["REMARK 350 APPLY THE FOLLOWING TO CHAINS: B", *_biomt(IDENTITY), "REMARK 350 BIOMOLECULE: 2"]
    lines += ["REMARK 350 APPLY THE FOLLOWING TO CHAINS: B", *_biomt(TURN)]
    path = write_pdb(lines, _chains(pdb_lines, "AB"))
    assert sorted(clean(load_structure(path, assembly="1")).chain_names) == ["A", "A-2", "B"]
    second = clean(load_structure(path, assembly="2"))
    assert second.chain_names == ("B",) and second.pos[0].tolist() == pytest.approx([5 - 55.4, 0, 70], abs=1e-3)
    with pytest.raises(SelectionError, match="'1', '2'"):
        load_structure(path, assembly="3")


@pytest.mark.parametrize(
    "lines",
    [
        ["REMARK 350 APPLY THE FOLLOWING TO CHAINS: A", *_biomt(IDENTITY)[:2]],
        ["REMARK 350 APPLY THE FOLLOWING TO CHAINS: A"],
        _biomt(IDENTITY),
        ["REMARK 350 APPLY THE FOLLOWING TO CHAINS: A", "REMARK 350   BIOMT1   1  1.0  0.0 zero 0.0"],
    ],
)
def test_incomplete_operations_are_refused(write_pdb, pdb_lines, lines):
    path = write_pdb("REMARK 350 BIOMOLECULE: 1", lines, _chains(pdb_lines, "A"))
    with pytest.raises(StructureFileError, match="made.pdb: REMARK 350"):
        load_structure(path, assembly="1")


@pytest.mark.parametrize(
    ("chains", "operations"),
    [
        ("A,B", "1,2"),
        ("'A, B'", "'1, 2'"),
        ("'A ,B '", "(1-2)"),
        ("\n;A,\nB\n;\n", "'(1 - 2)'"),
        ("\n; A,B\n;\n", "\n;(1,\n2)\n;\n"),
        ("\n;A\n,\nB\n\n;\n", "'(1)(1,2)'"),
    ],
)
def test_lists_of_mmcif_are_free_of_white_space(tmp_path, chains, operations):
    turn = {f"matrix[{i + 1}][{j + 1}]": TURN[i][j] for i in range(3) for j in range(3)}
    turn |= {f"vector[{i + 1}]": TURN[i][3] for i in range(3)}
    one = {f"matrix[{i + 1}][{j + 1}]": IDENTITY[i][j] for i in range(3) for j in range(3)}
    one |= {f"vector[{i + 1}]": 0 for i in range(3)}
    text = "data_x\nloop_\n_pdbx_struct_oper_list.id\n" + "".join(f"_pdbx_struct_oper_list.{k}\n" for k in turn)
    text += "".join(f"{n} {' '.join(map(str, op.values()))}\n" for n, op in ((1, one), (2, turn)))
    text += "_pdbx_struct_assembly_gen.assembly_id 1\n"
    text += f"_pdbx_struct_assembly_gen.oper_expression {operations}\n_pdbx_struct_assembly_gen.asym_id_list {chains}\n"
    names = ("id", "label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z")
    text += "loop_\n" + "".join(f"_atom_site.{name}\n" for name in names)
    text += "".join(f"{i} CA GLY {c} 1 {20 * i} 0 0\n" for i, c in enumerate("ABC", 1))
    (tmp_path / "x.cif").write_text(text)
    residues = clean(load_structure(tmp_path / "x.cif", assembly="1"))
    assert sorted(residues.chain_names) == ["A", "A-2", "B", "B-2"]
    assert sorted(residues.pos[:, 0].tolist()) == [-35, -15, 20, 40]

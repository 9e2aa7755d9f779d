"""Chains are selected by the names that tables and messages use, also a second chain of one id."""

from __future__ import annotations

import pytest

from protgraph.errors import SelectionError
from protgraph.structure import ReadOptions, clean, load_structure
from protgraph.structure.io import read_residues

RECORD = "{:6}{:5}  CA  {} {}{:4}    {:8.3f}   0.000   0.000  1.00  0.00           {}\n"


@pytest.fixture
def repeated(tmp_path):
    """Two molecules of three residues with chain id A, 50 Å apart, chain B, and two ions of chain A."""
    lines = [RECORD.format("ATOM", 1, "GLY", "A", i, 3.8 * i, "C") for i in (1, 2, 3)]
    lines += [RECORD.format("ATOM", 1, "ALA", "A", i, 3.8 * i + 50, "C") for i in (1, 2, 3)]
    lines += [RECORD.format("ATOM", 1, "SER", "B", i, 3.8 * i + 100, "C") for i in (1, 2)]
    lines += [RECORD.format("HETATM", 1, " ZN", "A", i, 3.8 * i + 20, "ZN").replace(" CA ", "ZN  ") for i in (9, 10)]
    path = tmp_path / "repeated.pdb"
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    "chains, sequence",
    [("A", "GGG"), ("A-2", "AAA"), (["A-2"], "AAA"), (["A", "A-2"], "GGGAAA"), (["A-2", "B"], "AAASS"), (["B"], "SS")],
)
def test_a_second_chain_has_the_name_of_the_tables(repeated, chains, sequence):
    residues = clean(load_structure(repeated), chains=chains)
    assert residues.sequence == sequence
    assert read_residues(repeated, ReadOptions(chains=chains)).ids == residues.ids


def test_what_is_left_out_is_counted(repeated):
    assert clean(load_structure(repeated), chains="A").report.excluded_chains == {"A-2": 3, "B": 2}
    assert clean(load_structure(repeated), chains="A-2").report.excluded_chains == {"A": 3, "B": 2}


def test_a_second_chain_keeps_the_ligands_of_its_id(repeated):
    ligands = clean(load_structure(repeated), chains="A-2", ligands=True).ligands
    assert ligands is not None and ligands.res_id.tolist() == [9, 10]


@pytest.mark.parametrize(
    "chains, listed", [("A-3", ["'A-3'", "'A-2'"]), ("C-2", ["'C-2'", "'B'"]), (["A-2", "C"], ["'C'", "'A-2'"])]
)
def test_another_name_is_an_error_that_lists_the_chains(repeated, chains, listed):
    with pytest.raises(SelectionError) as e:
        clean(load_structure(repeated), chains=chains)
    assert all(name in str(e.value) for name in listed)

"""Other programs are measured if they are installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from biotite.structure.io import pdb

from benchmarks.peer_programs import peer_programs
from protgraph.structure import load_structure


def test_programs_that_are_not_installed_are_left_out(monkeypatch):
    monkeypatch.setattr("benchmarks.peer_programs.find_spec", lambda name: None)
    assert peer_programs(".pdb", 5) == {}


def test_no_program_reads_binary_cif():
    assert peer_programs(".bcif", 5) == {}


@pytest.mark.skipif(not find_spec("Bio"), reason="Biopython is not installed (the extra 'peers')")
def test_biopython_makes_tensors_of_a_file(structures_dir, tmp_path):
    file = pdb.PDBFile()
    file.set_structure(load_structure(structures_dir / "1crn.bcif").atoms)
    file.write(tmp_path / "1crn.pdb")
    peer_programs(".pdb", 5)["Biopython, then torch as GVP does"](tmp_path / "1crn.pdb")

"""The PDB reader equals gemmi on real files, except for differences with a judgement; the comparison detects errors."""

from __future__ import annotations

import importlib.util
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from biotite.structure import AtomArray
from biotite.structure.io.pdb import PDBFile

from protgraph.structure import load_structure

pytest.importorskip("gemmi", reason="gemmi is not installed")
ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("compare_with_gemmi", ROOT / "tools" / "compare_with_gemmi.py")
compare_with_gemmi = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = compare_with_gemmi  # for its dataclasses
spec.loader.exec_module(compare_with_gemmi)


def _unexplained(paths: list[Path], step: int = 1) -> tuple[int, int, list[str]]:
    """Return the numbers of files and of equal ones, and the differences without a judgement, of each ``step``-th file.

    ``python tools/compare_with_gemmi.py PATH`` compares all of them.
    """
    files, equal, others = 0, 0, []
    for name, content in islice(compare_with_gemmi.pdb_files(paths), 0, None, step):
        differences = compare_with_gemmi.compare(name, content)
        files, equal = files + 1, equal + (not differences)
        others += [f"{d.file} {d.kind} {d.count} {d.example}" for d in differences if not d.judgement]
    return files, equal, others


@pytest.mark.parametrize("entry", ["1crn", "1jk9", "1lcd"])
def test_committed_entries_equal_gemmi(structures_dir, entry):
    path = structures_dir / f"{entry}.bcif"
    atoms = load_structure(path).atoms
    atoms.set_annotation("altloc_id", np.full(len(atoms), ""))
    file = PDBFile()
    file.set_structure(atoms)
    content = "\n".join([*file.lines, "END"])
    assert compare_with_gemmi.compare(entry, content.encode()) == []


@pytest.mark.parametrize("entry", ["1igy", "1l2y", "3o5r", "3wip"])
def test_entries_equal_gemmi(shared_data, entry):
    assert _unexplained([shared_data / "formats" / f"{entry}.pdb"]) == (1, 1, [])


@pytest.mark.slow
def test_unusual_files_equal_gemmi_or_are_explained(shared_data):
    files, equal, others = _unexplained([shared_data / "formats", shared_data / "robustness"])
    assert (files, equal, others) == (69, 54, [])


@pytest.mark.slow
def test_files_of_the_docking_benchmark_equal_gemmi_or_are_explained(shared_data):
    path = shared_data / "benchmark" / "db55_interfaces" / "benchmark5.5.tar.xz"
    files, equal, others = _unexplained([path], step=5)
    assert (files, equal, others) == (217, 212, [])


@pytest.mark.slow
def test_structures_of_mutations_equal_gemmi_or_are_explained(shared_data):
    files, equal, others = _unexplained([shared_data / "benchmark" / "ddg_stability"], step=5)
    assert (files, equal, others) == (152, 152, [])


def _shift(atoms: AtomArray) -> None:
    atoms.coord[5, 0] += 0.001


def _rename(column: str, value: object):
    def change(atoms: AtomArray) -> None:
        atoms.get_annotation(column)[5] = value

    return change


@pytest.mark.parametrize(
    ("change", "kind"),
    [(_shift, "atom"), (_rename("res_id", 99), "number"), (_rename("chain_id", "B"), "chain"),
     (_rename("ins_code", "A"), "insertion code"), (_rename("res_name", "ALA"), "residue name"),
     (_rename("element", "S"), "element"), (_rename("occupancy", 0.5), "occupancy"),
     (_rename("b_factor", 0.0), "B factor"), (_rename("atom_name", "CX"), "atom"), (_rename("altloc_id", "B"), "atom")],
)  # fmt: skip
def test_a_changed_atom_is_found(shared_data, monkeypatch, change, kind):
    path = shared_data / "formats" / "1aki.pdb"
    read = compare_with_gemmi.read_atoms

    def wrong(file):
        parsed = read(file)
        change(parsed.atoms)
        return parsed

    monkeypatch.setattr(compare_with_gemmi, "read_atoms", wrong)
    differences = compare_with_gemmi.compare("1aki", path.read_bytes())
    assert differences and all(d.kind == kind and d.judgement == "" for d in differences)


@pytest.mark.parametrize("wrong", ["order", "missing", "conformation"])
def test_changed_residues_are_found(shared_data, monkeypatch, wrong):
    path = shared_data / "formats" / "3wip.pdb"
    order = compare_with_gemmi.clean

    def changed(structure):
        residues = order(load_structure(path, altloc="B") if wrong == "conformation" else structure)
        if wrong == "missing":
            return residues.select(np.arange(len(residues)) != 7)
        return residues

    monkeypatch.setattr(compare_with_gemmi, "clean", changed)
    if wrong == "order":
        ours = compare_with_gemmi._ours
        monkeypatch.setattr(compare_with_gemmi, "_ours", lambda r: dict(sorted(ours(r).items(), reverse=True)))
    differences = compare_with_gemmi.compare("3wip", path.read_bytes())
    kind = {"order": "order", "missing": "residue", "conformation": "atoms of residue"}[wrong]
    assert differences and all(d.kind == kind and d.judgement == "" for d in differences)

"""mmCIF and BinaryCIF files of every set give the atoms that biotite reads, attribute by attribute."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benchmarks.atom_comparison import biotite_atoms, compare_atoms, differences
from protgraph.structure.io.sniff import read_file

#: Files that biotite 1.6 cannot read: no cell and no model column; indented loops.
ONLY_PROTGRAPH = {
    "cif-odd__1cbs-stripped.cif": "1213 atoms; biotite: AttributeError",
    "cif-odd__phenix.cif": "5041 atoms; biotite: ValueError",
    "no-header__4lup_phenix_output.cif.gz": "3688 atoms; biotite: InvalidFileError",
}


def test_every_difference_is_named(structures_dir):
    atoms = biotite_atoms(read_file(structures_dir / "1crn.bcif"))
    for name in ("chain_id", "atom_name", "element", "altloc_id"):
        changed = atoms.copy()
        changed.get_annotation(name)[[2, 5]] = "Q"
        assert compare_atoms(changed, atoms) == [
            f"{name}: 2 atoms, e.g. Q and {atoms.get_annotation(name)[2]} in biotite"
        ]
    changed = atoms.copy()
    changed.coord[3, 1] = np.nan
    assert [line[:16] for line in compare_atoms(changed, atoms)] == ["coord[1]: 1 atom"]
    assert compare_atoms(changed, changed) == [] and compare_atoms(atoms[1:], atoms) == ["326 atoms, biotite 327"]
    changed = atoms.copy()
    changed.box = None
    assert compare_atoms(changed, atoms) == ["box"]


@pytest.mark.slow
def test_all_files_equal_biotite(shared_data):
    suffixes = (".cif", ".bcif", ".cif.gz", ".bcif.gz")
    files = sorted(path for path in shared_data.rglob("*") if path.name.endswith(suffixes))
    assert len(files) >= 300
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {path.name: lines for path in files if path.stat().st_size and (lines := differences(path))}
    assert found == {name: [line] for name, line in ONLY_PROTGRAPH.items()}

"""Tables of ligand atoms: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.ligands import join_ligand, read_ligand_table, write_complex
from typer.testing import CliRunner

from protgraph.cli.app import app
from protgraph.errors import LabelError, SelectionError
from protgraph.structure import clean, load_structure

CRAMBIN = Path(__file__).resolve().parents[3] / "datasets" / "pdb_core" / "structures" / "1crn.bcif"


def write_table(path: Path, name: str, *, shift: float = 3.0) -> Path:
    position = load_structure(CRAMBIN).atoms.coord[0] + np.float32(shift / 3**0.5)
    lines = ["file,element,x,y,z"]
    lines += [f"{name},{element},{position[0] + i},{position[1]},{position[2]}" for i, element in enumerate("CNOSH")]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_written_complex_has_the_ligand_and_the_same_protein(tmp_path):
    ligand = read_ligand_table(write_table(tmp_path / "l.csv", "1crn"))["1crn"]
    assert ligand.element.tolist() == ["C", "N", "O", "S"]  # without hydrogen
    write_complex(join_ligand(load_structure(CRAMBIN), ligand), tmp_path / "1crn.bcif")
    before = clean(load_structure(CRAMBIN))
    after = clean(load_structure(tmp_path / "1crn.bcif"), ligands=True)
    np.testing.assert_array_equal(after.atom_pos, before.atom_pos)
    np.testing.assert_array_equal(after.ligands.atom_pos, ligand.pos)
    assert after.ligands.ids == ["LIG:1"] and after.ligands.atom_name.tolist() == ["C1", "N1", "O1", "S1"]


def test_second_ligand_is_refused(tmp_path):
    ligand = read_ligand_table(write_table(tmp_path / "l.csv", "1crn"))["1crn"]
    bound = join_ligand(load_structure(CRAMBIN), ligand)
    with pytest.raises(SelectionError):
        join_ligand(bound, ligand)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("file,element,x,y\na,C,0,0\n", "no column z"),
        ("name,element,x,y,z\na,C,0,0,0\n", "no column file"),
        ("file,element,x,y,z\na,QQ,0,0,0\n", "line 2: element"),
        ("file,element,x,y,z\na,C,0,nan,0\n", "line 2: y"),
    ],
)
def test_wrong_table_is_refused(tmp_path, text, match):
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(LabelError, match=match):
        read_ligand_table(tmp_path / "l.csv")


def test_command_refuses_a_row_without_a_file(tmp_path):
    table = write_table(tmp_path / "l.csv", "2abc")
    arguments = ["data", "join-ligands", str(CRAMBIN), "--ligands", str(table), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code and not (tmp_path / "out").exists()


def test_command_writes_complexes(tmp_path):
    table = write_table(tmp_path / "l.csv", "1crn.bcif")
    arguments = ["data", "join-ligands", str(CRAMBIN), "--ligands", str(table), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert len(clean(load_structure(tmp_path / "out" / "1crn.bcif"), ligands=True).ligands) == 1

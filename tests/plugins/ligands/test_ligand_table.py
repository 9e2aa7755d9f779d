"""Tables of ligand atoms: what is read, and what is refused."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
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


def join(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["data", "join-ligands", *map(str, arguments)])


def test_command_joins_the_others_if_one_ligand_is_in_another_frame(tmp_path):
    near, far = write_table(tmp_path / "n.csv", "1crn"), write_table(tmp_path / "f.csv", "far", shift=300.0)
    table = tmp_path / "both.csv"
    table.write_text(near.read_text() + far.read_text().partition("\n")[2])
    shutil.copy(CRAMBIN, tmp_path / "far.bcif")
    result = join(CRAMBIN, tmp_path / "far.bcif", "--ligands", table, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1crn.bcif"]
    (row,) = csv.DictReader((tmp_path / "out.failures.csv").open())
    assert "far.bcif" in row["source"] and "from the nearest atom" in row["message"]


def test_command_refuses_to_write_into_the_folder_of_the_inputs(tmp_path):
    structure = tmp_path / "in" / "1crn.bcif"
    structure.parent.mkdir()
    shutil.copy(CRAMBIN, structure)
    before = structure.read_bytes()
    table = write_table(tmp_path / "l.csv", "1crn")
    result = join(structure.parent, "--ligands", table, "-o", structure.parent, "--overwrite")
    assert result.exit_code and structure.read_bytes() == before


def test_command_refuses_names_of_several_structures_or_of_one_complex(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(CRAMBIN, tmp_path / folder / "1crn.bcif")
    table = write_table(tmp_path / "l.csv", "1crn")
    result = join(tmp_path / "a", tmp_path / "b", "--ligands", table, "-o", tmp_path / "out")
    assert isinstance(result.exception, LabelError) and "is the name of" in str(result.exception)

    with table.open("a") as file:
        file.write("1crn.bcif,C,0,0,0\n")
    result = join(tmp_path / "a", "--ligands", table, "-o", tmp_path / "out")
    assert isinstance(result.exception, LabelError) and "one complex" in str(result.exception)
    assert not (tmp_path / "out").exists()

"""Attribute files and scripts for ChimeraX and PyMOL."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protgraph.structure.io import ResidueValues
from protgraph.visualization import write_chimerax_script, write_defattr, write_pymol_script


@pytest.fixture
def values() -> ResidueValues:
    columns = (np.array(["H", "H", "L"]), np.array([100, 100, -3]), np.array(["", "B", ""]), np.array(["GLY"] * 3))
    return ResidueValues("p_H", *columns, np.array([0.25, 0.5, np.nan]), True, (), ("model gcn",))


def test_attributes_follow_the_published_format(values, tmp_path):
    lines = write_defattr(tmp_path / "a.defattr", {"dir/1abc.cif": values}).read_text().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    rest = lines[len(comments) :]
    assert "# model gcn" in comments
    assert rest[:3] == ["attribute: p_H", "match mode: 1-to-1", "recipient: residues"]
    assert rest[3:] == ["\t/H:100\t0.25", "\t/H:100B\t0.5"]


def test_several_files_are_numbered_models(values, tmp_path):
    other = replace(values, name="p_H", chain=np.array(["", "", ""]))
    lines = write_defattr(tmp_path / "a.defattr", {"a.cif": values, "b.cif": other}).read_text().splitlines()
    assert "# #2 = b.cif" in lines and lines.count("recipient: residues") == 1
    assert [line for line in lines if line.startswith("\t#2")] == ["\t#2:100\t0.25", "\t#2:100B\t0.5"]


@pytest.mark.parametrize("classes, text", [((), "1.0"), (("no", "yes"), "1")])
def test_numbers_have_a_decimal_point_and_classes_do_not(values, tmp_path, classes, text):
    own = replace(values, values=np.ones(3), classes=classes)
    assert write_defattr(tmp_path / "a.defattr", {"a.cif": own}).read_text().endswith(f"\t/L:-3\t{text}\n")


@pytest.mark.parametrize("name, attribute", [("p_α", "p__"), ("Zn", "value_Zn"), ("0", "value_0"), ("a b", "a_b")])
def test_attribute_names_have_allowed_characters(values, tmp_path, name, attribute):
    text = write_defattr(tmp_path / "a.defattr", {"a.cif": replace(values, name=name)}).read_text()
    assert re.search(r"^attribute: (.*)$", text, re.M)[1] == attribute


def test_scripts_name_files_relative_to_themselves(values, tmp_path):
    structure = tmp_path / "out" / "a b.cif"
    script = write_pymol_script(tmp_path / "s" / "a.pml", [structure], {"a.cif": values}).read_text()
    assert "'../out/a b.cif'" in script and "minimum=0, maximum=100" in script
    script = write_chimerax_script(
        tmp_path / "s" / "a.cxc", [structure], {"a.cif": values}, attributes=tmp_path / "s" / "x.defattr"
    ).read_text()
    assert 'open "../out/a b.cif"\nopen "x.defattr"\n' in script and script.endswith("range 0,100\n")


def test_constant_values_have_a_color_range(values, tmp_path):
    constant = replace(values, values=np.full(3, 7.0), is_probability=False)
    script = write_pymol_script(tmp_path / "a.pml", [tmp_path / "a.cif"], {"a.cif": constant}).read_text()
    assert "minimum=7, maximum=8" in script


def test_pymol_runs_the_script(structures_dir, tmp_path):
    pytest.importorskip("pymol", reason="PyMOL is not installed")
    from pymol import cmd

    from protgraph.structure.io import read_residues, write_residue_values

    source = structures_dir / "1ubq.bcif"
    r = read_residues(source)
    own = ResidueValues("p", r.chain, r.res_id, r.ins_code, r.res_name, np.linspace(0, 1, len(r)), True)
    path = write_residue_values(tmp_path / "ubiquitin.cif", source, own).path
    cmd.reinitialize()
    cmd.do(f"@{write_pymol_script(tmp_path / 'a.pml', [Path(path)], {str(source): own})}")
    found = {}
    cmd.iterate("name CA", "found[int(resi)] = b", space={"found": found, "int": int})
    np.testing.assert_allclose(list(found.values()), own.b_factor, atol=1e-3)

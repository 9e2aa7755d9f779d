"""Attribute files for ChimeraX, and scripts of predictions and scenes for PyMOL and ChimeraX."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protgraph.registry.component import component
from protgraph.structure.io import ResidueValues, read_file, read_residues
from protgraph.visualization import (
    Color,
    make_scene,
    write_chimerax_script,
    write_defattr,
    write_pymol_script,
    write_scene_chimerax,
    write_scene_pymol,
)
from protgraph.visualization.palette import NO_VALUE, color_codes


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


def colors_of_pymol(text: str) -> dict[str, str]:
    """Return the color of each residue, "object/chain:number", that the commands of a PyMOL script give it."""
    found = {}
    lines = re.findall(r"^color 0x(\w{6}), (\S+) and polymer.protein and \((.*)\)$", text, re.M)
    for color, name, selected in lines:
        for chain, numbers in re.findall(r"chain '(\w*)' and resi (\S+?)\)", selected):
            found |= {f"{name}/{chain}:{number.replace(chr(92), '')}": f"#{color}" for number in numbers.split("+")}
    return found


def colors_of_chimerax(text: str) -> dict[str, str]:
    """Return the color of each residue, "#1/chain:number" or "/chain:number", of a ChimeraX script."""
    found = {}
    for model, selected, color in re.findall(r"^color (#\d+)?(/\S+) (#\w{6})$", text, re.M):
        for chain, numbers in re.findall(r"/(\w+):([^/]+)", selected):
            found |= {f"{model}/{chain}:{number}": color for number in numbers.split(",")}
    return found


def test_scripts_name_files_relative_to_themselves(values, tmp_path):
    structure = tmp_path / "out" / "a b.cif"
    script = write_pymol_script(tmp_path / "s" / "a.pml", [structure], {"a.cif": values}).read_text()
    assert "'../out/a b.cif'" in script
    script = write_chimerax_script(
        tmp_path / "s" / "a.cxc", [structure], {"a.cif": values}, attributes=tmp_path / "s" / "x.defattr"
    ).read_text()
    assert 'open "../out/a b.cif"\n' in script and script.endswith('open "x.defattr"\n')


def test_scripts_have_the_colors_of_the_page_and_no_color_without_a_value(values, tmp_path):
    """The residue without a prediction stays gray, which is not the color of 0."""
    codes = color_codes(Color("p", values.values, is_probability=True))
    pymol = write_pymol_script(tmp_path / "a.pml", [tmp_path / "a.cif"], {"a.cif": values}).read_text()
    chimerax = write_chimerax_script(tmp_path / "a.cxc", [tmp_path / "a.cif"], {"a.cif": values}).read_text()
    assert colors_of_pymol(pymol) == {"a/H:100": codes[0], "a/H:100B": codes[1]}
    assert colors_of_chimerax(chimerax) == {"/H:100": codes[0], "/H:100B": codes[1]}
    zero = color_codes(Color("p", np.zeros(1), is_probability=True))[0]
    assert zero != NO_VALUE == codes[2]
    assert f"color 0x{NO_VALUE[1:]}, polymer.protein\n" in pymol and f"color protein {NO_VALUE}\n" in chimerax
    assert f"# {NO_VALUE} no value: 1 residues" in pymol and f"# {NO_VALUE} no value: 1 residues" in chimerax


def test_values_of_several_files_share_a_scale_and_stay_apart(values, tmp_path):
    first = replace(values, values=np.array([1.0, 2.0, 3.0]), is_probability=False)
    second = replace(first, values=np.array([3.0, np.nan, 5.0]))
    files, own = [tmp_path / "x" / "a.cif", tmp_path / "y" / "a.cif"], {"x/a.cif": first, "y/a.cif": second}
    pymol = colors_of_pymol(write_pymol_script(tmp_path / "a.pml", files, own).read_text())
    chimerax = colors_of_chimerax(write_chimerax_script(tmp_path / "a.cxc", files, own).read_text())
    assert len(pymol) == len(chimerax) == 5
    assert pymol["a/L:-3"] == pymol["a_2/H:100"] == chimerax["#1/L:-3"] == chimerax["#2/H:100"]
    assert "a_2/H:100B" not in pymol and pymol["a/H:100"] != pymol["a_2/L:-3"]


def test_pymol_runs_the_script(structures_dir, tmp_path):
    pytest.importorskip("pymol", reason="PyMOL is not installed")
    from pymol import cmd

    from protgraph.structure.io import write_residue_values

    source = structures_dir / "1ubq.bcif"
    r = read_residues(source)
    own = ResidueValues("p", r.chain, r.res_id, r.ins_code, r.res_name, np.linspace(0, 1, len(r)), True)
    path = write_residue_values(tmp_path / "ubiquitin.cif", source, own).path
    cmd.reinitialize()
    cmd.do(f"@{write_pymol_script(tmp_path / 'a.pml', [Path(path)], {str(source): own})}")
    found = {}
    cmd.iterate("name CA", "found[int(resi)] = b, color", space={"found": found, "int": int})
    np.testing.assert_allclose([b for b, _ in found.values()], own.b_factor, atol=1e-3)
    codes = color_codes(Color("p", own.values, is_probability=True))
    assert [f"#{color & 0xFFFFFF:06x}" for _, color in found.values()] == codes


@pytest.fixture
def bound(shared_data):
    """Return a file with four chains and its scene with hydrogen bonds."""
    source = shared_data / "formats" / "1igy.cif"
    residues = read_residues(source)
    values = np.linspace(0, 1, len(residues))
    values[5] = np.nan
    return source, make_scene(residues, edges=[component("hydrogen_bond")], color=Color("p", values))


def test_a_chimerax_script_colors_every_residue_and_bonds_every_edge(bound, tmp_path):
    source, scene = bound
    text = write_scene_chimerax(scene, tmp_path / "a.cxc", source=read_file(source)).read_text()
    lines = text.splitlines()
    expected = {f"/{name}": code for name, code in zip(scene.residues.ids, color_codes(scene.color), strict=True)}
    del expected[f"/{scene.residues.ids[5]}"]  # without a value
    assert colors_of_chimerax(text) == expected
    bonds = [re.findall(r"/(\w+:\w+)@CA", line) for line in lines if line.startswith("pbond")]
    ids = scene.residues.ids
    assert bonds == [[ids[a], ids[b]] for a, b in scene.edges[0].pairs.tolist()]


def test_pymol_runs_the_script_of_a_scene(bound, tmp_path):
    pytest.importorskip("pymol", reason="PyMOL is not installed")
    from pymol import cmd

    source, scene = bound
    script = write_scene_pymol(scene, tmp_path / "a.pml", source=read_file(source))
    cmd.reinitialize()
    cmd.do(f"@{script}")
    found = {}
    cmd.iterate("polymer.protein and name CA", "found[f'{chain}:{resi}'] = color", space={"found": found})
    codes = {name: f"#{color & 0xFFFFFF:06x}" for name, color in found.items()}
    assert codes == dict(zip(scene.residues.ids, color_codes(scene.color), strict=True))
    assert "hydrogen_bond" in cmd.get_names()


def test_a_pymol_script_selects_negative_numbers(bound, tmp_path):

    source, scene = bound
    residues = replace(scene.residues, res_id=scene.residues.res_id - 1000)
    text = write_scene_pymol(
        replace(scene, residues=residues), tmp_path / "a.pml", source=read_file(source)
    ).read_text()
    assert re.search(r"chain 'A' and resi \\-\d+", text) and not re.search(r"resi -|\+-", text)

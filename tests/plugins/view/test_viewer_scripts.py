"""Scripts of predictions and scenes for PyMOL and ChimeraX, and states for Mol*."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.view import (
    Color,
    make_scene,
    write_chimerax_script,
    write_molviewspec,
    write_pymol_script,
    write_scene_chimerax,
    write_scene_pymol,
)
from protgraph_plugins.view.palette import NO_VALUE, color_codes

from protgraph.errors import OptionError
from protgraph.registry import component
from protgraph.structure import clean, load_structure
from protgraph.structure.io import ResidueValues, read_file, read_residues


@pytest.fixture
def values() -> ResidueValues:
    columns = (np.array(["H", "H", "L"]), np.array([100, 100, -3]), np.array(["", "B", ""]), np.array(["GLY"] * 3))
    return ResidueValues("p_H", *columns, np.array([0.25, 0.5, np.nan]), True, (), ("model gcn",))


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


# --- MolViewSpec -----------------------------------------------------------------------------------------------------


def nodes_of_kind(tree, kind):
    found = [tree] if tree["kind"] == kind else []
    return found + [n for child in tree.get("children", ()) for n in nodes_of_kind(child, kind)]


def test_the_state_has_file_colors_and_edges(shared_data, tmp_path):
    source = tmp_path / "in" / "1igy.cif"
    source.parent.mkdir()
    shutil.copy(shared_data / "formats" / "1igy.cif", source)
    residues = clean(load_structure(source))
    scene = make_scene(residues, edges=[component("knn", k=2)], color="b_factor")
    state = json.loads(write_molviewspec(scene, tmp_path / "out" / "a.mvsj", source=read_file(source)).read_text())
    root = state["root"]
    assert state["kind"] == "single" and set(state["metadata"]) == {"version", "title", "timestamp"}
    assert nodes_of_kind(root, "download")[0]["params"] == {"url": "../in/1igy.cif"}
    assert nodes_of_kind(root, "parse")[0]["params"] == {"format": "mmcif"}
    colors = nodes_of_kind(root, "color")
    assert len(colors) == len(residues)
    keys = [(s["auth_asym_id"], s["auth_seq_id"], s.get("pdbx_PDB_ins_code", "")) for c in colors
            for s in [c["params"]["selector"]]]  # fmt: skip
    assert keys == list(zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True))
    tubes = nodes_of_kind(root, "primitive")
    assert len(tubes) == len(scene.edges[0].pairs)
    first = scene.edges[0].pairs[0]
    assert tubes[0]["params"]["start"] == pytest.approx(residues.pos[first[0]].tolist(), abs=1e-3)


def test_a_gzipped_file_is_refused(shared_data, tmp_path):
    source = shared_data / "robustness" / "ligand__1oky.pdb.gz"
    with pytest.raises(OptionError, match="gunzip"):
        write_molviewspec(make_scene(clean(load_structure(source))), tmp_path / "a.mvsj", source=read_file(source))

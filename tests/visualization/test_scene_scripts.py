"""Scripts of a scene for PyMOL and ChimeraX."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from protgraph.registry.component import component
from protgraph.structure.io import read_file, read_residues
from protgraph.visualization import Color, make_scene, write_scene_chimerax, write_scene_pymol
from protgraph.visualization.palette import color_codes


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
    lines = write_scene_chimerax(scene, tmp_path / "a.cxc", source=read_file(source)).read_text().splitlines()
    found = {}
    for line in lines:
        if match := re.fullmatch(r"color (/\S+) (#\w{6})", line):
            for chain, numbers in re.findall(r"/(\w+):([^/]+)", match[1]):
                found |= {f"{chain}:{number}": match[2] for number in numbers.split(",")}
    codes = color_codes(scene.color)
    assert found == {name: code for i, (name, code) in enumerate(zip(scene.residues.ids, codes, strict=True)) if i != 5}
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

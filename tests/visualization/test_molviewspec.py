"""The MolViewSpec state has the file, a color per residue and a tube per edge."""

from __future__ import annotations

import json
import shutil

import pytest

from protgraph.errors import OptionError
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from protgraph.structure.io import read_file
from protgraph.visualization.molviewspec import write_molviewspec
from protgraph.visualization.scene import make_scene


def nodes(tree, kind):
    found = [tree] if tree["kind"] == kind else []
    return found + [n for child in tree.get("children", ()) for n in nodes(child, kind)]


def test_the_state_has_file_colors_and_edges(shared_data, tmp_path):
    source = tmp_path / "in" / "1igy.cif"
    source.parent.mkdir()
    shutil.copy(shared_data / "formats" / "1igy.cif", source)
    residues = clean(load_structure(source))
    scene = make_scene(residues, edges=[component("knn", k=2)], color="b_factor")
    state = json.loads(write_molviewspec(scene, tmp_path / "out" / "a.mvsj", source=read_file(source)).read_text())
    root = state["root"]
    assert state["kind"] == "single" and set(state["metadata"]) == {"version", "title", "timestamp"}
    assert nodes(root, "download")[0]["params"] == {"url": "../in/1igy.cif"}
    assert nodes(root, "parse")[0]["params"] == {"format": "mmcif"}
    colors = nodes(root, "color")
    assert len(colors) == len(residues)
    keys = [(s["auth_asym_id"], s["auth_seq_id"], s.get("pdbx_PDB_ins_code", "")) for c in colors
            for s in [c["params"]["selector"]]]  # fmt: skip
    assert keys == list(zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True))
    tubes = nodes(root, "primitive")
    assert len(tubes) == len(scene.edges[0].pairs)
    first = scene.edges[0].pairs[0]
    assert tubes[0]["params"]["start"] == pytest.approx(residues.pos[first[0]].tolist(), abs=1e-3)


def test_a_gzipped_file_is_refused(shared_data, tmp_path):
    source = shared_data / "robustness" / "ligand__1oky.pdb.gz"
    with pytest.raises(OptionError, match="gunzip"):
        write_molviewspec(make_scene(clean(load_structure(source))), tmp_path / "a.mvsj", source=read_file(source))

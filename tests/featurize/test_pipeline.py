"""Every file has an outcome, in one process or several; what is done is not done again."""

from __future__ import annotations

import hashlib
import shutil

import numpy as np
import pytest

from protgraph.errors import UnknownNameError
from protgraph.featurize.pipeline import featurize_files, graphs_of
from protgraph.featurize.plan import build_graph
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure

FEATURES = ["dihedral", component("knn", k=8), "edge_distance"]


@pytest.fixture
def files(structures_dir, tmp_path):
    (tmp_path / "broken.pdb").write_text("HEADER    nothing\n")
    return [structures_dir / "1crn.bcif", tmp_path / "broken.pdb", structures_dir / "1jk9.bcif", tmp_path / "none.cif"]


def outcomes(files, parts, **options):
    found = dict(featurize_files(files, FEATURES, parts, **options))
    return [o for i in range(len(files)) for o in found[i]]


def test_outcomes_say_what_became_of_each_file(files, tmp_path):
    found = outcomes(files, tmp_path / "parts")
    assert [o.file for o in found] == [str(f) for f in files]
    assert [bool(o.error) for o in found] == [False, True, False, True]
    assert "without ATOM" in found[1].error and "No such file" in found[3].error and found[3].sha256 == ""
    assert found[0].sha256 == hashlib.sha256(files[0].read_bytes()).hexdigest()
    whole = [build_graph(clean(load_structure(f)), FEATURES) for f in (files[0], files[2])]
    assert [(o.protein, o.residues, o.edges) for o in (found[0], found[2])] == [
        (g.name, g.num_nodes, g.num_edges) for g in whole
    ]
    assert found[2].loss == whole[1].report and found[2].loss["ligands"] == {"SO4": 2, "ZN": 4}
    for graph, expected in zip(graphs_of(found), whole, strict=True):
        for key in expected.keys():  # noqa: SIM118 -- Data iterates over pairs
            np.testing.assert_array_equal(graph[key], expected[key], err_msg=key)


@pytest.mark.slow
def test_processes_give_what_one_gives(files, tmp_path):
    one, two = outcomes(files, tmp_path / "one"), outcomes(files, tmp_path / "two", jobs=2)
    assert [(o.file, o.edges, o.sha256, o.error) for o in one] == [(o.file, o.edges, o.sha256, o.error) for o in two]
    for a, b in zip(graphs_of(one), graphs_of(two), strict=True):
        assert np.array_equal(a.edge_index, b.edge_index) and np.array_equal(a.dihedral, b.dihedral)


def test_what_is_done_is_taken_up_again_until_the_file_changes(files, tmp_path, monkeypatch):
    copy = tmp_path / "mine.bcif"
    shutil.copy(files[0], copy)
    first = outcomes([copy], tmp_path / "parts")
    monkeypatch.setattr("protgraph.featurize.pipeline._plan", None)  # making another graph would fail
    assert outcomes([copy], tmp_path / "parts") == first
    assert outcomes([copy], tmp_path / "parts", altloc="first")[0].error.startswith("TypeError")
    shutil.copy(files[2], copy)
    assert outcomes([copy], tmp_path / "parts")[0].error.startswith("TypeError")


def test_a_wrong_request_is_an_error_before_any_file(files, tmp_path):
    with pytest.raises(UnknownNameError):
        next(featurize_files(files, ["dihedrals"], tmp_path / "parts"))

"""A model that reads the pose of the chains is found; one that reads single chains passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.similarity import check_pose
from protgraph_plugins.similarity.pose import move_rows

import protgraph as pg
from protgraph.checkpoint import save_checkpoint
from protgraph.cli.app import main
from protgraph.errors import DatasetError, OptionError
from protgraph.structure import clean, load_structure


@pytest.fixture
def complexes(tmp_path, structures_dir):
    """Return a folder of a bound homodimer (1hf9) and a monomer, and a table of splits."""
    folder = tmp_path / "bound"
    folder.mkdir()
    for name in ("1hf9", "1ubq"):
        (folder / f"{name}.bcif").write_bytes((structures_dir / f"{name}.bcif").read_bytes())
    (tmp_path / "s.csv").write_text("file,split\n1hf9,train\n1ubq,test\n")
    return folder


def test_moved_rows_keep_their_shape_and_leave_the_others(structures_dir):
    residues = clean(load_structure(structures_dir / "1hf9.bcif"))
    rows = residues.chain == "B"
    moved = move_rows(residues, rows, np.random.default_rng(0))
    distances = [np.linalg.norm(r.atom_pos[:, None] - r.atom_pos, axis=-1) for r in (residues, moved)]
    own = rows[residues.atom_residue]
    for part in (own, ~own):
        assert np.abs(distances[0] - distances[1])[part][:, part].max() < 1e-3
    assert distances[1][own][:, ~own].min() > 60
    assert np.array_equal(moved.atom_pos[~own], residues.atom_pos[~own])
    ca = residues.atom_name == "CA"
    assert np.allclose(moved.pos, moved.atom_pos[ca], atol=1e-4)
    assert np.allclose(moved.backbone[:, 1], moved.pos, atol=1e-4, equal_nan=True)
    assert np.abs(moved.pos[rows] - residues.pos[rows]).min() > 1


def test_planted_pose_leak_is_found_and_single_chains_pass(trained, complexes, tmp_path):
    options = {"cache": tmp_path / "cache", "device": "cpu"}
    reads_complex = replace(trained.checkpoint(), one_chain=False)
    found = check_pose(reads_complex, complexes, **options)
    assert found.has_leaks
    assert (found.proteins, found.moves) == (1, 1)
    (leak,) = found.leaks
    assert (leak.protein, leak.chain) == ("1hf9", "B")
    assert leak.rows > 0
    assert leak.change == found.change > 1e-3
    clean_model = check_pose(trained.checkpoint(), complexes, **options)
    assert not clean_model.has_leaks
    assert clean_model.change < 1e-4
    whole = check_pose(reads_complex, complexes, unit="protein", **options)
    assert not whole.has_leaks
    assert whole.moves == 2


def test_a_pose_leak_of_pairs_of_residues_is_found(trained, complexes, tmp_path):
    """Contacts between the chains, with edges from one to the other, and with each chain predicted alone."""
    target = pg.Target("interface_pairs", "pair", "multilabel", 1, ("contact",))
    model = pg.build_model("gcn", target, seed=0)
    pairs = replace(trained.checkpoint(), model=model, one_chain=False, threshold=None, training_set=None)
    options = {"cache": tmp_path / "cache", "device": "cpu"}
    found = check_pose(pairs, complexes, **options)
    assert found.has_leaks and found.leaks[0].rows > 100 and found.leaks[0].chain == "B"
    assert not check_pose(replace(pairs, one_chain=True), complexes, **options).has_leaks


def test_command_exits_with_1_for_a_pose_leak_only(trained, complexes, tmp_path, capsys):
    command = ["data", "check", str(complexes), "--labels", str(tmp_path / "s.csv"), "--model"]
    save_checkpoint(tmp_path / "complex.pt", replace(trained.checkpoint(), one_chain=False))
    with pytest.raises(SystemExit) as ended:
        main([*command, str(tmp_path / "complex.pt")])
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    assert "no leak found" in printed
    assert "1hf9:B moved" in printed
    save_checkpoint(tmp_path / "chain.pt", trained.checkpoint())
    main_without_exit([*command, str(tmp_path / "chain.pt")])
    assert "no pose leak found" in capsys.readouterr().out


def test_proteins_of_one_chain_cannot_be_checked(trained, structures_dir, tmp_path):
    with pytest.raises(DatasetError, match="several chains"):
        check_pose(trained.checkpoint(), [structures_dir / "1ubq.bcif"], cache=tmp_path)
    with pytest.raises(OptionError, match=r"'atom'.*'chain', 'protein'"):
        check_pose(trained.checkpoint(), [structures_dir / "1ubq.bcif"], unit="atom")


def main_without_exit(arguments: list[str]) -> None:
    try:
        main(arguments)
    except SystemExit as e:
        assert not e.code

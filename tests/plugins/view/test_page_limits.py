"""What a page leaves out of large scenes: edges, side chains, and the error for too many residues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.view import EdgeSet, Scene, limit_scene, view
from protgraph_plugins.view.page import principal_axes, scene_page

from protgraph.errors import OptionError


@pytest.fixture(scope="module")
def scene(structures_dir: Path) -> Scene:
    return view(structures_dir / "1crn.bcif", edges=["contact"])


@pytest.fixture(autouse=True)
def no_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the program text of the viewer out of the pages."""
    monkeypatch.setattr("protgraph_plugins.view.page.molstar_script", lambda: "")


def with_edges(scene: Scene, width: np.ndarray) -> Scene:
    pairs = np.stack([np.arange(len(width)) % 45, np.full(len(width), 45)], 1)
    return replace(scene, edges=(EdgeSet("many", pairs, width),))


@pytest.mark.slow
def test_of_a_million_edges_the_widest_remain_with_a_note(scene: Scene) -> None:
    width = np.random.default_rng(0).permutation(10**6) / 10**6
    kept = limit_scene(with_edges(scene, width))
    assert sorted(kept.edges[0].width) == sorted(np.sort(width)[-20_000:])
    assert any("20,000 of 1,000,000" in note for note in kept.notes)
    assert len(scene_page(with_edges(scene, width))) < 10**6


def test_equal_edges_remain_at_regular_intervals(scene: Scene) -> None:
    count = 123_457
    pairs = np.stack([np.arange(count), np.arange(count) + 1], 1)
    kept = limit_scene(replace(scene, edges=(EdgeSet("many", pairs, np.ones(count)),))).edges[0].pairs[:, 0]
    gaps = np.diff(kept)
    assert len(kept) == 20_000 and gaps.min() >= 6 and gaps.max() <= 7  # 123,457 / 20,000 = 6.2


def test_side_chains_are_left_out_above_the_number_of_atoms(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit_scene(scene).residues is scene.residues
    monkeypatch.setattr("protgraph_plugins.view.page._MAX_ATOMS", 200)
    kept = limit_scene(scene)
    assert set(kept.residues.atom_name) == {"N", "CA", "C", "O"} and len(kept.residues.atom_name) == 4 * 46
    assert "side chains" in kept.notes[-1] and "side chains" in scene_page(scene)


def test_too_many_residues_are_an_error_with_the_way_out(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protgraph_plugins.view.page._MAX_RESIDUES", 45)
    with pytest.raises(OptionError) as caught:
        scene_page(scene)
    assert not [part for part in ("1crn", "46", "45", "--chain", "--format") if part not in str(caught.value)]


@pytest.mark.parametrize("count", [1, 2, 3, 500])
def test_the_axes_of_a_picture_are_a_rotation_by_falling_extent(count: int) -> None:
    pos = np.random.default_rng(count).normal(size=(count, 3)) * [3.0, 30.0, 10.0]
    axes = principal_axes(np.concatenate([pos, np.full((1, 3), np.nan)]))
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    extent = (pos @ axes.T).std(0)
    assert extent[0] >= extent[1] - 1e-9 and extent[1] >= extent[2] - 1e-9

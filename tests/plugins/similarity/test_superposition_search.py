"""TM-score and GDT against closed forms, a search written as loops, and the program's scores of 1,750 models."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.similarity import superposition_scores, tm_distance
from scipy.spatial.transform import Rotation

from protgraph.errors import OptionError
from protgraph.file_io import unpack_tar
from protgraph.structure import clean, load_structure


@pytest.fixture(scope="module")
def chain() -> np.ndarray:
    """A random walk with steps of 3.8 Å."""
    steps = np.random.default_rng(3).normal(size=(40, 3))
    return np.cumsum(3.8 * steps / np.linalg.norm(steps, axis=1, keepdims=True), axis=0)


def moved(points: np.ndarray, seed: int = 0) -> np.ndarray:
    return Rotation.random(rng=seed).apply(points) + np.array([30, -50, 7])


def search_in_loops(model: np.ndarray, reference: np.ndarray) -> tuple[float, list[int]]:
    """Return the best TM-score and numbers of residues within 0.5, 1, 2, 4 and 8 Å, as the program searches."""
    n, best, within = len(model), 0.0, [0] * 5
    d0 = tm_distance(n)
    cutoff = min(max(d0, 4.5), 8.0)

    def superposed(rows: list[int]) -> np.ndarray:
        a, b = model[rows].mean(0), reference[rows].mean(0)
        rotation = Rotation.align_vectors(reference[rows] - b, model[rows] - a)[0]
        return np.linalg.norm(rotation.apply(model - a) - (reference - b), axis=1)

    def select(distance: np.ndarray, d: float) -> list[int]:
        rows = np.flatnonzero(distance < d).tolist()
        return rows if len(rows) >= 3 else select(distance, d + 0.5)

    size, sizes = n, []
    while size > 4 and len(sizes) < 5:
        sizes.append(size)
        size = n // 2 ** len(sizes)
    for size in [*sizes, 4]:
        for start in range(n - size + 1):
            rows, d = list(range(start, start + size)), cutoff - 1
            for _ in range(21):
                distance = superposed(rows)
                best = max(best, float((1 / (1 + (distance / d0) ** 2)).mean()))
                within = [max(w, int((distance <= x).sum())) for w, x in zip(within, (0.5, 1, 2, 4, 8), strict=True)]
                new = select(distance, d)
                d = cutoff + 1
                if new == rows:
                    break
                rows = new
    return best, within


@pytest.mark.filterwarnings("ignore:Optimal rotation")
@pytest.mark.parametrize(("sigma", "hinge"), [(1.0, False), (3.0, False), (0.5, True)])
def test_the_search_is_that_in_loops(chain, sigma, hinge):
    model = chain + np.random.default_rng(4).normal(scale=sigma, size=chain.shape)
    if hinge:
        model[22:] = moved(model[22:] - model[22]) + model[22]
    expected, within = search_in_loops(moved(model), chain)
    found = superposition_scores(moved(model), chain)
    assert 0.1 < found.tm_score < 1
    assert found.tm_score == pytest.approx(expected, abs=1e-9)
    assert found.gdt_ts == pytest.approx(sum(within[1:]) / 4 / len(chain))
    assert found.gdt_ha == pytest.approx(sum(within[:4]) / 4 / len(chain))


def test_a_rigid_copy_has_score_one_and_its_superposition_is_the_transform(chain):
    found = superposition_scores(moved(chain), chain)
    assert (found.tm_score, found.gdt_ts, found.gdt_ha) == pytest.approx((1, 1, 1), abs=1e-9)
    assert found.rmsd == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(found.superposition.apply(moved(chain)), chain, atol=1e-6)


def test_a_part_that_is_far_away_counts_nothing(chain):
    """25 of 40 residues are exact, the others 1000 Å away: the score is 25/40, of 80 residues 25/80."""
    model = chain.copy()
    model[25:] += [1000, 0, 0]
    far = 15 / (1 + (1000 / tm_distance(40)) ** 2)
    found = superposition_scores(model, chain)
    assert found.tm_score == pytest.approx((25 + far) / 40, abs=1e-5)
    assert found.gdt_ts == found.gdt_ha == 25 / 40
    assert superposition_scores(model, chain, length=80).gdt_ts == 25 / 80


def test_the_mirror_image_is_another_structure(chain):
    assert superposition_scores(chain * [1, 1, -1], chain).tm_score < 0.8


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_smallest_proteins_have_scores(chain, size):
    found = superposition_scores(moved(chain[:size]), chain[:size])
    assert found.tm_score == pytest.approx(1, abs=1e-6)


def test_blocks_and_evenly_spaced_fragments(chain, monkeypatch):
    noised = chain + np.random.default_rng(5).normal(scale=2, size=chain.shape)
    whole = superposition_scores(noised, chain)
    monkeypatch.setattr("protgraph_plugins.similarity.superposition_search._BLOCK", 200)
    assert superposition_scores(noised, chain).tm_score == pytest.approx(whole.tm_score, abs=1e-12)
    monkeypatch.setattr("protgraph_plugins.similarity.superposition_search._MOST_STARTS", 9)
    assert 0 < superposition_scores(noised, chain).tm_score <= whole.tm_score + 1e-12


@pytest.mark.parametrize(("residues", "d0"), [(5, 0.5), (19, 0.5), (100, 3.6520), (250, 5.8520)])
def test_the_distance_of_the_tm_score(residues, d0):
    assert tm_distance(residues) == pytest.approx(d0, abs=1e-3)


def test_a_reference_shorter_than_the_correspondence_is_refused(chain):
    with pytest.raises(OptionError, match="39"):
        superposition_scores(chain, chain, length=39)


def _agreement(shared_data: Path, folder: Path, step: int) -> dict[str, np.ndarray]:
    for name in ("models", "natives"):
        unpack_tar(shared_data / "quality" / f"{name}.tar.xz", folder)
    with gzip.open(shared_data / "quality" / "models.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))[::step]
    names = {"tm_score": "tm", "gdt_ts": "gdt_ts", "gdt_ha": "gdt_ha", "rmsd": "rmsd"}
    found = {name: [] for name in names}
    for row in rows:
        model, native = (
            clean(load_structure(folder / kind / row[name]))
            for kind, name in (("models", "file"), ("natives", "native"))
        )
        _, a, b = np.intersect1d(model.res_id, native.res_id, return_indices=True)
        scores = superposition_scores(model.pos[a], native.pos[b])
        for name, label in names.items():
            found[name].append(getattr(scores, name) - float(row[label]))
    return {name: np.abs(values) for name, values in found.items()}


@pytest.mark.slow
def test_scores_of_models_are_those_of_the_program(shared_data, tmp_path):
    """GDT of long chains is the best of few superpositions, and differs by some residues."""
    difference = _agreement(shared_data, tmp_path, 25)
    assert (difference["tm_score"] <= 1e-3).mean() >= 0.95 and difference["tm_score"].max() < 0.01
    assert (difference["rmsd"] <= 1e-3).mean() >= 0.9
    for name in ("gdt_ts", "gdt_ha"):
        assert np.median(difference[name]) < 1e-3 and difference[name].max() < 0.02

"""Random neighbors: allowed pairs, probabilities and reproducibility."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.neighbors.random_neighbors import random_neighbors


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "10sb.bcif"))


def test_neighbors_are_distinct_and_far_along_the_chain(residues):
    source, target = random_neighbors(residues, 8, separation=6, exponent=3.0, seed=0)
    chain, at = residues.chain_number, residues.seq_pos
    assert ((chain[source] != chain[target]) | (abs(at[source] - at[target]) >= 6)).all()
    assert len(set(zip(source.tolist(), target.tolist(), strict=True))) == len(source) == 8 * len(residues)


def test_all_allowed_neighbors_are_returned_if_fewer_than_k(residues):
    short = residues.select(np.arange(len(residues)) < 10)
    source, target = random_neighbors(short, 50, separation=4, exponent=0.0, seed=1)
    expected = {(j, i) for i in range(10) for j in range(10) if abs(short.seq_pos[i] - short.seq_pos[j]) >= 4}
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == expected


def test_the_sample_depends_on_seed_and_identities_only(residues):
    drawn = [random_neighbors(residues, 8, separation=6, exponent=3.0, seed=s) for s in (0, 0, 1)]
    assert np.array_equal(drawn[0], drawn[1])
    assert len(set(map(tuple, drawn[0].T)) & set(map(tuple, drawn[2].T))) < 0.7 * drawn[0].shape[1]
    moved = replace(residues, pos=residues.pos + 500)
    assert np.array_equal(random_neighbors(moved, 8, separation=6, exponent=0.0, seed=0),
                          random_neighbors(residues, 8, separation=6, exponent=0.0, seed=0))  # fmt: skip


@pytest.mark.slow
def test_the_first_neighbor_has_the_defined_probabilities(residues):
    some = residues.select(np.arange(len(residues)) < 8)
    pos, draws = some.pos.astype(np.float64), 4000
    count = np.zeros(8)
    for seed in range(draws):
        source, target = random_neighbors(some, 1, separation=1, exponent=3.0, seed=seed)
        count[source[target == 3]] += 1
    d = np.linalg.norm(pos - pos[3], axis=1)
    p = np.where(d > 0, np.maximum(d, 1e-9) ** -3.0, 0)
    p /= p.sum()
    assert (abs(count - draws * p) < 4.5 * np.sqrt(draws * p * (1 - p)) + 1e-9).all()

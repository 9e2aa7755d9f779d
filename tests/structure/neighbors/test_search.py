"""Edges against a brute-force search, bit for bit, and biotite's cell list; distant fragments keep shape and gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from biotite.structure import CellList

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.descriptors.ca_trace import p_sea
from protgraph.structure.descriptors.sasa import residue_sasa
from protgraph.structure.neighbors import all_pairs
from protgraph.structure.neighbors import search as neighbors
from protgraph.structure.neighbors.search import compact_fragments

STRUCTURES = 36


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    """Return every seventh of the committed entries: 36 proteins."""
    paths = sorted(structures_dir.glob("*.bcif"))[::7][:STRUCTURES]
    assert len(paths) == STRUCTURES
    return [clean(load_structure(path)) for path in paths]


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dx, dy, dz = (np.subtract.outer(a[:, i].astype(np.float64), b[:, i].astype(np.float64)) for i in range(3))
    return dx * dx + dy * dy + dz * dz


def brute_knn(pos: np.ndarray, k: int) -> np.ndarray:
    d2 = squared_distances(pos, pos)
    edges = []
    for i in range(len(pos)):
        others = sorted((d2[i, j], j) for j in range(len(pos)) if j != i)
        edges += [(j, i) for _, j in others[:k]]
    return np.array(edges, np.int64).reshape(-1, 2).T


def brute_pairs(pos: np.ndarray, is_edge: np.ndarray) -> np.ndarray:
    d2 = squared_distances(pos, pos)
    edges = []
    for i in range(len(pos)):
        edges += [(j, i) for _, j in sorted((d2[i, j], j) for j in np.flatnonzero(is_edge[i]) if j != i)]
    return np.array(edges, np.int64).reshape(-1, 2).T


def brute_contact(residues: Residues, cutoff: float) -> np.ndarray:
    n, touches = len(residues), np.zeros((len(residues), len(residues)), bool)
    for i in range(n):
        mine = residues.atom_residue == i
        near = (squared_distances(residues.atom_pos[mine], residues.atom_pos) <= cutoff**2).any(0)
        touches[i, residues.atom_residue[near]] = True
    return brute_pairs(residues.pos, touches)


def brute_sequence(residues: Residues, k: int) -> np.ndarray:
    same = residues.chain[:, None] == residues.chain
    near = np.abs(residues.seq_pos[:, None] - residues.seq_pos) <= k
    return brute_pairs(residues.pos, same & near)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 16, 30])
def test_knn_equals_brute_force(proteins, k):
    for residues in proteins:
        assert np.array_equal(neighbors.knn(residues.pos, k), brute_knn(residues.pos, k)), residues.name


@pytest.mark.parametrize("offset", [0.0, 9e4])
@pytest.mark.parametrize("n", [neighbors._ALL_PAIRS, neighbors._ALL_PAIRS + 1])
def test_knn_of_a_lattice_breaks_ties_by_index_with_and_without_a_tree(n, offset):
    corner = np.stack(np.unravel_index(np.arange(n), (13, 14, 14)), 1) * 1.5
    pos = (corner + offset).astype(np.float32)
    d2 = squared_distances(pos, pos) + np.diag(np.full(n, np.inf))
    source = np.argsort(d2, axis=1, kind="stable")[:, :16]
    assert np.array_equal(neighbors.knn(pos, 16)[0].reshape(n, 16), source)


@pytest.mark.parametrize("k", [1, 30, 130])
@pytest.mark.parametrize("shape", ["sparse", "dense and sparse", "line", "coincident groups"])
def test_knn_of_trees_equals_brute_force(k, shape):
    rng, n = np.random.default_rng(0), neighbors._ALL_PAIRS + 60
    pos = {
        "sparse": rng.normal(size=(n, 3)) * 100,
        "dense and sparse": np.concatenate([rng.normal(size=(n - 40, 3)) * 1e-4, rng.normal(size=(40, 3)) * 1e4]),
        "line": np.arange(n)[:, None] * np.array([3.8, 0, 0]),
        "coincident groups": np.repeat(rng.normal(size=(n // 180 + 1, 3)) * 50, 180, axis=0)[:n],
    }[shape]
    d2 = squared_distances(pos, pos) + np.diag(np.full(n, np.inf))
    source = np.argsort(d2, axis=1, kind="stable")[:, :k]
    assert np.array_equal(neighbors.knn(pos, k)[0].reshape(n, k), source)


@pytest.mark.slow
def test_knn_of_trees_equals_brute_force_in_crystals_of_a_protein(proteins):
    """Copies of a protein at a distance: many positions have equal distances to their neighbors."""
    residues = proteins[0].pos[:150].astype(np.float64)
    steps = np.stack(np.meshgrid(*[np.arange(3) * 64.0] * 3), -1).reshape(-1, 1, 3)
    pos = (residues - residues[0] + steps).reshape(-1, 3)
    assert len(pos) > neighbors._ALL_PAIRS
    d2 = squared_distances(pos, pos) + np.diag(np.full(len(pos), np.inf))
    source = np.argsort(d2, axis=1, kind="stable")[:, :30]
    assert np.array_equal(neighbors.knn(pos, 30)[0].reshape(len(pos), 30), source)


@pytest.mark.parametrize("candidates", [17, 400])
def test_candidates_at_once_do_not_change_the_neighbors(candidates, monkeypatch):
    monkeypatch.setattr(neighbors, "_CANDIDATES", candidates)
    pos = np.random.default_rng(0).integers(0, 12, size=(1100, 3)).astype(np.float64)
    d2 = squared_distances(pos, pos) + np.diag(np.full(len(pos), np.inf))
    source = np.argsort(d2, axis=1, kind="stable")[:, :16]
    assert np.array_equal(neighbors.knn(pos, 16)[0].reshape(-1, 16), source)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_trees_refuse_positions_that_are_not_finite(value):
    pos = np.zeros((1200, 3))
    pos[700, 1] = value
    with pytest.raises(ValueError, match="finite"):
        neighbors.knn(pos, 16)


@pytest.mark.parametrize("n", [2, 3, 18, 19, 20, 40])
def test_knn_of_coincident_and_nearly_coincident_positions_equals_brute_force(n):
    pos = np.zeros((n, 3))
    pos[n // 2 :] = 1e-9 * np.random.default_rng(n).integers(0, 3, (n - n // 2, 3))
    assert np.array_equal(neighbors.knn(pos, 16), brute_knn(pos, 16))


def test_knn_is_exact_where_float32_distances_are_in_another_order():
    """Twenty positions at 1000 Å from the others have distances that differ by less than float32 resolves."""
    rng = np.random.default_rng(0)
    pos = np.concatenate([rng.normal(size=(300, 3)) * 10, 1000 + 1e-4 * rng.normal(size=(20, 3))])
    near = all_pairs._candidates(pos.T, pos.T, np.arange(len(pos)), 12)[0]
    d2 = squared_distances(pos, pos) + np.diag(np.full(len(pos), np.inf))
    assert (np.sort(near) != np.sort(np.argsort(d2, axis=1, kind="stable")[:, :12])).any(axis=1).sum() > 10
    assert np.array_equal(neighbors.knn(pos, 10), brute_knn(pos, 10))


@pytest.mark.parametrize(("size", "offset"), [(1.0, 0.0), (30.0, 0.0), (30.0, 9e4), (500.0, 0.0)])
def test_bound_of_the_other_distances_is_below_all_of_them(size, offset):
    pos = np.random.default_rng(1).normal(size=(700, 3)) * size + offset
    near, beyond = all_pairs._candidates(pos.T, pos.T, np.arange(len(pos)), 32)
    d2 = squared_distances(pos, pos) + np.diag(np.full(len(pos), np.inf))
    np.put_along_axis(d2, near, np.inf, axis=1)
    assert (d2.min(axis=1) > beyond).all()
    assert (beyond > 0.9 * d2.min(axis=1)).mean() > 0.99  # so that few rows are computed again


@pytest.mark.parametrize("n", [512, 513, 769, 1025])
@pytest.mark.parametrize("width", [3, 32, 100, 128, 129])
def test_partition_of_parts_equals_a_sort_of_rows(n, width):
    parts = all_pairs._num_groups(n, width)
    columns = -(-n // parts) * parts
    key = np.random.default_rng(n).permutation(5 * columns).reshape(5, columns).astype(np.int32)
    expected = np.sort(key, axis=1)[:, :width]
    found = all_pairs._smallest(key, width, parts)
    assert (parts > 1) == (n > 512 and width < 129)
    assert np.array_equal(found[:, -1], expected[:, -1])
    assert np.array_equal(np.sort(found, axis=1), expected)


@pytest.mark.parametrize("n", [60, 601])
def test_knn_equals_brute_force_where_float32_squares_overflow(n):
    pos = np.random.default_rng(0).normal(size=(n, 3)) * 1e22
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.array_equal(neighbors.knn(pos, 16), brute_knn(pos, 16))


def test_knn_with_a_distant_position_equals_brute_force(proteins):
    pos = proteins[0].pos[:60].copy()
    pos[7] = 9e4
    assert np.array_equal(neighbors.knn(pos, 16), brute_knn(pos, 16))


@pytest.mark.parametrize("cutoff", [6.0, 10.0])
def test_radius_equals_brute_force(proteins, cutoff):
    for residues in proteins:
        expected = brute_pairs(residues.pos, squared_distances(residues.pos, residues.pos) <= cutoff**2)
        assert np.array_equal(neighbors.radius(residues.pos, cutoff), expected), residues.name


def test_pairs_between_two_sets_equal_brute_force(proteins):
    for residues in proteins[:8]:
        some, others = residues.pos[::3], residues.atom_pos
        expected = np.argwhere(squared_distances(some, others) <= 6.0**2)
        pairs = neighbors.close_pairs_between(some, others, 6.0)
        assert sorted(pairs.T.tolist()) == expected.tolist(), residues.name
    assert neighbors.close_pairs_between(np.zeros((0, 3)), np.zeros((2, 3)), 1.0).shape == (2, 0)


@pytest.mark.slow
def test_contact_equals_brute_force(proteins):
    for residues in proteins:
        result = neighbors.contact(residues.pos, residues.atom_pos, residues.atom_residue, 4.5)
        assert np.array_equal(result, brute_contact(residues, 4.5)), residues.name


def test_contact_equals_biotites_cell_list(proteins):
    for residues in proteins:
        atoms, owner, n = residues.atom_pos, residues.atom_residue, len(residues)
        near = CellList(atoms, cell_size=4.5).get_atoms(atoms, radius=4.5)  # (A, M), -1 where none
        first, column = np.nonzero(near >= 0)
        theirs = np.zeros((n, n), bool)
        theirs[owner[first], owner[near[first, column]]] = True
        np.fill_diagonal(theirs, False)
        source, target = neighbors.contact(residues.pos, atoms, owner, 4.5)
        ours = np.zeros((n, n), bool)
        ours[source, target] = True
        # biotite computes in float32: it may differ where the nearest atoms are 4.5 Å apart to the last bits
        for i, j in np.argwhere(ours != theirs):
            nearest = np.sqrt(squared_distances(atoms[owner == i], atoms[owner == j]).min())
            assert abs(nearest - 4.5) < 1e-5, (residues.name, i, j, nearest)


@pytest.mark.parametrize("k", [1, 3])
def test_sequence_equals_brute_force(proteins, k):
    for residues in proteins:
        result = neighbors.sequence(residues.pos, residues.chain_number, residues.seq_pos, k)
        assert np.array_equal(result, brute_sequence(residues, k)), residues.name


def test_sequence_counts_unresolved_residues_and_chains():
    pos, chain, seq_pos = np.zeros((5, 3)), np.array([0, 0, 0, 1, 1]), np.array([0, 1, 4, 0, 1])
    result = neighbors.sequence(pos, chain, seq_pos, 2)
    assert result.T.tolist() == [[1, 0], [0, 1], [4, 3], [3, 4]]
    assert neighbors.sequence(pos, chain, seq_pos, 3).T.tolist() == [[1, 0], [0, 1], [2, 1], [1, 2], [4, 3], [3, 4]]


def test_sequence_accepts_interleaved_chains():
    result = neighbors.sequence(np.zeros((4, 3)), np.array([0, 1, 0, 1]), np.array([1, 0, 0, 1]), 1)
    assert result.T.tolist() == [[2, 0], [3, 1], [0, 2], [1, 3]]


@pytest.mark.parametrize("k", [1, 5, 6, 7, 18, 25, 26, 27, 200])
def test_knn_ties_go_to_the_lower_indices(k):
    lattice = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), -1).reshape(-1, 3)  # nearly every distance is a tie
    shuffled = lattice[np.random.default_rng(0).permutation(len(lattice))]
    assert np.array_equal(neighbors.knn(shuffled, k), brute_knn(shuffled, k))


@pytest.mark.parametrize("n", [2, 5, 60, 3000])
def test_knn_of_coincident_nodes_has_the_lowest_indices(n):
    source, target = neighbors.knn(np.ones((n, 3)), 3)
    k = min(3, n - 1)
    assert source.reshape(n, k)[-1].tolist() == list(range(k))
    assert (source != target).all()
    assert (np.diff(source.reshape(n, k)) > 0).all()


def test_radius_is_inclusive_and_joins_coincident_nodes():
    pos = np.array([[0.0, 0, 0], [0, 0, 0], [3, 4, 0], [3, 4, 1e-3]])
    assert neighbors.radius(pos, 5.0).T.tolist() == [[1, 0], [2, 0], [0, 1], [2, 1], [3, 2], [0, 2], [1, 2], [2, 3]]


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_nodes_have_no_edges(n):
    pos, number = np.zeros((n, 3)), np.zeros(n, np.int64)
    for result in (
        neighbors.knn(pos, 4),
        neighbors.radius(pos, 4.0),
        neighbors.contact(pos, pos, number, 4.0),
        neighbors.sequence(pos, number, number, 4),
    ):
        assert result.shape == (2, 0)
        assert result.dtype == np.int64


def all_kinds(residues: Residues, shift: float = 0.0) -> dict[str, np.ndarray]:
    pos, atoms = residues.pos.astype(np.float64) + shift, residues.atom_pos.astype(np.float64) + shift
    return {
        "knn": neighbors.knn(pos, 16),
        "radius": neighbors.radius(pos, 10.0),
        "contact": neighbors.contact(pos, atoms, residues.atom_residue, 4.5),
        "sequence": neighbors.sequence(pos, residues.chain_number, residues.seq_pos, 2),
    }


def test_a_shift_of_1000_angstrom_changes_no_edge(proteins):
    for residues in proteins:
        here, there = all_kinds(residues), all_kinds(residues, 1000.0)
        for kind in here:
            assert np.array_equal(here[kind], there[kind]), (residues.name, kind)


def test_edges_are_simple_sorted_and_symmetric(proteins):
    for residues in proteins:
        for kind, (source, target) in all_kinds(residues).items():
            d2 = ((residues.pos.astype(np.float64)[source] - residues.pos[target]) ** 2).sum(1)
            edges = set(zip(source.tolist(), target.tolist(), strict=True))
            assert len(edges) == len(source), kind
            assert (source != target).all(), kind
            assert np.array_equal(np.lexsort((d2, target)), np.arange(len(source))), kind
            if kind != "knn":
                assert edges == {(j, i) for i, j in edges}, kind


def test_edges_follow_a_permutation_of_the_nodes(proteins):
    rng = np.random.default_rng(1)
    for residues in proteins[:8]:
        order = rng.permutation(len(residues))
        for find in (lambda pos: neighbors.knn(pos, 8), lambda pos: neighbors.radius(pos, 8.0)):
            before = {(int(j), int(i)) for j, i in find(residues.pos).T}
            after = {(int(order[j]), int(order[i])) for j, i in find(residues.pos[order]).T}
            assert before == after, residues.name


def test_inputs_are_not_changed(proteins):
    residues = proteins[0]
    pos, atoms = residues.pos.copy(), residues.atom_pos.copy()
    all_kinds(residues)
    assert np.array_equal(pos, residues.pos)
    assert np.array_equal(atoms, residues.atom_pos)


# --- distant fragments -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crambin(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1crn.bcif"))


def moved_residue(residues: Residues, row: int, shift: list[float]) -> Residues:
    """Return the protein with one residue at another place."""
    own = np.arange(len(residues)) == row
    moved = {"pos": residues.pos + own[:, None] * shift, "backbone": residues.backbone + own[:, None, None] * shift}
    return replace(residues, **moved, atom_pos=residues.atom_pos + own[residues.atom_residue][:, None] * shift)


def test_shapes_and_gaps_are_kept():
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0], [4000, -9000, 70], [-80_000, 5, 90_000]])
    pos = (centers[:, None] + rng.uniform(0, 6, (3, 40, 3))).reshape(-1, 3)
    compact = compact_fragments(pos, gap=8.0).reshape(3, 40, 3)
    for before, after in zip(pos.reshape(3, 40, 3), compact, strict=True):
        assert np.allclose(after - after[0], before - before[0], atol=1e-9)
    apart = np.linalg.norm(compact[:, None, :, None] - compact[None, :, None], axis=-1)
    assert all(apart[a, b].min() >= 8 for a in range(3) for b in range(3) if a != b)
    assert compact.max() < 3 * 14


def test_a_distant_atom_does_not_exhaust_memory(crambin):
    end = len(crambin) - 1
    odd = moved_residue(crambin, end, [9e4, -9e4, 9e4])
    rest = crambin.select(np.arange(len(crambin)) < end)
    error = residue_sasa(odd)[:end] - residue_sasa(rest)
    assert np.abs(error).max() < 4 and np.sqrt((error**2).mean()) < 1  # another orientation of equal accuracy
    assert (p_sea(odd)[:end] == p_sea(rest)).all()


def test_one_point_moves_to_the_origin_and_no_points_stay_none():
    assert compact_fragments(np.array([[7.0, 8, 9]]), 5.0).tolist() == [[0, 0, 0]]
    assert compact_fragments(np.zeros((0, 3)), 5.0).shape == (0, 3)

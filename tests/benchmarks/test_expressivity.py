"""Expressivity reports agree with theory, and the pairs of point clouds have the properties that they state."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks import point_clouds as cloud
from benchmarks.expressivity import distinguishes, measure_expressivity, network_of
from protgraph.errors import OptionError, UnknownNameError, WiringError

INVARIANT = ("gat", "mpnn", "schnet", "edge_network", "gearnet", "gcn")  # pass on features and distances alone
EQUIVARIANT = ("egnn", "gvp", "painn", "tfn", "se3_transformer", "mace")
UP_TO_2 = {"lmax": 2, "irreps": "16x0e+8x1o+8x2e"}
UP_TO_3 = {"lmax": 3, "irreps": "16x0e+8x1o+8x2e+8x3o"}


def angles(around):
    rays = around / np.linalg.norm(around, axis=1, keepdims=True)
    return sorted(round(float(a @ b), 9) for a, b in combinations(rays, 2))


def distances(points):
    return sorted(round(float(np.linalg.norm(a - b)), 9) for a, b in combinations(points, 2))


# --- the clouds ---


def test_two_body_twins_have_equal_distances_from_the_center_and_unequal_angles():
    a, b = (c.pos[1:] for c in cloud.two_body())
    assert np.allclose(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    assert angles(a) != angles(b)


def test_three_body_twins_have_equal_distances_and_angles_and_are_not_congruent():
    a, b = (c.pos[1:] for c in cloud.three_body())
    assert np.allclose(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    assert angles(a) == angles(b)
    triples = [
        sorted(tuple(distances(c[list(t)])) for t in combinations(range(4), 3)) for c in (a, b)
    ]  # congruent clouds have the same triangles
    assert triples[0] != triples[1]


def test_mirror_images_have_all_distances_in_common_and_no_rotation_between_them():
    a, b = (c.pos for c in cloud.mirror_images())
    assert np.allclose([np.linalg.norm(a[i] - a[j]) for i, j in combinations(range(5), 2)],
                       [np.linalg.norm(b[i] - b[j]) for i, j in combinations(range(5), 2)])  # fmt: skip
    assert np.linalg.det(a[1:4] @ np.linalg.inv(b[1:4])) == pytest.approx(-1)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_k_chains_differ_only_from_end_to_end(k):
    a, b = cloud.k_chain(k)
    assert np.array_equal(a.joined, b.joined) and len(a.pos) == k + 2
    steps = np.linalg.norm(np.diff(a.pos, axis=0), axis=1)
    assert np.allclose(steps, 5) and np.allclose(np.linalg.norm(np.diff(b.pos, axis=0), axis=1), 5)
    for part in (slice(1, None), slice(None, -1)):  # without one end they are congruent
        assert distances(a.pos[part]) == distances(b.pos[part])
    assert distances(a.pos) != distances(b.pos)


@pytest.mark.parametrize("order", [2, 3, 5])
def test_a_star_equals_itself_rotated_by_its_angle_but_not_by_half_of_it(order):
    a, b = (c.pos[1:] for c in cloud.fold(order))
    assert distances(a) == distances(b)
    assert not any(np.allclose(a, np.roll(b, shift, 0), atol=1e-6) for shift in range(order))


def test_edges_are_sorted_by_target_and_run_both_ways():
    source, target = cloud.k_chain(3)[0].edge_index
    assert (np.diff(target) >= 0).all()
    assert {(int(i), int(j)) for i, j in zip(source, target, strict=True)} == {
        (i, j) for i in range(5) for j in range(5) if abs(i - j) == 1
    }


# --- the reports ---


@pytest.mark.slow
@pytest.mark.parametrize("name", INVARIANT)
def test_layers_on_distances_never_distinguish_chains_stars_or_mirror_images(name):
    report = measure_expressivity(name)
    assert not (report.two_body or report.three_body or report.mirror or any(report.folds.values()))
    assert set(report.chains.values()) == {None}


@pytest.mark.parametrize("name", EQUIVARIANT)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_equivariant_layers_distinguish_k_chains_once_both_ends_are_in_reach(name, k):
    network, enough = network_of(name, {}), k // 2 + 1
    assert not distinguishes(network, cloud.k_chain(k), depth=enough - 1)
    later = k // 2 if name == "egnn" else 0  # its next layer reads the moved points
    assert distinguishes(network, cloud.k_chain(k), depth=enough + later)


@pytest.mark.parametrize(("options", "lmax"), [({}, 1), (UP_TO_2, 2), (UP_TO_3, 3)])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_degrees_below_the_order_of_a_star_do_not_detect_its_rotation(options, lmax, order):
    assert distinguishes(network_of("tfn", options), cloud.fold(order), rotated=True) == (lmax >= order)


@pytest.mark.parametrize("name", ["gvp", "painn", "tfn", "se3_transformer", "mace"])
def test_vectors_distinguish_angles_in_one_layer(name):
    assert distinguishes(network_of(name, {}), cloud.two_body())


def test_egnn_distinguishes_angles_in_its_second_layer():
    network = network_of("egnn", {})
    assert not distinguishes(network, cloud.two_body(), depth=1) and distinguishes(network, cloud.two_body(), depth=2)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("gvp", {}, False),
        ("tfn", {}, False),
        ("tfn", UP_TO_3, False),  # a sum over neighbors and its norm: pairs of them, whatever the degree
        ("mace", {"correlation": 1}, False),
        ("mace", {"correlation": 3, "lmax": 1}, False),  # three vectors make no even scalar that two do not
        ("mace", {"correlation": 3, "lmax": 2}, True),
    ],
)
def test_only_products_of_three_neighbors_distinguish_equal_pair_sums(name, options, expected):
    assert distinguishes(network_of(name, options), cloud.three_body()) == expected


@pytest.mark.slow
def test_only_a_layer_without_parity_distinguishes_mirror_images():
    assert not measure_expressivity("se3_transformer").mirror and not measure_expressivity("tfn").mirror
    assert measure_expressivity("se3_transformer", {"parity": False}).mirror


@pytest.mark.slow
def test_a_report_is_the_same_every_time():
    assert measure_expressivity("tfn").cells() == measure_expressivity("tfn").cells()


def test_frames_distinguish_all_pairs_in_one_layer():
    network = network_of("ipa", {})
    assert network.has_frames
    assert distinguishes(network, cloud.two_body()) and distinguishes(network, cloud.three_body())
    assert distinguishes(network, cloud.mirror_images())
    assert all(distinguishes(network, cloud.k_chain(k)) for k in (2, 4))
    assert distinguishes(network, cloud.fold(3), rotated=True)


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("linear", WiringError, "linear"),
        ("tfnn", UnknownNameError, "tfn"),
    ],
)
def test_layers_without_a_report_raise_typed_errors(name, error, text):
    with pytest.raises(error, match=text):
        measure_expressivity(name)


def test_unknown_options_are_errors():
    with pytest.raises(OptionError, match="lamx"):
        measure_expressivity("tfn", {"lamx": 2})
    with pytest.raises(OptionError, match="correlation"):
        measure_expressivity("mace", {"heads": 2})

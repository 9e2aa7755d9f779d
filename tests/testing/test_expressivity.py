"""Cards of layers say what theory says; the pairs of clouds are what they claim to be."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from protgraph.errors import OptionError, UnknownNameError, WiringError
from protgraph.testing import point_clouds as cloud
from protgraph.testing.expressivity import block_of, expressivity_card, separates

INVARIANT = ("gat", "mpnn", "schnet", "edge_network", "gearnet", "gcn")  # pass on features and distances alone
EQUIVARIANT = ("egnn", "gvp", "tfn", "se3_transformer", "mace")
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
def test_a_star_looks_the_same_turned_by_its_angle_and_not_by_half_of_it(order):
    a, b = (c.pos[1:] for c in cloud.fold(order))
    assert distances(a) == distances(b)
    assert not any(np.allclose(a, np.roll(b, shift, 0), atol=1e-6) for shift in range(order))


def test_edges_are_sorted_by_target_and_run_both_ways():
    source, target = cloud.k_chain(3)[0].edge_index
    assert (np.diff(target) >= 0).all()
    assert {(int(i), int(j)) for i, j in zip(source, target, strict=True)} == {
        (i, j) for i in range(5) for j in range(5) if abs(i - j) == 1
    }


# --- the cards ---


@pytest.mark.parametrize("name", INVARIANT)
def test_layers_that_pass_on_distances_never_tell_chains_stars_or_mirror_images_apart(name):
    made = expressivity_card(name)
    assert not (made.two_body or made.three_body or made.mirror or any(made.folds.values()))
    assert set(made.chains.values()) == {None}


@pytest.mark.parametrize("name", EQUIVARIANT)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_equivariant_layers_tell_k_chains_apart_but_not_before_both_ends_are_known(name, k):
    block, enough = block_of(name, {}), k // 2 + 1
    assert not separates(block, cloud.k_chain(k), depth=enough - 1)
    later = k // 2 if name == "egnn" else 0  # where points have moved is what the next layer sees
    assert separates(block, cloud.k_chain(k), depth=enough + later)


@pytest.mark.parametrize(("options", "lmax"), [({}, 1), (UP_TO_2, 2), (UP_TO_3, 3)])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_degrees_below_the_order_of_a_star_do_not_see_how_it_is_turned(options, lmax, order):
    assert separates(block_of("tfn", options), cloud.fold(order), turned=True) == (lmax >= order)


@pytest.mark.parametrize("name", ["gvp", "tfn", "se3_transformer", "mace"])
def test_vectors_see_angles_in_one_layer(name):
    assert separates(block_of(name, {}), cloud.two_body())


def test_egnn_sees_angles_in_its_second_layer():
    block = block_of("egnn", {})
    assert not separates(block, cloud.two_body(), depth=1) and separates(block, cloud.two_body(), depth=2)


@pytest.mark.parametrize(
    ("name", "options", "sees"),
    [
        ("gvp", {}, False),
        ("tfn", {}, False),
        ("tfn", UP_TO_3, False),  # a sum over neighbors and its norm: pairs of them, whatever the degree
        ("mace", {"correlation": 1}, False),
        ("mace", {"correlation": 3, "lmax": 1}, False),  # three vectors make no even scalar that two do not
        ("mace", {"correlation": 3, "lmax": 2}, True),
    ],
)
def test_what_sums_over_pairs_of_neighbors_have_in_common_only_products_of_three_tell_apart(name, options, sees):
    assert separates(block_of(name, options), cloud.three_body()) == sees


def test_only_a_layer_without_parity_tells_left_from_right():
    assert not expressivity_card("se3_transformer").mirror and not expressivity_card("tfn").mirror
    assert expressivity_card("se3_transformer", {"parity": False}).mirror


def test_a_card_is_the_same_every_time():
    assert expressivity_card("tfn").lines() == expressivity_card("tfn").lines()


def test_points_with_frames_see_all_others_in_them_at_once():
    block = block_of("ipa", {})
    assert block.framed
    assert separates(block, cloud.two_body()) and separates(block, cloud.three_body())
    assert separates(block, cloud.mirror_images())
    assert all(separates(block, cloud.k_chain(k)) for k in (2, 4))
    assert separates(block, cloud.fold(3), turned=True)


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("linear", WiringError, "passes no message"),
        ("tfnn", UnknownNameError, "tfn"),
    ],
)
def test_layers_without_a_card_say_why(name, error, says):
    with pytest.raises(error, match=says):
        expressivity_card(name)


def test_odd_options_are_refused():
    with pytest.raises(OptionError, match="lamx"):
        expressivity_card("tfn", {"lamx": 2})
    with pytest.raises(OptionError, match="correlation"):
        expressivity_card("mace", {"heads": 2})

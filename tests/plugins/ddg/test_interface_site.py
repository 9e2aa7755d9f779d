"""Surroundings in the other partner: counted directly, independent of the own type, zero without another partner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.ddg.interface_context import InterfaceContext
from protgraph_plugins.ddg.interface_site import InterfaceSite, _accessible, _sphere
from protgraph_plugins.ddg.site_packing import SitePacking
from protgraph_plugins.ddg.type_features import TypeFeatures
from protgraph_plugins.ddg.type_scores import ProteinMPNNBinding, ProteinMPNNSite

from protgraph.data.graph.fields import field
from protgraph.structure import clean, load_structure
from protgraph.structure.descriptors import virtual_cb
from protgraph.structure.vectors import unit

PLACE = 56 + 2  # first column after surroundings and distances


@pytest.fixture(scope="module")
def complex_(structures_dir):
    residues = clean(load_structure(structures_dir / "1jk9.bcif"))
    first, second = residues.chain_names[:2]
    return replace(residues.chains([first, second]), partners=((first,), (second,)))


@pytest.fixture(scope="module")
def interface_rows(complex_):
    """Rows of both partners with a CA within 7 Å of the other."""
    near = np.linalg.norm(complex_.pos[:, None] - complex_.pos, axis=-1) < 7
    rows = np.flatnonzero((near & (complex_.side[:, None] != complex_.side)).any(1))
    assert len(set(complex_.side[rows])) == 2
    return rows[[0, len(rows) // 2, -1]]


def test_sides_are_partners_or_chains(complex_):
    first, second = complex_.chain_names
    expected = (complex_.chain == second).astype(int)
    assert (complex_.side == expected).all()
    assert (replace(complex_, partners=None).side == expected).all()
    assert (replace(complex_, partners=((second,), (first,))).side == 1 - expected).all()
    assert (replace(complex_, partners=((second,), ("Z",))).side == expected - 1).all()
    assert not replace(complex_, partners=((first, second), ("Z",))).side.any()


@pytest.mark.slow
def test_atoms_of_the_other_partner_are_counted(complex_, interface_rows):
    found = InterfaceSite()(complex_)["interface_site"]
    cb = virtual_cb(complex_.backbone)
    for row in interface_rows:
        other = (complex_.side != complex_.side[row])[complex_.atom_residue]
        distance = np.linalg.norm(complex_.atom_pos - cb[row], axis=1)[other]
        for column, radius in ((0, 4), (1, 5), (4, 6), (5, 8), (8, 10)):
            assert found[row, column] == pytest.approx((distance < radius).sum() / (radius**3 / 10), abs=1e-5)
        assert found[row, 56] == pytest.approx(min(distance.min(), 20) / 10, abs=1e-5)
        point = cb[row] + 2.8 * unit(cb[row] - complex_.backbone[row, 1])
        of_point = np.linalg.norm(complex_.atom_pos - point, axis=1)[other]
        for column, element in ((0, "N"), (2, "O")):
            count = (of_point[complex_.atom_element[other] == element] < 6.5).sum() / 3
            assert found[row, PLACE + column + 1] == pytest.approx(count, abs=1e-5)
    assert (found[interface_rows, :56] != 0).any(1).all()


@pytest.mark.slow
def test_a_residue_does_not_depend_on_its_own_type_and_side_chain(complex_, interface_rows):
    whole, only = InterfaceSite()(complex_), InterfaceSite(only_hidden=True)
    for row in interface_rows:
        hidden = complex_.without_types(np.arange(len(complex_)) == row)
        alone = only(hidden)["interface_site"]
        np.testing.assert_allclose(alone[row], whole["interface_site"][row], atol=1e-6)
        assert not np.delete(alone, row, 0).any()
        other = replace(complex_, aatype=np.where(np.arange(len(complex_)) == row, 17, complex_.aatype))
        np.testing.assert_allclose(
            only(other.without_types(np.arange(len(other)) == row))["interface_size"], only(hidden)["interface_size"]
        )


def test_no_other_partner_and_no_partner_give_zero(complex_, interface_rows):
    first, second = complex_.chain_names
    for residues in (complex_.chains(first), replace(complex_, partners=((first, second),))):
        assert not any(values.any() for values in InterfaceSite()(residues).values())
    third = replace(complex_, chain=np.where(complex_.side == 1, second, "Z"), partners=((second,), ("Y",)))
    assert not InterfaceSite()(third)["interface_site"].any()


def test_burial_is_the_area_of_a_spherical_cap():
    """One atom at distance d from a sphere: it covers the cap beyond the plane of intersection."""
    reach, radius, d = 1.9 + 1.4, 1.7 + 1.4, 3.5
    covered = (1 - (d**2 + reach**2 - radius**2) / (2 * d * reach)) / 2

    class Atom:
        atom_pos, atom_residue = np.array([[d, 0, 0]]), np.array([1])
        atom_element = np.array(["C"])

    places = np.zeros((1, 3, 3))
    part = _accessible(Atom, np.array([0]), places, np.eye(3)[None])
    assert part[0, 0] == pytest.approx(1 - covered, abs=0.02)
    assert _accessible(Atom, np.array([1]), places, np.eye(3)[None]).tolist() == [[1, 1, 1]]
    np.testing.assert_allclose(np.linalg.norm(_sphere(96), axis=1), 1)
    np.testing.assert_allclose(_sphere(96).mean(0), 0, atol=0.02)


@pytest.mark.slow
def test_burial_on_binding_is_between_zero_and_the_accessible_part(complex_, interface_rows):
    values = InterfaceSite()(complex_)["interface_site"][:, -6:]
    free, lost = values[:, :3], values[:, 3:]
    assert (lost >= -1e-6).all() and (lost <= free + 1e-6).all() and lost[interface_rows].max() > 0.2
    assert (lost == 0).all(1).any()


@pytest.mark.slow
def test_differences_of_log_probabilities_are_those_of_two_structures(complex_, interface_rows, proteinmpnn_folder):
    row = interface_rows[0]
    hidden = complex_.without_types(np.arange(len(complex_)) == row)
    own = hidden.side == hidden.side[row]
    site = ProteinMPNNSite(only_hidden=True)
    bound = site(hidden)["site_log_probs"][row]
    free = site(hidden.select(own))["site_log_probs"][np.flatnonzero(own).tolist().index(row)]
    found = ProteinMPNNBinding(only_hidden=True)(hidden)["binding_log_probs"]
    np.testing.assert_allclose(found[row], bound - free, atol=1e-4)
    assert np.abs(found[row]).max() > 0.1 and not np.delete(found, row, 0).any()
    assert not ProteinMPNNBinding()(complex_.chains(complex_.chain_names[0]))["binding_log_probs"].any()


def test_type_features_have_the_differences_too():
    fields = {name: field(name) for name in ("site_log_probs", "binding_log_probs")}
    scores = {"site_log_probs": torch.arange(40.0)[None], "binding_log_probs": -torch.arange(40.0)[None]}
    features = TypeFeatures(fields)(scores)["type_features"].view(20, 15)
    assert torch.equal(features[:, :2], torch.arange(40.0).view(20, 2) / 2)
    assert torch.equal(features[:, 2:4], -features[:, :2])
    alone = TypeFeatures({"site_log_probs": fields["site_log_probs"]})({"site_log_probs": scores["site_log_probs"]})
    assert torch.equal(alone["type_features"].view(20, 13)[:, 2:], features[:, 4:])


@pytest.mark.slow
def test_the_context_is_burial_nearness_and_bounded_counts(complex_, interface_rows):
    found = InterfaceSite()(complex_) | SitePacking()(complex_)
    fields = {name: field(name) for name in ("interface_site", "site_packing")}
    layer = InterfaceContext(fields)
    inputs = {name: torch.from_numpy(found[name]) for name in fields}
    h = layer(inputs)["h"].numpy()
    assert h.shape == (len(complex_), 19) and layer.out["h"].chiral
    site, packing = found["interface_site"], found["site_packing"]
    distance = 10 * site[:, 56]
    inside = 1 / (1 + np.exp(distance - 8))
    np.testing.assert_allclose(h[:, 0], inside, rtol=1e-4)
    np.testing.assert_allclose(h[:, 1:4], inside[:, None] * site[:, -3:], rtol=1e-4)  # lost accessibility
    np.testing.assert_allclose(h[:, 4], inside / (1 + np.exp(distance - 6)), rtol=1e-4)
    cb = virtual_cb(complex_.backbone)
    for row in interface_rows:
        other = (complex_.side != complex_.side[row])[complex_.atom_residue]
        assert distance[row] == pytest.approx(
            np.linalg.norm(complex_.atom_pos[other] - cb[row], axis=1).min(), abs=1e-4
        )
    assert h[interface_rows, 4].min() > 0.4 and np.abs(h[distance > 15]).max() < 3e-3 and (distance > 15).sum() > 50
    counts = [*(site[:, [0, 4, 9, 13, 18, 19, 66, 67]].T), *(packing[:, [0, 4, 9, 13, 18, 19]].T)]
    near = np.flatnonzero(inside > 0.1)
    for column, values in zip(h[near, 5:].T / inside[near], counts, strict=True):  # increasing, and bounded
        order = np.argsort(values[near])
        assert (np.diff(column[order]) >= -1e-5).all() and np.abs(column).max() <= 2.5 + 1e-5 and np.ptp(column) > 1
    alone = layer({name: torch.zeros_like(values) for name, values in inputs.items()})["h"]
    assert not alone.any()

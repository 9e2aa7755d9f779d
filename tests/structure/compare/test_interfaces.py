"""Interfaces of a complex against complete distance matrices."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.compare import chain_interfaces


@pytest.fixture(scope="module")
def complex_(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1jk9.bcif"))  # four chains


@pytest.mark.slow
@pytest.mark.parametrize("cutoff", [4.0, 5.0, 8.0])
def test_interfaces_are_those_of_all_distances(complex_, cutoff):
    atoms, residue = complex_.atom_pos.astype(np.float64), complex_.atom_residue
    expected = {}
    for a, b in combinations(complex_.chain_names, 2):
        first, second = (np.flatnonzero(complex_.chain[residue] == name) for name in (a, b))
        near = np.linalg.norm(atoms[first][:, None] - atoms[second], axis=-1) <= cutoff
        i, j = np.nonzero(near)
        if len(i):
            expected[a, b] = sorted(set(zip(residue[first[i]].tolist(), residue[second[j]].tolist(), strict=True)))
    found = {one.chains: list(map(tuple, one.pairs.T.tolist())) for one in chain_interfaces(complex_, cutoff)}
    assert found == expected and len(found) > 2


def test_the_residues_of_an_interface_belong_to_its_chains(complex_):
    for interface in chain_interfaces(complex_):
        for chain, rows in zip(interface.chains, interface.residues, strict=True):
            assert set(complex_.chain[rows]) == {chain}


def test_one_chain_has_no_interface(complex_):
    assert chain_interfaces(complex_.chains("A")) == []

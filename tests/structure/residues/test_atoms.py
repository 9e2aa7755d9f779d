"""Nodes of each type and dense coordinates, against loops."""

from __future__ import annotations

import numpy as np
import pytest
from biotite.structure import info

from protgraph.errors import MissingCoordinatesError, OptionError
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.residues.alphabet import THREE_LETTER
from protgraph.structure.residues.atoms import ATOM37, ELEMENTS, atom37, nodes_of


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::65]]


@pytest.mark.slow
def test_atom37_has_every_heavy_atom_of_the_amino_acids():
    there = {str(a.atom_name) for name in THREE_LETTER[:20] for a in info.residue(name) if a.element != "H"}
    assert there == set(ATOM37) and len(ATOM37) == 37


def test_the_elements_are_in_order():
    assert len(ELEMENTS) == 118
    known = {"H": 1, "C": 6, "N": 7, "O": 8, "P": 15, "S": 16, "CL": 17, "FE": 26, "ZN": 30, "SE": 34, "OG": 118}
    assert all(ELEMENTS[number - 1] == symbol for symbol, number in known.items())


def test_dense_atoms_equal_a_loop(proteins):
    for residues in proteins:
        pos, mask = atom37(residues)
        assert np.array_equal(pos[:, [0, 1, 2, 4]], residues.backbone, equal_nan=True)
        named = 0
        for a, (name, owner) in enumerate(zip(residues.atom_name, residues.atom_residue, strict=True)):
            if name in ATOM37:
                assert np.array_equal(pos[owner, ATOM37.index(name)], residues.atom_pos[a])
                named += 1
        assert mask.sum() == named


@pytest.mark.parametrize("kind", ["residue", "backbone", "atom"])
def test_nodes_are_ordered_by_residue(proteins, kind):
    for residues in proteins:
        nodes = nodes_of(residues, kind)
        assert (np.diff(nodes.residue) >= 0).all() and set(nodes.residue) == set(range(len(residues)))
        alpha = nodes.pos[nodes.name == "CA"] if kind != "residue" else nodes.pos
        assert np.array_equal(alpha, residues.pos)
        ids = nodes.ids(residues)
        assert len(set(ids.tolist())) == len(nodes)
    assert ids[0].startswith(residues.ids[0])


def test_backbone_nodes_are_four_per_residue_and_atom_nodes_all_atoms(proteins):
    for residues in proteins:
        assert len(nodes_of(residues, "atom")) == len(residues.atom_name)
        assert len(nodes_of(residues, "backbone")) == residues.backbone_mask.sum()


def test_types_and_elements_agree_with_the_names(proteins):
    nodes = nodes_of(proteins[0], "atom")
    assert [ATOM37[t] if t < 37 else None for t in nodes.atom_type] == [n if n in ATOM37 else None for n in nodes.name]
    assert [ELEMENTS[z - 1] for z in nodes.atomic_number] == nodes.element.tolist()


def test_atoms_without_a_node_map_to_minus_one(proteins):
    nodes = nodes_of(proteins[0], "backbone")
    own = nodes.of_atoms(np.arange(len(proteins[0].atom_name)))
    assert np.array_equal(own[nodes.atom], np.arange(len(nodes)))
    assert (own >= 0).sum() == len(nodes)


def test_unknown_node_types_and_sequences_raise(proteins):
    with pytest.raises(OptionError, match="'all'"):
        nodes_of(proteins[0], "all")
    with pytest.raises(MissingCoordinatesError, match=proteins[0].name):
        nodes_of(proteins[0].hide("coordinates"), "atom")

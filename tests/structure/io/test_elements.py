"""Elements of files without element symbols."""

from __future__ import annotations

import numpy as np

from protgraph.structure.io import elements

RES_NAME, ATOM_NAME = np.array([["GLY", "CA", "GLY", "HOH", "GLY", "ZN"], ["CA", "CA", "N", "O", "CA", "ZN"]])
ELEMENTS = ["C", "CA", "N", "O", "C", "ZN"]


def test_elements_are_inferred_by_pairs_of_names():
    found, inferred = elements.complete_elements(np.full(6, ""), RES_NAME, ATOM_NAME)
    assert found.tolist() == ELEMENTS and inferred == 6


def test_symbols_by_index_equal_those_of_each_atom():
    symbols, index = np.array(["c", "Zn", "?", "ca", ""]), np.array([0, 3, -1, 2, 3, 1])
    one = elements.complete_elements(symbols, RES_NAME, ATOM_NAME, index=index)
    other = elements.complete_elements(symbols[index], RES_NAME, ATOM_NAME)
    assert one[0].tolist() == other[0].tolist() == ELEMENTS and one[1] == other[1] == 3

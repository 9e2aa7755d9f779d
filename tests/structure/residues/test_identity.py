"""Readable ids of residues, and numbers of chains by appearance."""

from __future__ import annotations

import numpy as np

from protgraph.structure.residues.identity import by_appearance, residue_ids, run_lengths


def test_numbers_follow_the_order_of_appearance():
    values = np.random.default_rng(0).choice(["B", "A", "AA", "", "b"], 60)
    order = list(dict.fromkeys(values.tolist()))
    assert by_appearance(values).tolist() == [order.index(value) for value in values]
    assert by_appearance(values[:0]).tolist() == []


def test_ids_join_chain_number_and_insertion_code():
    ids = residue_ids(np.array(["A", "", "H"]), np.array([-3, 7, 100]), np.array(["", "", "B"]))
    assert ids == ["A:-3", ":7", "H:100B"]
    assert residue_ids(*[np.array([], dtype=kind) for kind in (str, int, str)]) == []


def test_run_lengths_equal_those_of_numpy():
    for starts in (np.zeros(0, np.int64), np.array([0]), np.array([0, 1, 5])):
        assert run_lengths(starts, 9).tolist() == np.diff(starts, append=9).tolist()

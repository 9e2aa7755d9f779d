"""Labels of pairs of residues, aligned to a structure."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.datasets.labels import PairLabels
from protgraph.errors import LabelError
from protgraph.structure import Residues, clean, load_structure


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1jk9.bcif"))


@pytest.fixture
def labels(residues) -> PairLabels:
    """Every third residue of chains A and B, in reverse order, with some positive pairs."""
    rows = np.flatnonzero(np.isin(residues.chain, ["A", "B"]))[::3][::-1]
    group = (residues.chain[rows] == "B").astype(int)
    positive = np.random.default_rng(0).integers(0, len(rows), (2, 60))
    positive = positive[:, group[positive[0]] != group[positive[1]]]
    return PairLabels(residues.chain[rows], residues.res_id[rows], residues.ins_code[rows], group, positive)


def test_each_pair_of_two_groups_has_its_label_in_both_orders(residues, labels):
    y = labels.align(residues).reshape(len(residues), len(residues))
    place = {key: n for n, key in enumerate(zip(labels.chain, labels.res_id, labels.ins_code, strict=True))}
    keys = list(zip(residues.chain, residues.res_id, residues.ins_code, strict=True))
    number = [place.get(key, -1) for key in keys]
    positive = {frozenset(pair) for pair in labels.positive.T.tolist()}
    expected = np.full(y.shape, np.nan)
    for i, a in enumerate(number):
        for j, b in enumerate(number):
            if a >= 0 and b >= 0 and labels.group[a] != labels.group[b]:
                expected[i, j] = frozenset((a, b)) in positive
    np.testing.assert_array_equal(y, expected)
    assert np.nansum(y) == 2 * len(positive) > 20


def test_a_labeled_residue_that_is_absent_is_an_error_or_left_out(residues, labels):
    part = residues.select(residues.chain == "A")
    with pytest.raises(LabelError, match="absent"):
        labels.align(part)
    assert np.isnan(labels.align(part, strict=False)).all()


def test_pairs_of_one_group_and_repeated_residues_are_refused(labels):
    keys = (labels.chain, labels.res_id, labels.ins_code)
    with pytest.raises(LabelError, match="one group"):
        PairLabels(*keys, np.zeros_like(labels.group), labels.positive)
    with pytest.raises(LabelError, match="groups"):
        PairLabels(*keys, labels.group[1:], labels.positive)
    with pytest.raises(LabelError, match="more than once"):
        PairLabels(labels.chain, np.ones_like(labels.res_id), labels.ins_code, labels.group, labels.positive)

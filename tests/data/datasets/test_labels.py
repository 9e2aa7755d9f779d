"""Labels: alignment by residue identifier, errors, counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph.data.datasets.card import SplitCount, count_example
from protgraph.data.datasets.labels import ProteinLabels, ResidueLabels, absent_residues_error, align
from protgraph.data.datasets.target import Target
from protgraph.errors import LabelError


def labels_of(ids, values, name="") -> ResidueLabels:
    chain = np.array([i.split(":")[0] for i in ids], dtype=str)
    rest = [i.split(":")[1] for i in ids]
    ins = np.array([r[-1] if r[-1].isalpha() else "" for r in rest], dtype=str)
    number = np.array([int(r.removesuffix(i)) for r, i in zip(rest, ins, strict=True)], dtype=np.int64)
    return ResidueLabels(chain, number, ins, np.asarray(values), name)


class ResidueIdentifiers:
    """Residue identifiers, all that alignment reads of residues."""

    def __init__(self, chain, res_id, ins_code, name):
        self.chain, self.res_id, self.ins_code, self.name = chain, res_id, ins_code, name

    def __len__(self):
        return len(self.res_id)


IDENTITY = st.builds(
    lambda chain, number, code: f"{chain}:{number}{code}",
    st.sampled_from(["A", "B", "a", "AA", "1"]),
    st.integers(-5, 120),
    st.sampled_from(["", "A", "B"]),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(IDENTITY, min_size=1, max_size=40, unique=True), st.data())
def test_alignment_equals_dictionary_lookup(ids, data):
    labeled = data.draw(st.permutations(ids))[: data.draw(st.integers(0, len(ids)))]
    extra = data.draw(st.lists(IDENTITY.filter(lambda i: i not in ids), max_size=5, unique=True))
    expected = dict(zip([*labeled, *extra], range(100), strict=False))
    all_residues = labels_of(ids, np.zeros(len(ids)))
    residues = ResidueIdentifiers(all_residues.chain, all_residues.res_id, all_residues.ins_code, "toy")
    labels = labels_of(list(expected), np.array(list(expected.values()), dtype=np.int64))
    assert align(labels, residues, strict=False).tolist() == [expected.get(i, -1) for i in ids]
    assert labels.absent(residues).tolist() == [i in extra for i in expected]
    if extra:
        with pytest.raises(LabelError, match=rf"^{len(extra)} label"):
            align(labels, residues)


def test_residues_of_equal_number_differ_by_insertion_code_and_chain(make_residues):
    residues = make_residues(["A:52", "A:52A", "A:52B", "B:52", "A:53"])
    labels = labels_of(["B:52", "A:52B", "A:52"], np.array([3, 2, 1]))
    assert align(labels, residues).tolist() == [1, -1, 2, 3, -1]


@pytest.mark.parametrize(
    ("values", "dtype", "shape", "first"),
    [
        (np.array([1, 0]), np.int64, (3,), -1),
        (np.array([True, False]), np.float32, (3, 1), np.nan),
        (np.array([0.5, 1.5]), np.float32, (3, 1), np.nan),
        (np.array([[1.0, 2], [3, 4]]), np.float32, (3, 2), np.nan),
    ],
)
def test_aligned_labels_have_canonical_dtype_and_shape(make_residues, values, dtype, shape, first):
    y = align(labels_of(["A:2", "A:3"], values), make_residues(["A:1", "A:2", "A:3"]))
    assert y.dtype == dtype and y.shape == shape
    np.testing.assert_array_equal(y[0], np.full(shape[1:], first))


def test_label_per_protein_has_one_row(make_residues):
    residues = make_residues(["A:1", "A:2"])
    assert align(ProteinLabels(np.int64(2)), residues).tolist() == [2]
    assert align(ProteinLabels(np.array([1.0, 2.0])), residues).tolist() == [[1.0, 2.0]]


def test_error_lists_five_absent_residues_and_the_number(make_residues):
    labels = labels_of([f"A:{i}" for i in range(1, 10)], np.zeros(9), name="1abc.pdb")
    with pytest.raises(LabelError) as error:
        align(labels, make_residues(["A:1", "A:2"]))
    assert str(error.value).startswith("7 labels ")
    assert ": 1abc.pdb A:3, 1abc.pdb A:4, 1abc.pdb A:5, 1abc.pdb A:6, 1abc.pdb A:7, …\n" in str(error.value)


def test_error_lists_absent_residues_of_several_files(make_residues):
    residues = make_residues(["A:1"])
    labels = labels_of(["A:1", "B:7"], [0, 1])
    faults = [(name, labels, labels.absent(residues)) for name in ("x.pdb", "y.pdb")]
    assert ": x.pdb B:7, y.pdb B:7\n" in str(absent_residues_error(faults))


def test_residue_with_two_labels_raises():
    with pytest.raises(LabelError, match="'1abc'.*A:2B"):
        labels_of(["A:1", "A:2B", "A:2B"], np.zeros(3), name="1abc")


def test_all_labels_are_absent_in_a_protein_without_residues(make_residues):
    assert labels_of(["A:1"], [1]).absent(make_residues([])).tolist() == [True]


def test_count_labels_ignores_unknown_labels():
    classes = Target("t", "node", "classification", 3)
    assert count_example(np.array([0, 2, 2, -1]), classes, 4) == SplitCount(1, 4, 3, (1, 0, 2))
    several = Target("t", "node", "multilabel", 2)
    y = np.array([[1, 0], [np.nan, 1], [np.nan, np.nan]], dtype=np.float32)
    assert count_example(y, several, 3) == SplitCount(1, 3, 2, (1, 1))
    assert count_example(y, Target("t", "node", "regression", 2), 3) == SplitCount(1, 3, 2)

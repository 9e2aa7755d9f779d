"""Undefined metrics are found before training, with the split and the numbers of labels."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.datasets.labels import ProteinLabels, ResidueLabels
from protgraph.errors import DatasetError
from protgraph.train import fit
from tests.train.conftest import CHAINS, Small, read


class OneClass(Small):
    """The task ``buried`` with only negatives in some splits."""

    def __init__(self, folder, negative: tuple[str, ...]) -> None:
        super().__init__(folder)
        self.negative = negative

    def labels(self, task, example):
        own = super().labels(task, example)
        if task != "buried" or example.split not in self.negative:
            return own
        return ResidueLabels(own.chain, own.res_id, own.ins_code, np.zeros_like(own.values), name=own.name)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "val"])
def test_one_class_in_a_split_is_an_error_before_training(structures_dir, tiny, quick, split):
    epochs = []
    dataset = OneClass(structures_dir, (split,))
    number = len(CHAINS[split])
    with pytest.raises(
        DatasetError, match=rf"'{split}' of dataset 'small' has {number} proteins.* 0 positive"
    ) as error:
        fit(tiny, dataset, "buried", config=quick, on_epoch=epochs.append)
    assert not epochs
    assert "--cv" in str(error.value) and "--seed" in str(error.value)
    residues = sum(len(read(structures_dir / f"{name[:4]}.bcif").chains((name[5:],))) for name in CHAINS[split])
    assert f"{residues} negative" in str(error.value)


@pytest.mark.slow
def test_one_class_in_the_test_split_is_a_note(structures_dir, tiny, quick):
    result = fit(tiny, OneClass(structures_dir, ("test",)), "buried", config=quick)
    assert any("'test'" in note and "auprc" in note for note in result.notes)


def test_two_classes_everywhere_pass(small, tiny, quick):
    assert fit(tiny, small, "buried", config=quick).notes == ()


@pytest.mark.slow
def test_other_kinds_of_labels_are_not_checked(structures_dir, tiny, quick):
    class Constant(Small):
        def labels(self, task, example):
            return ProteinLabels(1.0)

    assert fit(tiny, Constant(structures_dir), "size", config=quick).best_epoch

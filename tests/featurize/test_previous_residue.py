"""Type of the previous residue: shifted within chains, and independent of later nodes."""

from __future__ import annotations

import torch

import protgraph as pg
from protgraph.featurize.residue_features import PreviousResidue
from protgraph.ops import Proteins

START = 21


def previous(aatype, chain, batch, sizes):
    f = {"aatype": torch.tensor(aatype), "chain": torch.tensor(chain), "proteins": Proteins(torch.tensor(batch), sizes)}
    return PreviousResidue()(f)["previous"].tolist()


def test_types_are_shifted_by_one_within_each_chain_of_each_protein():
    result = previous([3, 20, 5, 7, 1, 2], [0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1], (4, 2))
    assert result == [START, 3, START, 5, START, 1]


def test_a_single_residue_is_a_start_and_no_residues_give_no_types():
    assert previous([4], [0], [0], (1,)) == [START]
    assert previous([], [], [], ()) == []


def test_the_field_has_one_class_more_than_residue_types():
    assert pg.field("previous").classes == pg.field("aatype").classes + 1


def test_no_node_depends_on_its_own_or_a_later_type():
    aatype = torch.randint(0, 21, (30,), generator=torch.Generator().manual_seed(0)).tolist()
    chain, batch = 12 * [0] + 18 * [1], 30 * [0]
    usual = previous(aatype, chain, batch, (30,))
    for i in range(30):
        changed = [(t + 1) % 21 if j >= i else t for j, t in enumerate(aatype)]
        assert previous(changed, chain, batch, (30,))[: i + 1] == usual[: i + 1]

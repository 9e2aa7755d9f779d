"""Padded layout: exact round trip, views where possible, bounded padding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph.ops import PaddedLayout, Proteins

CPU = torch.device("cpu")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=8), st.booleans())
def test_take_and_join_are_inverse(sizes, padded):
    layout = PaddedLayout(sizes, sizes, CPU, padded=padded)
    x = torch.arange(1.0, sum(sizes) + 1).unsqueeze(1)
    if layout.blocks:
        assert torch.equal(layout.join([block.rows.take(x) for block in layout.blocks]), x)
    else:
        assert not sum(sizes)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.booleans())
def test_pairs_are_those_of_their_nodes(sizes, padded):
    layout = PaddedLayout(sizes, sizes, CPU, padded=padded)
    node = torch.arange(sum(sizes))
    first = torch.cat([part.repeat_interleave(len(part)) for part in node.split(sizes)])
    second = torch.cat([part.repeat(len(part)) for part in node.split(sizes)])
    for block in layout.blocks:
        i, j = block.pairs(torch.stack([first, second]), slice(1, None)).unbind(1)  # (b, L - 1, L)
        mask = torch.ones_like(i, dtype=torch.bool)
        if block.rows.mask is not None:
            mask = block.rows.mask[:, 1:, None] & block.columns.mask[:, None]
        assert torch.equal(i[mask], block.rows.take(node)[:, 1:, None].expand_as(i)[mask])
        assert torch.equal(j[mask], block.columns.take(node)[:, None].expand_as(j)[mask])


def test_consecutive_proteins_of_equal_length_share_a_view():
    layout = PaddedLayout((4, 4, 3, 3, 3), (4, 4, 3, 3, 3), CPU, padded=False)
    x = torch.randn(17, 2)
    taken = [block.rows.take(x) for block in layout.blocks]
    assert [tuple(t.shape) for t in taken] == [(2, 4, 2), (3, 3, 2)]
    assert all(t.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for t in taken)


def test_a_long_protein_does_not_pad_short_ones():
    sizes = (50, 3000, 60, 55, 61)
    layout = PaddedLayout(sizes, sizes, CPU, padded=True)
    pairs = sum(block.rows.num_proteins * block.rows.length**2 for block in layout.blocks)
    assert len(layout.blocks) == 2
    assert pairs <= 1.25**2 * sum(size * size for size in sizes)


@pytest.mark.parametrize("padded", [False, True])
def test_pair_index_is_row_major(padded):
    sizes = (3, 1, 4)
    proteins = Proteins(torch.arange(3).repeat_interleave(torch.tensor(sizes)), sizes, padded=padded)
    i, j = torch.tensor([0, 2, 3, 4, 7]), torch.tensor([0, 1, 3, 7, 5])
    assert proteins.pair_index(i, j).tolist() == [0, 7, 9, 10 + 3, 10 + 3 * 4 + 1]
    z = torch.arange(26.0).unsqueeze(1)
    assert [tuple(p.shape) for p in proteins.split_pairs(z)] == [(3, 3, 1), (1, 1, 1), (4, 4, 1)]
    assert proteins.num_pairs == 26

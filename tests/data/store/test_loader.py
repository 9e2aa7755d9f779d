"""Batches of proteins: each protein once, limits, order by seed, buckets of similar length."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph.data.store.loader import ProteinBatches, pack, pack_starts
from protgraph.errors import OptionError

SIZES = st.lists(st.integers(1, 50), max_size=60)


@settings(deadline=None, max_examples=60)
@given(SIZES, st.booleans(), st.booleans(), st.integers(0, 3), st.integers(1, 80))
def test_every_protein_is_in_exactly_one_batch(sizes, shuffle, bucket, epoch, most):
    for how in ({"batch_size": most}, {"max_nodes": most}):
        batches = list(ProteinBatches(sizes, shuffle=shuffle, bucket=bucket, epoch=epoch, **how))
        assert sorted(i for batch in batches for i in batch) == list(range(len(sizes)))


@settings(deadline=None, max_examples=60)
@given(SIZES, st.booleans(), st.integers(1, 80))
def test_a_batch_above_max_nodes_is_one_protein(sizes, bucket, most):
    for batch in ProteinBatches(sizes, max_nodes=most, shuffle=True, bucket=bucket):
        assert sum(sizes[i] for i in batch) <= most or len(batch) == 1


@settings(deadline=None, max_examples=200)
@given(SIZES, st.none() | st.integers(1, 80), st.none() | st.integers(1, 10))
def test_starts_are_those_of_packing_one_by_one(sizes, max_size, max_items):
    limits = {"max_size": max_size, "max_items": max_items}
    starts = pack_starts(np.array(sizes, dtype=np.int64), **limits)
    batches = [sizes[a:b] for a, b in pairwise(starts)]
    assert batches == list(pack(sizes, int, **limits))


@settings(deadline=None, max_examples=60)
@given(SIZES, st.booleans(), st.integers(1, 10))
def test_all_batches_but_one_are_full(sizes, bucket, batch_size):
    lengths = sorted(len(batch) for batch in ProteinBatches(sizes, batch_size=batch_size, shuffle=True, bucket=bucket))
    assert lengths[1:] == [batch_size] * (len(lengths) - 1)


def test_order_depends_on_seed_and_epoch_only():
    sizes = list(range(1, 40))

    def order(**options):
        return list(ProteinBatches(sizes, batch_size=4, shuffle=True, **options))

    assert order(seed=1, epoch=2) == order(seed=1, epoch=2)
    assert len({str(order(seed=s, epoch=e)) for s in (0, 1) for e in (0, 1)}) == 4
    first = ProteinBatches(sizes, batch_size=4, shuffle=True, seed=1)
    assert list(first.at_epoch(2)) == order(seed=1, epoch=2)
    assert list(first) == list(first.at_epoch(2).at_epoch(0)) == order(seed=1)


def test_without_shuffling_the_order_of_indices_is_kept():
    assert list(ProteinBatches([9] * 6, indices=[5, 0, 3, 3, 1], batch_size=2)) == [[5, 0], [3, 3], [1]]


def test_buckets_hold_similar_lengths():
    sizes = np.random.default_rng(0).integers(20, 1000, 2000)

    def waste(bucket: bool) -> float:
        batches = list(ProteinBatches(sizes, batch_size=8, shuffle=True, bucket=bucket))
        return sum(sizes[b].max() * len(b) for b in batches) / sizes.sum()

    assert waste(bucket=True) < 1.1 < 1.6 < waste(bucket=False)


def test_bucketed_batches_are_not_ordered_by_length():
    sizes = np.arange(1, 257)
    means = [np.mean(sizes[b]) for b in ProteinBatches(sizes, batch_size=8, shuffle=True, bucket=True)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.5


@pytest.mark.parametrize("options", [{}, {"batch_size": 4, "max_nodes": 100}, {"batch_size": 0}, {"max_nodes": 0}])
def test_exactly_one_limit_of_at_least_one_is_required(options):
    with pytest.raises(OptionError, match="batch_size"):
        ProteinBatches([], **options)

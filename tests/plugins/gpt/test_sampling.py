"""Samples follow the probabilities that temperature, top-k and top-p define."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from protgraph_plugins.gpt import sample_classes, sampling_probabilities
from scipy.stats import chisquare

from protgraph.errors import OptionError

rows = st.lists(st.integers(-30, 30).map(lambda x: x / 10), min_size=1, max_size=7)


def softmax(logits, t):
    weights = [2.718281828459045 ** (x / t) for x in logits]
    return [w / sum(weights) for w in weights]


def among(p, kept):
    return [x / sum(p[k] for k in kept) if i in kept else 0.0 for i, x in enumerate(p)]


@settings(max_examples=100, deadline=None)
@given(rows, st.sampled_from([0.3, 1.0, 2.5]), st.data())
def test_top_k_keeps_the_most_probable_set_of_k(logits, t, data):
    k = data.draw(st.integers(1, len(logits)))
    p = softmax(logits, t)
    sets = combinations(range(len(p)), k)
    best = max(sets, key=lambda kept: (round(sum(p[i] for i in kept), 12), [-i for i in kept]))
    got = sampling_probabilities(torch.tensor([logits], dtype=torch.float64), temperature=t, top_k=k)
    assert got[0].tolist() == pytest.approx(among(p, best), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(rows.filter(lambda x: len(set(x)) == len(x)), st.floats(0.05, 1.0), st.sampled_from([0.3, 1.0, 2.5]))
def test_top_p_keeps_the_smallest_set_that_reaches_p(logits, top_p, t):
    p = softmax(logits, t)
    sizes = range(1, len(p) + 1)
    reach = [s for n in sizes for s in combinations(range(len(p)), n) if sum(p[i] for i in s) >= top_p - 1e-12]
    if not reach or min(abs(sum(p[i] for i in s) - top_p) for s in reach) < 1e-9:
        return  # rounding decides
    fewest = [s for s in reach if len(s) == len(reach[0])]
    best = max(fewest, key=lambda s: sum(p[i] for i in s))
    got = sampling_probabilities(torch.tensor([logits], dtype=torch.float64), temperature=t, top_p=top_p)
    assert got[0].tolist() == pytest.approx(among(p, best), abs=1e-9)


def test_top_p_is_of_what_top_k_leaves():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    got = sampling_probabilities(logits, top_k=2, top_p=0.5)  # of 4/7 and 3/7, the first reaches one half
    assert got[0].tolist() == pytest.approx([1, 0, 0, 0], abs=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.5}, {"temperature": 2.0, "top_k": 4}, {"top_p": 0.7}, {"top_k": 5, "top_p": 0.8}]
)
def test_samples_follow_the_probabilities(options):
    logits = torch.tensor([[1.0, 0.0, -0.5, 2.0, 0.3, -2.0]])
    want = sampling_probabilities(logits, **options)[0]
    generator = torch.Generator().manual_seed(1)
    drawn = sample_classes(logits.expand(20000, -1), generator=generator, **options)
    counts = torch.bincount(drawn, minlength=6).double()
    assert not counts[want == 0].any()
    possible = want > 0
    if possible.sum() > 1:
        assert chisquare(counts[possible].numpy(), 20000 * want[possible].numpy()).pvalue > 1e-3


def test_equal_seeds_give_equal_samples():
    logits = torch.randn(50, 20, generator=torch.Generator().manual_seed(0))
    one, same, other = (sample_classes(logits, generator=torch.Generator().manual_seed(s)) for s in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_low_temperature_takes_the_most_probable():
    logits = torch.randn(50, 20, generator=torch.Generator().manual_seed(0))
    for options in ({"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-9}):
        assert torch.equal(sample_classes(logits, generator=torch.Generator(), **options), logits.argmax(1))


@pytest.mark.parametrize(
    "options, match",
    [
        ({"temperature": 0.0}, r"temperature=0\.0"),
        ({"temperature": -1.0}, r"temperature=-1\.0"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"top_k": 0}, "top_k=0"),
        ({"top_k": 21}, "top_k=21.*20"),
        ({"top_p": 0.0}, r"top_p=0\.0"),
        ({"top_p": 1.5}, r"top_p=1\.5"),
    ],
)
def test_invalid_options_are_errors(options, match):
    with pytest.raises(OptionError, match=match):
        sampling_probabilities(torch.zeros(1, 20), **options)

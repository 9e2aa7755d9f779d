"""Dot-product attention equals an explicit softmax in values and gradients, for all options and layouts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph.nn.dot_product_attention import DotProductAttention, pair_term, run_in_chunks
from protgraph.ops import Proteins

HEADS, WIDTH = 2, 3


@dataclass
class Case:
    """A ragged batch with all inputs of attention."""

    sizes: tuple[int, ...]
    answers: tuple[int, ...]  # sizes of the keys; those of the queries without cross-attention
    causal: bool
    bias: bool
    infinite: bool
    mask: bool
    key_mask: bool
    padded: bool
    entries: int

    def __post_init__(self):
        g = torch.Generator().manual_seed(sum(self.sizes) + 7 * sum(self.answers))

        def draw(*shape):
            return torch.randn(shape, generator=g, dtype=torch.float64).requires_grad_()

        n, m = sum(self.sizes), sum(self.answers)
        pairs = sum(a * b for a, b in zip(self.sizes, self.answers, strict=True))
        self.q, self.k, self.v = draw(n, HEADS, WIDTH), draw(m, HEADS, WIDTH), draw(m, HEADS, WIDTH + 1)
        self.values, self.common = draw(HEADS, pairs), draw(1, pairs)
        self.pair_seen = torch.rand(pairs, generator=g) < 0.5
        self.seen = torch.rand(m, generator=g) < 0.5
        self.hidden = torch.zeros(1, pairs, dtype=torch.float64)
        self.hidden[:, torch.rand(pairs, generator=g) < 0.3] = -torch.inf

    @property
    def wrt(self):
        return [self.q, self.k, self.v, *([self.values, self.common] if self.bias else [])]

    def partition(self, sizes):
        return Proteins(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), sizes, padded=self.padded)

    def given(self):
        terms = [pair_term(self.values), pair_term(self.common)] if self.bias else []
        terms += [pair_term(self.hidden)] if self.infinite else []
        across = self.answers is not self.sizes
        return {
            "proteins": self.partition(self.sizes),
            "keys": self.partition(self.answers) if across else None,
            "terms": terms,
            "mask": self.pair_seen if self.mask else None,
            "key_mask": self.seen if self.key_mask else None,
        }

    def written_out(self):
        """Loop over proteins, heads and rows; also returns the weights."""
        out, weights, start, row, column = [], [], 0, 0, 0
        for n, m in zip(self.sizes, self.answers, strict=True):
            here, rows, columns = slice(start, start + n * m), slice(row, row + n), slice(column, column + m)
            logits = torch.einsum("ihd,jhd->hij", self.q[rows], self.k[columns]) / WIDTH**0.5
            seen = torch.ones(n, m, dtype=torch.bool)
            if self.bias:
                logits = logits + (self.values + self.common)[:, here].view(HEADS, n, m)
            if self.infinite:
                seen = seen & (self.hidden[0, here].view(n, m) == 0)
            if self.mask:
                seen = seen & self.pair_seen[here].view(n, m)
            if self.key_mask:
                seen = seen & self.seen[columns]
            if self.causal:
                seen = seen & torch.ones(n, m, dtype=torch.bool).tril()
            top = logits.masked_fill(~seen, -1e30).amax(-1, keepdim=True).detach() if m else 0.0
            weight = (logits - top).clamp(max=80).exp() * seen
            weight = weight / weight.sum(-1, keepdim=True).clamp(min=1e-300)
            weights.append(weight)
            out.append(torch.einsum("hij,jhd->ihd", weight, self.v[columns]))
            start, row, column = start + n * m, row + n, column + m
        return torch.cat(out), weights


@st.composite
def cases(draw):
    sizes = tuple(draw(st.lists(st.integers(0, 6), min_size=1, max_size=5)))
    causal = draw(st.booleans())
    answers = sizes
    if not causal and draw(st.booleans()):
        answers = tuple(draw(st.lists(st.integers(0, 6), min_size=len(sizes), max_size=len(sizes))))
    flags = [draw(st.booleans()) for _ in range(5)]
    return Case(sizes, answers, causal, *flags, entries=draw(st.sampled_from([1, 30, 2**24])))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(cases())
def test_equals_an_explicit_softmax_with_every_option(case):
    attention = DotProductAttention(causal=case.causal, entries=case.entries)
    got = attention(case.q, case.k, case.v, **case.given())
    want, weights = case.written_out()
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    made = attention.weights(case.q, case.k, **case.given())
    for one, other in zip(made, weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    cotangent = torch.linspace(-1, 2, got.numel(), dtype=torch.float64).sin().view_as(got)
    if not case.values.numel():
        return  # no visible pair
    for x, a, b in zip(case.wrt, *(torch.autograd.grad(y, case.wrt, cotangent) for y in (got, want)), strict=True):
        assert a.shape == b.shape == x.shape
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padded", [False, True])
def test_a_node_without_visible_nodes_gets_zero_and_finite_gradients(padded):
    case = Case((3, 5), (3, 5), *4 * (False,), key_mask=True, padded=padded, entries=2**24)
    case.seen = torch.zeros(8, dtype=torch.bool)
    out = DotProductAttention()(case.q, case.k, case.v, **case.given())
    out.sum().backward()
    assert not out.any()
    assert all(torch.isfinite(x.grad).all() for x in (case.q, case.k, case.v))


def test_dropout_acts_in_training_only():
    case = Case((4, 3), (4, 3), *6 * (False,), entries=2**24)
    attention = DotProductAttention(dropout=0.5)
    assert not torch.equal(*(attention(case.q, case.k, case.v, **case.given()) for _ in range(2)))
    attention.eval()
    torch.testing.assert_close(attention(case.q, case.k, case.v, **case.given()), case.written_out()[0])


def test_terms_are_evaluated_for_at_most_entries_logits():
    case, asked = Case((40,), (40,), *6 * (False,), entries=800), []

    def term(block, rows):
        asked.append(rows.stop - rows.start)
        return torch.zeros(1, HEADS, rows.stop - rows.start, 40, dtype=torch.float64)

    attention = DotProductAttention(entries=case.entries)
    out = attention(case.q, case.k, case.v, case.partition((40,)), terms=[term])
    assert asked == 4 * [10]  # 800 logits are 10 rows of 2 × 40
    out.sum().backward()
    assert asked == 8 * [10]  # and again on the way back


def test_chunks_give_the_whole_in_order():
    x = torch.arange(7.0)
    parts = run_in_chunks(lambda x, rows: 2 * x[rows], (x,), 7, 1, entries=3)
    assert [len(p) for p in parts] == [3, 3, 1]
    assert torch.equal(torch.cat(parts), 2 * x)


@pytest.mark.slow
def test_4096_residues_take_less_than_two_gib():
    """Peak resident memory of a fresh process, forward and backward, with heads, and with an offset bias."""
    import subprocess
    import sys

    code = """
import resource, torch
from protgraph.ops import Proteins
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.positional_encoding import OffsetBias
n = 4096
proteins = Proteins(torch.zeros(n, dtype=torch.long), (n,))
q, k, v = (torch.randn(n, 8, 16, requires_grad=True) for _ in range(3))
for terms in ([], [OffsetBias(8)(torch.arange(n), None)]):
    DotProductAttention()(q, k, v, proteins, terms=terms).sum().backward()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 2**30)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(float(line) < 2 for line in done.stdout.split()), done.stdout


@pytest.mark.cuda
@pytest.mark.parametrize("options", [{}, {"bias": True}, {"mask": True}, {"key_mask": True}, {"causal": True}])
def test_a_gpu_gives_the_same_without_synchronization(options):
    flags = dict.fromkeys(("causal", "bias", "infinite", "mask", "key_mask"), False) | options
    case = Case((30, 5, 31, 1, 90), (30, 5, 31, 1, 90), **flags, padded=True, entries=2**24)
    want, _ = case.written_out()
    batch = case.partition(case.sizes).batch.cuda()
    given = case.given()
    moved = {n: None if given[n] is None else given[n].cuda() for n in ("mask", "key_mask")}
    q, k, v, values, common = (x.detach().cuda() for x in (case.q, case.k, case.v, case.values, case.common))
    attention = DotProductAttention(causal=case.causal)
    terms = [pair_term(values), pair_term(common)] if case.bias else []
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        out = attention(q, k, v, Proteins(batch, case.sizes), terms=terms, **moved)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(out.cpu(), want.detach(), rtol=1e-10, atol=1e-10)

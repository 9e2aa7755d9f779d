"""Sampling with cached decoder states, compared with recomputing all rows at each step."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import (
    Constraints,
    Decoding,
    decoding_ranks,
    forward_order,
    random_decoding_order,
    random_deviates,
    sample_sequences,
    teacher_forced_log_probs,
)

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import OptionError, WiringError
from protgraph.model import build_model


@pytest.fixture(scope="module")
def proteins(structures_dir):
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    return [whole.select(whole.res_id <= last) for last in (14, 22)]


@torch.no_grad()
def encoded(model, proteins) -> Decoding:
    return Decoding.of(model, collate([model.plan.precompute(r) for r in proteins]))


@torch.no_grad()
def sample_by_recomputing(decoding: Decoding, constraints: Constraints, order, uniform, temperature: float):
    """Sample one sequence ``(N,)`` and the probabilities ``(types,)`` of each designed node."""
    aatype, probabilities = decoding.aatype.clone(), {}
    for node in order[constraints.designed[order]].tolist():
        logits = decoding.head(
            decoding.decoder.teacher_force(decoding.start(0), aatype, decoding_ranks(order, decoding.proteins))
        )[node]
        p = constraints.probabilities(logits[None], torch.tensor([node]), temperature)[0]
        aatype[node] = int((p.cumsum(0) <= uniform[node] * p.sum()).sum())
        probabilities[node] = p
    return aatype, probabilities


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("fixed", [False, True])
def test_cached_sampling_equals_recomputing_all_rows(model, proteins, temperature, fixed):
    decoding = encoded(model, proteins)
    n, generator = len(decoding.aatype), torch.Generator().manual_seed(4)
    designed = torch.rand(n, generator=generator) < 0.6 if fixed else torch.ones(n, dtype=torch.bool)
    omit = torch.zeros(21, dtype=torch.bool)
    omit[[1, 20]] = True
    bias = torch.randn(n, 21, generator=generator, dtype=torch.float64)
    constraints = Constraints(designed, omit=omit, bias=bias)
    sampled = sample_sequences(decoding, constraints, copies=2, temperature=temperature, seed=5)
    uniform = random_deviates(decoding.proteins.sizes, range(2), seed=5)[1]
    for copy in range(2):
        aatype, p = sample_by_recomputing(decoding, constraints, sampled.order[copy], uniform[copy], temperature)
        assert torch.equal(sampled.aatype[copy], aatype)
        for node, row in p.items():
            torch.testing.assert_close(sampled.probabilities[copy, node], row, rtol=1e-9, atol=1e-12)
        again = teacher_forced_log_probs(decoding, decoding_ranks(sampled.order[copy], decoding.proteins), aatype)
        torch.testing.assert_close(sampled.log_probs[copy], again, rtol=1e-9, atol=1e-10)
        assert torch.equal(aatype[~designed], decoding.aatype[~designed])
        assert not torch.isin(aatype[designed], omit.nonzero()).any()


def test_samples_do_not_depend_on_the_batch(model, proteins):
    alone = [encoded(model, [r]) for r in proteins]
    singles = [
        sample_sequences(f, Constraints(torch.ones(len(f.aatype)) > 0), copies=2, temperature=1.0, seed=3)
        for f in alone
    ]
    decoding = encoded(model, proteins)
    everything = Constraints(torch.ones(len(decoding.aatype), dtype=torch.bool))
    both = sample_sequences(decoding, everything, copies=4, temperature=1.0, seed=3)
    assert torch.equal(both.aatype[:2], torch.cat([s.aatype for s in singles], 1))
    assert not torch.equal(
        both.aatype, sample_sequences(decoding, everything, copies=4, temperature=1.0, seed=4).aatype
    )


def test_tied_residues_get_the_same_type(model, proteins):
    decoding = encoded(model, proteins)
    everything = torch.ones(len(decoding.aatype), dtype=torch.bool)
    groups = [[0, 4, 10], [5, 6], [15, 30]]
    sampled = sample_sequences(decoding, Constraints(everything, groups=groups), copies=3, temperature=1.0, seed=2)
    for group in groups:
        types, p = sampled.aatype[:, group], sampled.probabilities[:, group]
        assert (types == types[:, :1]).all()
        assert (p == p[:, :1]).all()
    assert torch.equal(sampled.order.sort()[0], torch.arange(len(everything)).expand(3, -1))


def test_weights_of_ties_multiply_logits_before_averaging(model, proteins):
    decoding = encoded(model, proteins)
    n, groups = len(decoding.aatype), [[0, 4, 10], [5, 6]]
    weights = torch.ones(n, dtype=torch.float64)
    weights[[0, 4, 10]] = torch.tensor([2.0, -0.5, 0.0], dtype=torch.float64)
    constraints = Constraints(torch.ones(n, dtype=torch.bool), groups=groups, tie_weight=weights)
    sampled = sample_sequences(decoding, constraints, temperature=0.7, seed=2)
    assert constraints.tie_weight.tolist()[:5] == [2.0, 1.0, 1.0, 1.0, -0.5]  # not modified
    with torch.no_grad():  # tied rows do not depend on the types of their group
        log_probs = sampled.log_probs[0, [0, 4, 10]]
    want = ((2.0 * log_probs[0] - 0.5 * log_probs[1]) / 3 / 0.7).softmax(0)
    torch.testing.assert_close(sampled.probabilities[0, 4], want)
    assert not torch.allclose(
        want, sample_sequences(decoding, Constraints(constraints.designed, groups=groups)).probabilities[0, 4]
    )


def test_tied_residues_without_a_backbone_get_the_type_of_their_group(model, proteins):
    backbone = proteins[1].backbone.copy()
    backbone[[6, 9], 3] = np.nan
    decoding = encoded(model, [replace(proteins[1], backbone=backbone)])
    n = len(decoding.aatype)
    assert decoding.decodable.logical_not().nonzero().flatten().tolist() == [6, 9]
    everything = torch.ones(n, dtype=torch.bool)
    for group in ([2, 6], [6, 2], [9, 2, 6, 3]):
        omit = torch.zeros(n, 21, dtype=torch.bool)
        omit[6, :15] = True  # a constraint of the residue without a backbone
        sampled = sample_sequences(
            decoding, Constraints(everything, omit=omit, groups=[group]), copies=3, temperature=1.0, seed=4
        )
        types = sampled.aatype[:, group]
        assert (types == types[:, :1]).all() and (types >= 15).all()
    both = sample_sequences(decoding, Constraints(everything, groups=[[6, 9]]), temperature=1.0)
    assert torch.equal(both.aatype[0, [6, 9]], decoding.aatype[[6, 9]])  # no logits at all


def test_the_largest_uniform_deviate_samples_no_omitted_type(model, proteins):
    decoding = encoded(deepcopy(model).float(), proteins)
    n = len(decoding.aatype)
    constraints = Constraints(torch.ones(n, dtype=torch.bool), omit=torch.arange(21) > 17)
    uniform = torch.full((1, n), 1 - 2.0**-53, dtype=torch.float64)
    assert uniform.float().max() == 1.0  # rounded
    sampled = sample_sequences(decoding, constraints, temperature=1.0, uniform=uniform)
    assert (sampled.aatype == 17).all()


def test_an_order_with_a_designed_residue_before_a_fixed_one_is_an_error(model, proteins):
    decoding = encoded(model, proteins)
    n = len(decoding.aatype)
    designed = torch.arange(n) != 5
    order = torch.arange(n)[None]
    with pytest.raises(OptionError):
        sample_sequences(decoding, Constraints(designed), order=order)


def test_a_profile_is_mixed_with_the_model_by_its_weight(model, proteins):
    decoding = encoded(model, proteins)
    n = len(decoding.aatype)
    profile = torch.zeros(n, 21, dtype=torch.float64)
    profile[:, 3] = 1.0
    weight = torch.full((n,), 1.0, dtype=torch.float64)
    everything = torch.ones(n, dtype=torch.bool)
    sampled = sample_sequences(decoding, Constraints(everything, pssm=profile, pssm_weight=weight), temperature=0.5)
    assert (sampled.aatype == 3).all()
    half = Constraints(everything, pssm=profile, pssm_weight=weight / 2)
    logits = torch.randn(2, 21, dtype=torch.float64)
    p = half.probabilities(logits, torch.tensor([0, 1]), 1.0)
    torch.testing.assert_close(p, (logits.softmax(1) + profile[:2]) / 2)


def test_scores_are_means_over_the_mask(model, proteins):
    decoding = encoded(model, proteins)
    n = len(decoding.aatype)
    sampled = sample_sequences(decoding, Constraints(torch.ones(n, dtype=torch.bool)), copies=2, seed=1)
    mask = torch.arange(n) % 3 == 0
    got = sampled.score(mask, decoding.proteins)
    rows = torch.arange(14)[mask[:14]]
    want = -sampled.log_probs[1][rows, sampled.aatype[1][rows]].mean()
    torch.testing.assert_close(got[1, 0], want)


def test_decoding_orders_are_per_protein_with_fixed_residues_first(model, proteins):
    decoding = encoded(model, proteins)
    designed = torch.arange(len(decoding.aatype)) % 2 == 0
    order = random_decoding_order(designed, decoding.proteins, torch.randn(4, len(designed)))
    for one in order:
        for part in decoding.proteins.split(one):
            kinds = designed[part].long()
            assert (kinds.diff() >= 0).all()
        assert (one[:14] < 14).all()
        assert torch.equal(decoding_ranks(one, decoding.proteins)[one[:14]], torch.arange(14))
    fixed, rest = torch.arange(1, 14, 2), torch.arange(0, 14, 2)
    forward = forward_order(designed, decoding.proteins, copies=2)
    assert torch.equal(forward[1, :14], torch.cat([fixed, rest])) and torch.equal(forward[0], forward[1])
    noise = torch.zeros(1, len(designed))  # a deviate of 0 comes first among designed residues only
    noise[:, 1] = 3.0
    assert random_decoding_order(torch.arange(len(designed)) != 1, decoding.proteins, noise)[0, 0] == 1


def test_invalid_options_and_constraints_are_errors(model, proteins):
    decoding = encoded(model, proteins)
    everything = torch.ones(len(decoding.aatype), dtype=torch.bool)
    with pytest.raises(OptionError, match="copies: 0"):
        sample_sequences(decoding, Constraints(everything), copies=0)
    for temperature in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match=f"{temperature:g}"):
            sample_sequences(decoding, Constraints(everything), temperature=temperature)
    with pytest.raises(OptionError, match="residue 0"):
        Constraints(everything, omit=torch.ones(21, dtype=torch.bool))
    with pytest.raises(OptionError, match=r"\[0, 1\]"):
        Constraints(torch.arange(len(everything)) > 0, groups=[[0, 1]])
    with pytest.raises(OptionError, match="node 1"):
        sample_sequences(decoding, Constraints(everything, groups=[[0, 1], [1, 2]]))
    with pytest.raises(OptionError, match="pssm_weight"):
        Constraints(everything, pssm=torch.ones(1, 21))
    other = build_model("proteinmpnn.small", Target("class", "node", "classification", 2, ("a", "b")), seed=0)
    with pytest.raises(WiringError, match="'class'"):
        Decoding.of(other, collate([other.plan.precompute(proteins[0])]))

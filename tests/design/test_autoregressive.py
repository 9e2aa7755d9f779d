"""Drawing row by row equals drawing with everything worked out again, and the published program's own draws."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.design import Constraints, Decoding, teacher_forced_log_probs, random_decoding_order, decoding_ranks, sample_sequences
from protgraph.design.autoregressive import random_deviates
from protgraph.errors import OptionError, WiringError
from protgraph.model import build_model
from protgraph.structure import ALPHABET

TARGET = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))


@pytest.fixture(scope="module")
def proteins(structures_dir):
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    return [whole.select(whole.res_id <= last) for last in (14, 22)]


@pytest.fixture(scope="module")
def model():
    made = build_model("proteinmpnn.small", TARGET, seed=0).double().eval()
    with torch.no_grad():  # random weights say nearly the same everywhere; make them choose
        made.head.mlp[0].weight.mul_(8)
    return made


@torch.no_grad()
def encoded(model, proteins) -> Decoding:
    return Decoding.of(model, collate([model.plan.precompute(r) for r in proteins]))


@torch.no_grad()
def slow(found: Decoding, wanted: Constraints, order, uniform, temperature: float):
    """One copy: for every choice all rows are worked out anew."""
    aatype, p_all = found.aatype.clone(), {}
    for component in order[wanted.designed[order]].tolist():
        known = found.start(0), aatype, decoding_ranks(order, found.proteins)
        logits = found.head(found.decoder.teacher_force(*known))[component]
        p = wanted.probabilities(logits[None], torch.tensor([component]), temperature)[0]
        aatype[component] = int((p.cumsum(0) <= uniform[component] * p.sum()).sum())
        p_all[component] = p
    return aatype, p_all


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("fixed", [False, True])
def test_drawing_row_by_row_equals_working_out_everything_again(model, proteins, temperature, fixed):
    found = encoded(model, proteins)
    n, generator = len(found.aatype), torch.Generator().manual_seed(4)
    designed = torch.rand(n, generator=generator) < 0.6 if fixed else torch.ones(n, dtype=torch.bool)
    omit = torch.zeros(21, dtype=torch.bool)
    omit[[1, 20]] = True
    bias = torch.randn(n, 21, generator=generator, dtype=torch.float64)
    wanted = Constraints(designed, omit=omit, bias=bias)
    made = sample_sequences(found, wanted, copies=2, temperature=temperature, seed=5)
    uniform = random_deviates(found.proteins.sizes, range(2), seed=5)[1]
    for copy in range(2):
        aatype, p = slow(found, wanted, made.order[copy], uniform[copy], temperature)
        assert torch.equal(made.aatype[copy], aatype)
        for component, row in p.items():
            torch.testing.assert_close(made.probabilities[copy, component], row, rtol=1e-9, atol=1e-12)
        again = teacher_forced_log_probs(found, decoding_ranks(made.order[copy], found.proteins), aatype)
        torch.testing.assert_close(made.log_probs[copy], again, rtol=1e-9, atol=1e-10)
        assert torch.equal(aatype[~designed], found.aatype[~designed])
        assert not torch.isin(aatype[designed], omit.nonzero()).any()


def test_what_is_drawn_does_not_depend_on_what_is_decoded_beside_it(model, proteins):
    alone = [encoded(model, [r]) for r in proteins]
    singles = [sample_sequences(f, Constraints(torch.ones(len(f.aatype)) > 0), copies=2, temperature=1.0, seed=3) for f in alone]
    found = encoded(model, proteins)
    everything = Constraints(torch.ones(len(found.aatype), dtype=torch.bool))
    both = sample_sequences(found, everything, copies=4, temperature=1.0, seed=3)
    assert torch.equal(both.aatype[:2], torch.cat([s.aatype for s in singles], 1))
    assert not torch.equal(both.aatype, sample_sequences(found, everything, copies=4, temperature=1.0, seed=4).aatype)


def test_tied_residues_are_alike(model, proteins):
    found = encoded(model, proteins)
    everything = torch.ones(len(found.aatype), dtype=torch.bool)
    groups = [[0, 4, 10], [5, 6], [15, 30]]
    made = sample_sequences(found, Constraints(everything, groups=groups), copies=3, temperature=1.0, seed=2)
    for group in groups:
        types, p = made.aatype[:, group], made.probabilities[:, group]
        assert (types == types[:, :1]).all()
        assert (p == p[:, :1]).all()
    assert torch.equal(made.order.sort()[0], torch.arange(len(everything)).expand(3, -1))


def test_weights_of_ties_multiply_logits_before_they_are_averaged(model, proteins):
    found = encoded(model, proteins)
    n, groups = len(found.aatype), [[0, 4, 10], [5, 6]]
    weights = torch.ones(n, dtype=torch.float64)
    weights[[0, 4, 10]] = torch.tensor([2.0, -0.5, 0.0], dtype=torch.float64)
    wanted = Constraints(torch.ones(n, dtype=torch.bool), groups=groups, tie_weight=weights)
    made = sample_sequences(found, wanted, temperature=0.7, seed=2)
    assert wanted.tie_weight.tolist()[:5] == [2.0, 1.0, 1.0, 1.0, -0.5]  # not changed on the way
    with torch.no_grad():  # tied rows see each other's place, no type: the one of log_probs, up to a constant
        told = made.log_probs[0, [0, 4, 10]]
    want = ((2.0 * told[0] - 0.5 * told[1]) / 3 / 0.7).softmax(0)
    torch.testing.assert_close(made.probabilities[0, 4], want)
    assert not torch.allclose(want, sample_sequences(found, Constraints(wanted.designed, groups=groups)).probabilities[0, 4])


def test_a_tied_residue_without_a_backbone_gets_the_type_of_the_others(model, proteins):
    backbone = proteins[1].backbone.copy()
    backbone[[6, 9], 3] = np.nan
    found = encoded(model, [replace(proteins[1], backbone=backbone)])
    n = len(found.aatype)
    assert found.known.logical_not().nonzero().flatten().tolist() == [6, 9]
    everything = torch.ones(n, dtype=torch.bool)
    for group in ([2, 6], [6, 2], [9, 2, 6, 3]):
        omit = torch.zeros(n, 21, dtype=torch.bool)
        omit[6, :15] = True  # a wish for one that has none of its own
        made = sample_sequences(found, Constraints(everything, omit=omit, groups=[group]), copies=3, temperature=1.0, seed=4)
        types = made.aatype[:, group]
        assert (types == types[:, :1]).all() and (types >= 15).all()
    both = sample_sequences(found, Constraints(everything, groups=[[6, 9]]), temperature=1.0)
    assert torch.equal(both.aatype[0, [6, 9]], found.aatype[[6, 9]])  # nobody can tell


def test_the_last_number_below_one_draws_no_omitted_type(model, proteins):
    found = encoded(deepcopy(model).float(), proteins)
    n = len(found.aatype)
    wanted = Constraints(torch.ones(n, dtype=torch.bool), omit=torch.arange(21) > 17)
    uniform = torch.full((1, n), 1 - 2.0**-53, dtype=torch.float64)
    assert uniform.float().max() == 1.0  # rounded
    made = sample_sequences(found, wanted, temperature=1.0, uniform=uniform)
    assert (made.aatype == 17).all()


def test_an_order_in_which_a_designed_residue_precedes_a_fixed_one_is_refused(model, proteins):
    found = encoded(model, proteins)
    n = len(found.aatype)
    designed = torch.arange(n) != 5
    order = torch.arange(n)[None]
    with pytest.raises(OptionError, match="a designed residue comes before a fixed one"):
        sample_sequences(found, Constraints(designed), order=order)
    noise = torch.zeros(1, n)  # a deviate of 0 comes first of the designed ones alone
    noise[:, 5] = 3.0
    assert random_decoding_order(designed, found.proteins, noise)[0, 0] == 5


def test_a_profile_takes_its_share(model, proteins):
    found = encoded(model, proteins)
    n = len(found.aatype)
    profile = torch.zeros(n, 21, dtype=torch.float64)
    profile[:, 3] = 1.0
    weight = torch.full((n,), 1.0, dtype=torch.float64)
    everything = torch.ones(n, dtype=torch.bool)
    made = sample_sequences(found, Constraints(everything, pssm=profile, pssm_weight=weight), temperature=0.5)
    assert (made.aatype == 3).all()
    half = Constraints(everything, pssm=profile, pssm_weight=weight / 2)
    logits = torch.randn(2, 21, dtype=torch.float64)
    p = half.probabilities(logits, torch.tensor([0, 1]), 1.0)
    torch.testing.assert_close(p, (logits.softmax(1) + profile[:2]) / 2)


def test_scores_are_means_over_what_is_asked(model, proteins):
    found = encoded(model, proteins)
    n = len(found.aatype)
    made = sample_sequences(found, Constraints(torch.ones(n, dtype=torch.bool)), copies=2, seed=1)
    mask = torch.arange(n) % 3 == 0
    got = made.score(mask, found.proteins)
    rows = torch.arange(14)[mask[:14]]
    want = -made.log_probs[1][rows, made.aatype[1][rows]].mean()
    torch.testing.assert_close(got[1, 0], want)


def test_fixed_residues_come_first_and_orders_are_of_each_protein(model, proteins):
    found = encoded(model, proteins)
    designed = torch.arange(len(found.aatype)) % 2 == 0
    order = random_decoding_order(designed, found.proteins, torch.randn(4, len(designed)))
    for one in order:
        for part in found.proteins.split(one):
            kinds = designed[part].long()
            assert (kinds.diff() >= 0).all()
        assert (one[:14] < 14).all()
        assert torch.equal(decoding_ranks(one, found.proteins)[one[:14]], torch.arange(14))


def test_wrong_wishes_are_told(model, proteins):
    found = encoded(model, proteins)
    everything = torch.ones(len(found.aatype), dtype=torch.bool)
    with pytest.raises(OptionError, match="copies=0"):
        sample_sequences(found, Constraints(everything), copies=0)
    for temperature in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match=f"temperature={temperature:g}: a number from 0"):
            sample_sequences(found, Constraints(everything), temperature=temperature)
    with pytest.raises(OptionError, match="every type is left out at residue 0"):
        Constraints(everything, omit=torch.ones(21, dtype=torch.bool))
    with pytest.raises(OptionError, match="some are designed and some are fixed"):
        Constraints(torch.arange(len(everything)) > 0, groups=[[0, 1]])
    with pytest.raises(OptionError, match="tied twice"):
        sample_sequences(found, Constraints(everything, groups=[[0, 1], [1, 2]]))
    with pytest.raises(OptionError, match="pssm and pssm_weight"):
        Constraints(everything, pssm=torch.ones(1, 21))
    other = build_model("proteinmpnn.small", Target("class", "node", "classification", 2, ("a", "b")), seed=0)
    with pytest.raises(WiringError, match="predicts 'class', not the types of residues"):
        Decoding.of(other, collate([other.plan.precompute(proteins[0])]))

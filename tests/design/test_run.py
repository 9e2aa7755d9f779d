"""Designs and scores do not depend on how they are batched, and who cannot be designed or scored is told."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.design import DesignSpec, design_sequences, score_sequences
from protgraph.errors import OptionError, SelectionError
from protgraph.model import build_model
from protgraph.structure import ALPHABET

TARGET = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))


@pytest.fixture(scope="module")
def proteins(structures_dir):
    """A chain of 30 residues, and two chains of 20."""
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    pair = whole.select(whole.res_id <= 40)
    chain = np.where(pair.res_id <= 20, "A", "B")
    pair = replace(pair, name="pair", chain=chain, seq_pos=pair.seq_pos % 20)
    return [whole.select(whole.res_id <= 30), pair]


@pytest.fixture(scope="module")
def model():
    made = build_model("proteinmpnn.small", TARGET, seed=0).double().eval()
    with torch.no_grad():
        made.head.mlp[0].weight.mul_(8)
    return made


ARRAYS = ("aatype", "temperature", "score", "global_score", "log_probs", "probabilities", "recovery")
NUMBERS = ("native_score", "native_global_score")


def same(one, other):
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12, err_msg=name)
    assert [getattr(one, n) for n in NUMBERS] == pytest.approx([getattr(other, n) for n in NUMBERS])


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("wish", [DesignSpec(), DesignSpec(omit="A", fixed="A:3-5")])
def test_designs_do_not_depend_on_batches(model, proteins, noise, wish):
    how = {"copies": 5, "temperature": [0.5, 1.0], "seed": 3, "noise": noise, "details": True}
    whole = list(design_sequences(model, proteins, wish, **how))
    small = list(design_sequences(model, proteins, wish, **how, batch_residues=70, batch_decoded=70))
    tiny = list(design_sequences(model, proteins, wish, **how, batch_residues=1, batch_decoded=1))
    for one, *others in zip(whole, small, tiny, strict=True):
        for other in others:
            same(one, other)
    assert whole[0].aatype.shape == (10, 30) and whole[1].log_probs.shape == (10, 40, 21)
    assert len(np.unique(whole[0].aatype, axis=0)) == 10


def test_more_copies_and_temperatures_leave_the_first_ones_as_they_are(model, proteins):
    (both,) = design_sequences(model, proteins[:1], copies=4, temperature=[0.5, 1.0], seed=3)
    assert both.temperature.tolist() == [0.5] * 4 + [1.0] * 4
    for place, temperature in enumerate((0.5, 1.0)):
        (alone,) = design_sequences(model, proteins[:1], copies=2, temperature=temperature, seed=3)
        assert np.array_equal(alone.aatype, both.aatype[4 * place : 4 * place + 2])
        assert alone.native_score == pytest.approx(both.native_score)
    assert alone.log_probs is None and alone.probabilities is None


def test_every_sequence_has_noise_of_its_own(model, proteins):
    (noisy,) = design_sequences(model, proteins[:1], copies=3, noise=0.5, seed=1, details=True)
    (plain,) = design_sequences(model, proteins[:1], copies=3, seed=1, details=True)
    apart = np.abs(noisy.log_probs - plain.log_probs).max((1, 2))
    assert (apart > 1e-3).all() and len(np.unique(apart)) == 3


def test_scores_are_of_each_residue_with_a_backbone(model, proteins):
    backbone = proteins[0].backbone.copy()
    backbone[[4, 8], 0] = np.nan
    (made,) = design_sequences(model, [replace(proteins[0], backbone=backbone)], copies=2, details=True)
    assert np.flatnonzero(~made.designed).tolist() == [4, 8]
    assert np.isnan(made.log_probs[:, [4, 8]]).all() and not np.isnan(made.log_probs[:, 9:]).any()
    for copy in range(2):
        each = np.take_along_axis(made.log_probs[copy], made.aatype[copy][:, None], 1)[:, 0]
        assert made.score[copy] == pytest.approx(-np.nanmean(each))
    assert (made.aatype[:, [4, 8]] == proteins[0].aatype[[4, 8]]).all()


def test_what_cannot_be_designed_or_scored_is_told_and_the_others_go_on(model, proteins):
    none = np.full_like(proteins[0].backbone, np.nan)
    none[:, 1] = proteins[0].pos
    trace = replace(proteins[0], name="trace", backbone=none)
    for run in (lambda some, **how: design_sequences(model, some, DesignSpec(fixed="B"), **how), lambda some, **how: score_sequences(
        model, some, chains=["A"], **how)):  # fmt: skip
        refused = []
        found = list(run([trace, proteins[1]], refused=refused))
        assert [f.residues.name for f in found] == ["pair"]
        assert refused[0][0] is trace and len(refused) == 1
    for run, what in ((score_sequences, "scored"), (design_sequences, "designed")):  # alone, without an edge
        with pytest.raises(OptionError, match=f"trace: the model sees none of the residues to be {what}; 0 of 30 have"):
            list(run(model, [trace]))
    refused = []
    assert [d.residues.name for d in design_sequences(model, proteins, DesignSpec(fixed="B"), refused=refused)] == ["pair"]
    assert isinstance(refused[0][1], SelectionError)
    with pytest.raises(SelectionError, match="'B' is of no chain here"):
        list(design_sequences(model, proteins, DesignSpec(fixed="B")))


def test_scores_of_some_chains_have_their_rows_alone(model, proteins):
    pair = proteins[1]
    (both,), (one,) = score_sequences(model, [pair], seed=2), score_sequences(model, [pair], chains=["B"], seed=2)
    assert one.residues.ids == [i for i in pair.ids if i.startswith("B")]
    assert one.log_probs.shape == (20, 21) and np.abs(one.log_probs - both.log_probs[20:]).max() > 1e-6
    for mode in ("conditional", "unconditional"):
        (both,), (one,) = (score_sequences(model, [pair], chains=c, mode=mode, orders=1, seed=2) for c in ((), ("B",)))
        if mode == "unconditional":
            np.testing.assert_allclose(one.log_probs, both.log_probs[20:])
    made = next(design_sequences(model, [pair], DesignSpec(chains=("B",)), seed=2))
    (native,) = score_sequences(model, [pair], chains=["B"], seed=2)
    assert native.score == pytest.approx(made.native_score)
    letters = "".join(ALPHABET[t] for t in made.aatype[0, 20:])
    (again,) = score_sequences(model, [pair], chains=["B"], seed=2, sequences=[("first", letters)])
    assert (again.name, again.score) == ("first", pytest.approx(made.score[0]))


def test_sequences_are_of_all_chains_that_are_scored(model, proteins):
    pair = proteins[1]
    whole = pair.sequence
    parts = [("joined", whole), ("parted", f"{whole[:20]}/{whole[20:]}")]
    joined, parted = score_sequences(model, [pair], sequences=parts)
    (native,) = score_sequences(model, [pair])
    assert joined.score == parted.score == native.score
    for letters, told in ((whole[:-1], "has 39 residues; pair has 40 with a CA .A: 20, B: 20."),
                          (f"{whole[:19]}/{whole[19:]}", "has 19 / 21 residues")):  # fmt: skip
        with pytest.raises(OptionError, match=told):
            list(score_sequences(model, [pair], sequences=[("wrong", letters)]))


def test_sequences_may_be_of_some_proteins(model, proteins):
    first = proteins[0]
    letters = {first.name: [("a", "A" * 30), ("c", "C" * 30)], "pair": [("g", "G" * 40)]}
    told = list(score_sequences(model, proteins, sequences=letters, mode="unconditional"))
    assert [(s.residues.name, s.name) for s in told] == [(first.name, "a"), ("pair", "g"), (first.name, "c")]
    for s, letter in zip(told, (0, 5, 1), strict=True):
        assert (s.aatype == letter).all()
        (alone,) = score_sequences(model, [s.residues], mode="unconditional")
        np.testing.assert_allclose(s.log_probs, alone.log_probs)
    refused = []
    assert len(list(score_sequences(model, proteins, sequences={"pair": letters["pair"]}, refused=refused))) == 1
    assert "none of the sequences is of this protein" in str(refused[0][1])


@pytest.mark.parametrize(
    "options, told",
    [
        ({"copies": 0}, "copies=0: 1 sequence or more"),
        ({"temperature": [0.1, -1.0]}, "temperature=-1: a number from 0"),
        ({"temperature": []}, "there is no temperature"),
        ({"temperature": [0.1, 0.2, 0.1]}, "temperature 0.1 is given twice"),
        ({"seed": -1}, "seed=-1: a whole number from 0 on"),
        ({"noise": float("nan")}, "noise=nan: a number of Å from 0 on"),
        ({"noise": -0.1}, "noise=-0.1"),
    ],
)
def test_numbers_out_of_range_are_told(model, proteins, options, told):
    with pytest.raises(OptionError, match=told):
        list(design_sequences(model, proteins, **options))


def test_large_seeds_are_seeds(model, proteins):
    for noise in (0.0, 0.1):
        one, other = (
            next(design_sequences(model, proteins[:1], temperature=1.0, seed=s, noise=noise)) for s in (10**25, 10**25 + 1)
        )
        assert not np.array_equal(one.aatype, other.aatype)


@pytest.mark.cuda
def test_designs_and_scores_are_the_same_on_cuda(model, proteins):
    wish = DesignSpec(tied=("A:1-5,A:6-10",), omit="C", bias="A=0.5", fixed="A:20")
    there = deepcopy(model).cuda()
    for noise in (0.0, 0.2):
        how = {"copies": 3, "temperature": [0.5, 1.0], "noise": noise, "details": True}
        for one, other in zip(design_sequences(model, proteins, wish, **how), design_sequences(there, proteins, wish, **how), strict=True):
            same(one, other)
    for mode in ("forced", "conditional", "unconditional"):
        told = [list(score_sequences(m, proteins, mode=mode, chains=["A"])) for m in (model, there)]
        for one, other in zip(*told, strict=True):
            np.testing.assert_allclose(one.log_probs, other.log_probs, rtol=1e-9, atol=1e-10)

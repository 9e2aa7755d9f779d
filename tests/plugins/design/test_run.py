"""Design and scoring of several proteins: batches, seeds, noise, chains, and proteins without a result."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import DesignSpec, design_sequences, score_sequences

import protgraph as pg
from protgraph.errors import ComponentError, OptionError, SelectionError
from protgraph.model import build_model
from protgraph.structure import ALPHABET


@pytest.fixture(scope="module")
def proteins(structures_dir):
    """A chain of 30 residues, and two chains of 20."""
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    pair = whole.select(whole.res_id <= 40)
    chain = np.where(pair.res_id <= 20, "A", "B")
    pair = replace(pair, name="pair", chain=chain, seq_pos=pair.seq_pos % 20)
    return [whole.select(whole.res_id <= 30), pair]


ARRAYS = ("aatype", "temperature", "score", "global_score", "log_probs", "probabilities", "recovery")
NUMBERS = ("native_score", "native_global_score")


def assert_same_design(one, other):
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12, err_msg=name)
    assert [getattr(one, n) for n in NUMBERS] == pytest.approx([getattr(other, n) for n in NUMBERS])


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("spec", [DesignSpec(), DesignSpec(omit="A", fixed="A:3-5")])
def test_designs_do_not_depend_on_batches(model, proteins, noise, spec):
    options = {"copies": 5, "temperature": [0.5, 1.0], "seed": 3, "noise": noise, "details": True}
    whole = list(design_sequences(model, proteins, spec, **options))
    small = list(design_sequences(model, proteins, spec, **options, batch_residues=70, batch_decoded=70))
    tiny = list(design_sequences(model, proteins, spec, **options, batch_residues=1, batch_decoded=1))
    for one, *others in zip(whole, small, tiny, strict=True):
        for other in others:
            assert_same_design(one, other)
    assert whole[0].aatype.shape == (10, 30) and whole[1].log_probs.shape == (10, 40, 21)
    assert len(np.unique(whole[0].aatype, axis=0)) == 10


def test_more_copies_and_temperatures_do_not_change_earlier_sequences(model, proteins):
    (both,) = design_sequences(model, proteins[:1], copies=4, temperature=[0.5, 1.0], seed=3)
    assert both.temperature.tolist() == [0.5] * 4 + [1.0] * 4
    for place, temperature in enumerate((0.5, 1.0)):
        (alone,) = design_sequences(model, proteins[:1], copies=2, temperature=temperature, seed=3)
        assert np.array_equal(alone.aatype, both.aatype[4 * place : 4 * place + 2])
        assert alone.native_score == pytest.approx(both.native_score)
    assert alone.log_probs is None and alone.probabilities is None


def test_noise_is_resampled_for_each_sequence(model, proteins):
    (noisy,) = design_sequences(model, proteins[:1], copies=3, noise=0.5, seed=1, details=True)
    (plain,) = design_sequences(model, proteins[:1], copies=3, seed=1, details=True)
    apart = np.abs(noisy.log_probs - plain.log_probs).max((1, 2))
    assert (apart > 1e-3).all() and len(np.unique(apart)) == 3


def test_scores_cover_residues_with_a_backbone(model, proteins):
    backbone = proteins[0].backbone.copy()
    backbone[[4, 8], 0] = np.nan
    (design,) = design_sequences(model, [replace(proteins[0], backbone=backbone)], copies=2, details=True)
    assert np.flatnonzero(~design.designed).tolist() == [4, 8]
    assert np.isnan(design.log_probs[:, [4, 8]]).all() and not np.isnan(design.log_probs[:, 9:]).any()
    for copy in range(2):
        each = np.take_along_axis(design.log_probs[copy], design.aatype[copy][:, None], 1)[:, 0]
        assert design.score[copy] == pytest.approx(-np.nanmean(each))
    assert (design.aatype[:, [4, 8]] == proteins[0].aatype[[4, 8]]).all()


def test_proteins_that_cannot_be_designed_or_scored_do_not_stop_the_others(model, proteins):
    none = np.full_like(proteins[0].backbone, np.nan)
    none[:, 1] = proteins[0].pos
    trace = replace(proteins[0], name="trace", backbone=none)
    runs = (
        lambda some, **options: design_sequences(model, some, DesignSpec(fixed="B"), **options),
        lambda some, **options: score_sequences(model, some, chains=["A"], **options),
    )
    for run in runs:
        refused = []
        found = list(run([trace, proteins[1]], refused=refused))
        assert [f.residues.name for f in found] == ["pair"]
        assert refused[0][0] is trace and len(refused) == 1
    for run in (score_sequences, design_sequences):  # a batch without edges
        with pytest.raises(OptionError, match=r"trace\. 0 of 30"):
            list(run(model, [trace]))
    refused = []
    assert [d.residues.name for d in design_sequences(model, proteins, DesignSpec(fixed="B"), refused=refused)] == [
        "pair"
    ]
    assert isinstance(refused[0][1], SelectionError)
    with pytest.raises(SelectionError, match="'B'"):
        list(design_sequences(model, proteins, DesignSpec(fixed="B")))


def test_scores_of_selected_chains_have_the_rows_of_these_chains(model, proteins):
    pair = proteins[1]
    (both,), (one,) = score_sequences(model, [pair], seed=2), score_sequences(model, [pair], chains=["B"], seed=2)
    assert one.residues.ids == [i for i in pair.ids if i.startswith("B")]
    assert one.log_probs.shape == (20, 21) and np.abs(one.log_probs - both.log_probs[20:]).max() > 1e-6
    for mode in ("conditional", "unconditional"):
        (both,), (one,) = (score_sequences(model, [pair], chains=c, mode=mode, orders=1, seed=2) for c in ((), ("B",)))
        if mode == "unconditional":
            np.testing.assert_allclose(one.log_probs, both.log_probs[20:])
    design = next(design_sequences(model, [pair], DesignSpec(chains=("B",)), seed=2))
    (native,) = score_sequences(model, [pair], chains=["B"], seed=2)
    assert native.score == pytest.approx(design.native_score)
    letters = "".join(ALPHABET[t] for t in design.aatype[0, 20:])
    (again,) = score_sequences(model, [pair], chains=["B"], seed=2, sequences=[("first", letters)])
    assert (again.name, again.score) == ("first", pytest.approx(design.score[0]))


def test_sequences_cover_all_scored_chains(model, proteins):
    pair = proteins[1]
    whole = pair.sequence
    parts = [("joined", whole), ("separated", f"{whole[:20]}/{whole[20:]}")]
    joined, separated = score_sequences(model, [pair], sequences=parts)
    (native,) = score_sequences(model, [pair])
    assert joined.score == separated.score == native.score
    for letters, in_message in ((whole[:-1], "39 .*40 .*A: 20, B: 20"), (f"{whole[:19]}/{whole[19:]}", "19 / 21")):
        with pytest.raises(OptionError, match=in_message):
            list(score_sequences(model, [pair], sequences=[("wrong", letters)]))


def test_sequences_can_be_given_per_protein(model, proteins):
    first = proteins[0]
    letters = {first.name: [("a", "A" * 30), ("c", "C" * 30)], "pair": [("g", "G" * 40)]}
    scores = list(score_sequences(model, proteins, sequences=letters, mode="unconditional"))
    assert [(s.residues.name, s.name) for s in scores] == [(first.name, "a"), ("pair", "g"), (first.name, "c")]
    for s, letter in zip(scores, (0, 5, 1), strict=True):
        assert (s.aatype == letter).all()
        (alone,) = score_sequences(model, [s.residues], mode="unconditional")
        np.testing.assert_allclose(s.log_probs, alone.log_probs)
    refused = []
    assert len(list(score_sequences(model, proteins, sequences={"pair": letters["pair"]}, refused=refused))) == 1
    assert first.name in str(refused[0][1])


@pytest.mark.parametrize(
    "options, in_message",
    [
        ({"copies": 0}, "copies: 0"),
        ({"temperature": [0.1, -1.0]}, "temperature: -1"),
        ({"temperature": []}, "temperature"),
        ({"temperature": [0.1, 0.2, 0.1]}, "0.1"),
        ({"seed": -1}, "seed: -1"),
        ({"noise": float("nan")}, "noise: nan"),
        ({"noise": -0.1}, "noise: -0.1"),
    ],
)
def test_numbers_out_of_range_are_errors(model, proteins, options, in_message):
    with pytest.raises(OptionError, match=in_message):
        list(design_sequences(model, proteins, **options))


def test_large_seeds_give_different_sequences(model, proteins):
    for noise in (0.0, 0.1):
        one, other = (
            next(design_sequences(model, proteins[:1], temperature=1.0, seed=s, noise=noise))
            for s in (10**25, 10**25 + 1)
        )
        assert not np.array_equal(one.aatype, other.aatype)


@pytest.mark.parametrize("mode", ["teacher_forced", "conditional", "unconditional"])
def test_scores_that_are_nan_are_refused_with_the_component(structures_dir, mode):
    files = [structures_dir / f"{name}.bcif" for name in ("1crn", "1ubq", "1orc")]
    proteins = [pg.clean(pg.load_structure(file)) for file in files]
    model = pg.build_model("proteinmpnn.small", pg.tasks.get("inverse_folding").target, seed=0).eval()
    refused = []
    assert len(list(score_sequences(model, proteins, mode=mode, refused=refused))) == 3 and not refused
    name = next(name for name, _ in model.named_parameters() if name.startswith("head"))
    with torch.no_grad():
        dict(model.named_parameters())[name][:] = torch.nan
    assert not list(score_sequences(model, proteins, mode=mode, refused=refused))
    assert [r.name for r, _ in refused] == ["1crn", "1ubq", "1orc"]
    assert all(isinstance(e, ComponentError) and name in str(e) and r.name in str(e) for r, e in refused)
    with pytest.raises(ComponentError, match=name):
        list(score_sequences(model, proteins[:1], mode=mode))


def test_a_refused_protein_is_the_one_that_was_given(model, proteins):
    """Also for a model that reads a row for each missing residue number."""
    network = build_model("proteinmpnn.exact_v_48_020", model.target, seed=0).eval()
    with torch.no_grad():
        network.head.mlp[0].weight.fill_(torch.nan)
    incomplete = proteins[0].select(np.arange(30) != 9)
    refused = []
    assert not list(score_sequences(network, [incomplete], refused=refused))
    assert [residues is incomplete for residues, _ in refused] == [True]


@pytest.mark.cuda
def test_designs_and_scores_are_the_same_on_cuda(model, proteins):
    spec = DesignSpec(tied=("A:1-5,A:6-10",), omit="C", bias="A=0.5", fixed="A:20")
    there = deepcopy(model).cuda()
    for noise in (0.0, 0.2):
        options = {"copies": 3, "temperature": [0.5, 1.0], "noise": noise, "details": True}
        for one, other in zip(
            design_sequences(model, proteins, spec, **options),
            design_sequences(there, proteins, spec, **options),
            strict=True,
        ):
            assert_same_design(one, other)
    for mode in ("teacher_forced", "conditional", "unconditional"):
        scores = [list(score_sequences(m, proteins, mode=mode, chains=["A"])) for m in (model, there)]
        for one, other in zip(*scores, strict=True):
            np.testing.assert_allclose(one.log_probs, other.log_probs, rtol=1e-9, atol=1e-10)

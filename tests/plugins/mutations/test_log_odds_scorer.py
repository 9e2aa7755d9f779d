"""Zero-shot scores: one decoding pass per set as the slow truth, signs, antisymmetry, no noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.design import encode, score_sequences
from protgraph_plugins.mutations import LogOddsScorer, MutationScorer, parse_mutations, scan_mutations

from protgraph.errors import MutationError, OptionError
from protgraph.model import pretrained
from protgraph.nn.decoder import Decoder
from protgraph.structure import ALPHABET, Residues, clean, load_structure

MODES = ("conditional", "unconditional", "teacher_forced")


@pytest.fixture(scope="module")
def model(proteinmpnn_folder):
    return pretrained("proteinmpnn.v_48_020")


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    return whole.select(np.arange(len(whole)) < 20)


@pytest.fixture(scope="module")
def dimer(structures_dir) -> Residues:
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    return whole.select(np.isin(np.arange(len(whole)), [*range(40), *range(160, 200)]))


def some_variants(r: Residues) -> list[tuple]:
    """Return single and multiple mutations to types that differ from the wild type."""
    rows = [(1,), (4,), (2, 3), (0, 5, 9), (1, 12)]
    texts = []
    for members in rows:
        parts = []
        for k, row in enumerate(members):
            old = r.sequence[row]
            new = ALPHABET[(ALPHABET.index(old) + 3 + k) % 20]
            parts.append(f"{r.chain[row]}:{old}{r.res_id[row]}{new}")
        texts.append("+".join(parts))
    return [parse_mutations(text) for text in texts]


@torch.no_grad()
def slow_score(model, r: Residues, variant, *, mode: str, orders: int, seed: int) -> float:
    """Compute a score from whole passes of the decoder, with ranks from the documented generator."""
    decoding = encode(model, [r])
    ids, total = r.ids, 0.0
    rows = torch.tensor([ids.index(m.residue) for m in variant])
    old, new = (torch.tensor([ALPHABET.index(getattr(m, side)) for m in variant]) for side in ("wild_type", "mutant"))
    for copy in range(orders):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + copy)
        noise = torch.randn(len(r), generator=generator, dtype=torch.float64)
        rank = noise.abs().argsort(stable=True).argsort()
        state = decoding.start(copies=0)
        if mode == "teacher_forced":
            sums = []
            for types in (decoding.aatype, decoding.aatype.index_put((rows,), new)):
                h = decoding.decoder.teacher_force(state, types, rank)
                sums.append(decoding.head(h).log_softmax(-1).double()[torch.arange(len(r)), types].sum())
            total += float(sums[0] - sums[1])
        else:
            rank = torch.zeros_like(rank) if mode == "unconditional" else rank.index_fill(0, rows, len(r))
            h = decoding.decoder.teacher_force(state, decoding.aatype, rank)[rows]
            log_probs = decoding.head(h).log_softmax(-1).double()
            at = torch.arange(len(rows))
            total += float((log_probs[at, old] - log_probs[at, new]).sum())
    return total / orders


@pytest.mark.parametrize("mode", MODES)
def test_scores_equal_whole_passes_of_the_decoder(model, residues, mode):
    variants = some_variants(residues)
    scores = LogOddsScorer(model, mode=mode, orders=2, seed=3).score(residues, variants)
    expected = [slow_score(model, residues, v, mode=mode, orders=2, seed=3) for v in variants]
    np.testing.assert_allclose(scores, expected, atol=2e-5)
    assert np.unique(scores.round(4)).size == len(variants), "mutants differ"


@pytest.mark.slow
def test_single_mutations_equal_the_command_score(model, dimer):
    """`protgraph score --mode conditional` has the log-probabilities of all types, against the published program."""
    (scores,) = score_sequences(model, [dimer], mode="conditional", orders=2, seed=1)
    scan = scan_mutations(LogOddsScorer(model, orders=2, seed=1), dimer)
    log_p = scores.log_probs[:, :20]
    expected = np.take_along_axis(log_p, dimer.aatype[:, None], 1) - log_p
    np.testing.assert_allclose(scan.scores, expected[scan.rows], atol=1e-5)


def test_a_scan_equals_one_by_one_scoring(model, residues):
    scorer = LogOddsScorer(model)
    scan = scan_mutations(scorer, residues)
    assert scan.scores.shape == (20, 20) and len(np.unique(scan.substitutions.round(3))) > 300
    for row, number, new in [(0, 0, "W"), (7, 7, "A"), (19, 19, "P")]:
        text = f"A:{residues.sequence[row]}{residues.res_id[row]}{new}"
        (alone,) = scorer.score(residues, [parse_mutations(text)])
        assert abs(alone - scan.scores[number, ALPHABET.index(new)]) <= 1e-5


@pytest.mark.parametrize("mode", MODES)
def test_the_wild_type_is_zero_and_reverse_is_negative(model, residues, mode):
    scorer = LogOddsScorer(model, mode=mode)
    old = residues.sequence[3]
    same = parse_mutations(f"A:{old}{residues.res_id[3]}=")
    assert scorer.score(residues, [(), same, ()]).tolist() == [0.0, 0.0, 0.0]
    variant = some_variants(residues)[2]
    mutated = residues_with_types(residues, variant)
    (direct,), (reverse,) = scorer.score(residues, [variant]), scorer.score(mutated, [[m.reverse() for m in variant]])
    assert abs(direct) > 0.01 and abs(direct + reverse) < 1e-5


def residues_with_types(r: Residues, variant) -> Residues:
    """Return the same backbone with the mutant types."""
    from dataclasses import replace

    aatype = r.aatype.copy()
    for m in variant:
        aatype[r.ids.index(m.residue)] = ALPHABET.index(m.mutant)
    return replace(r, aatype=aatype)


def test_a_synonymous_mutation_does_not_mask_its_site(model, residues):
    scorer, old = LogOddsScorer(model), residues.sequence[3]
    (alone,) = scorer.score(residues, [some_variants(residues)[0]])
    with_same = [*some_variants(residues)[0], *parse_mutations(f"A:{old}{residues.res_id[3]}=")]
    assert scorer.score(residues, [with_same])[0] == alone


def test_scores_have_no_noise_and_do_not_depend_on_the_other_variants(model, residues):
    model.train()
    scorer, variants = LogOddsScorer(model), some_variants(residues)
    scores = scorer.score(residues, variants)
    model.train()  # e.g. by another part of a program; dropout would be active
    np.testing.assert_array_equal(scores, scorer.score(residues, variants))
    torch.manual_seed(7)
    alone = [scorer.score(residues, [v])[0] for v in variants[::-1]]
    np.testing.assert_allclose(alone[::-1], scores, atol=1e-5)


def test_orders_are_averaged_and_seeded(model, residues):
    variants = some_variants(residues)
    one, two = (LogOddsScorer(model, orders=1, seed=s).score(residues, variants) for s in (0, 1))
    assert np.abs(one - two).max() > 1e-3
    assert np.array_equal(one, LogOddsScorer(model, orders=1, seed=0).score(residues, variants))


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 3])
def test_masked_rows_equal_a_pass_per_set_in_float64(model, dimer, depth, float64):
    decoding = encode(pretrained("proteinmpnn.v_48_020").double(), [dimer.with_noise(0.01, seed=1)])
    decoder, rank = decoding.decoder, torch.randperm(len(dimer), generator=torch.Generator().manual_seed(0))
    sites = [torch.tensor(s) for s in ([5], [3, 40], [60], [10, 11, 12, 50], [0], [79, 78], [5])]
    layers, decoder.layers = decoder.layers, decoder.layers[:depth]
    try:
        state = decoding.start(copies=0)
        fast = decoder.masked_rows(state, decoding.aatype, rank, sites)
        slow = Decoder.masked_rows(decoder, state, decoding.aatype, rank, sites)
    finally:
        decoder.layers = layers
    assert fast.shape == slow.shape == (12, 128) and slow.abs().max() > 0.1
    assert (fast - slow).abs().max() <= 1e-12 * slow.abs().max()


def test_residues_without_a_backbone_have_no_value(model, residues):
    from dataclasses import replace

    backbone = residues.backbone.copy()
    backbone[4, 3] = np.nan
    broken = replace(residues, backbone=backbone)
    variants = some_variants(residues)
    scores = LogOddsScorer(model).score(broken, variants)
    assert np.isnan(scores).tolist() == [False, True, False, False, False]
    scan = scan_mutations(LogOddsScorer(model), broken)
    assert scan.without_value == [residues.ids[4]] and scan.scores[4, residues.aatype[4]] == 0


def test_wrong_requests_raise(model, residues):
    scorer = LogOddsScorer(model)
    assert isinstance(scorer, MutationScorer) and scorer.unit == ""
    with pytest.raises(MutationError):
        scorer.score(residues, [parse_mutations("A:W1A")])
    for options in ({"mode": "masked"}, {"orders": 0}, {"seed": -1}):
        with pytest.raises(OptionError):
            LogOddsScorer(model, **options)

"""Masked marginals of ESM-2 with random weights: transformers' own model, one sequence at a time, as the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS, END, MASK, START
from protgraph_plugins.mutations import MutationScorer, parse_mutations

from protgraph import mutation_scorers
from protgraph.errors import CheckpointError, FieldError
from protgraph.structure import ALPHABET, Residues, clean, load_structure

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    return whole.select(np.isin(np.arange(len(whole)), [*range(30), *range(160, 180)]))


@pytest.fixture(scope="module")
def scorer():
    return mutation_scorers.create("esm2", options={"weights": "random:tiny:3", "device": "cpu"})


def change(r: Residues, row: int, step: int) -> str:
    old = r.sequence[row]
    return f"{r.chain[row]}:{old}{r.res_id[row]}{ALPHABET[(ALPHABET.index(old) + step) % 20]}"


def variants_of(r: Residues) -> list:
    texts = [
        change(r, 3, 2),
        change(r, 3, 5),
        f"{change(r, 3, 2)}+{change(r, 9, 4)}+{change(r, 35, 1)}",
        change(r, 49, 7),
    ]
    return [parse_mutations(text) for text in texts]


@torch.no_grad()
def slow_score(model, r: Residues, variant) -> float:
    total, ids = 0.0, r.ids
    rows = [ids.index(m.residue) for m in variant]
    for name in r.chain_names:
        chain = np.flatnonzero(r.chain == name)
        tokens = [AATYPE_TOKENS[kind] for kind in r.aatype[chain]]
        here = [(k, m) for row, m in zip(rows, variant, strict=True) for k in np.flatnonzero(chain == row)]
        for k, _ in here:
            tokens[k] = MASK
        log_p = model(input_ids=torch.tensor([[START, *tokens, END]])).logits[0].double().log_softmax(-1)
        for k, m in here:
            old, new = (AATYPE_TOKENS[ALPHABET.index(letter)] for letter in (m.wild_type, m.mutant))
            total += float(log_p[k + 1, old] - log_p[k + 1, new])
    return total


def test_scores_equal_single_sequences_of_transformers(scorer, residues):
    variants = variants_of(residues)
    scores = scorer.score(residues, variants)
    np.testing.assert_allclose(scores, [slow_score(scorer.model, residues, v) for v in variants], atol=1e-5)
    assert isinstance(scorer, MutationScorer) and len(set(scores.round(6))) == 4 and np.abs(scores).min() > 1e-4


def test_the_wild_type_is_zero_and_scores_do_not_depend_on_others(scorer, residues):
    variants = variants_of(residues)
    together = scorer.score(residues, [(), *variants])
    assert together[0] == 0
    np.testing.assert_allclose([scorer.score(residues, [v])[0] for v in variants], together[1:], atol=1e-6)


def test_long_chains_are_refused_or_split_into_windows(residues):
    create = mutation_scorers.create
    options = {"weights": "random:tiny:3", "device": "cpu", "max_len": 20}
    variants = variants_of(residues)
    with pytest.raises(FieldError):
        create("esm2", options=options).score(residues, variants)
    chunked = create("esm2", options=options | {"long": "chunk"}).score(residues, variants)
    assert np.isfinite(chunked).all() and len(set(chunked.round(6))) == 4


def test_a_checkpoint_without_language_model_head_is_refused(tmp_path):
    from protgraph_plugins.esm.checkpoint import load_esm, load_masked_lm

    load_masked_lm("random:tiny").save_pretrained(tmp_path / "whole")
    loaded = load_masked_lm(str(tmp_path / "whole"))
    torch.testing.assert_close(loaded.state_dict(), load_masked_lm("random:tiny").state_dict())
    load_esm("random:tiny").save_pretrained(tmp_path / "half")
    with pytest.raises(CheckpointError):
        load_masked_lm(str(tmp_path / "half"))

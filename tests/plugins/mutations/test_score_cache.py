"""Kept scores of mutation models: a second run scores nothing again, and every change of the input does."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from protgraph_plugins.mutations import find_residues, parse_mutations
from protgraph_plugins.mutations.comparison import ScoreCache, scorer_digest
from torch import nn

from protgraph.structure import clean, load_structure


class CountingScorer:
    """Score = scale · (number of the residue); counts its calls."""

    name, unit = "counting", "kcal/mol"

    def __init__(self, scale: float = 1.0) -> None:
        self.scale, self.calls, self.model = scale, [], nn.Linear(2, 2)

    def score(self, residues, variants):
        self.calls.append(len(variants))
        return np.array([np.nan if not v else self.scale * find_residues(residues, v).sum() for v in variants])


@pytest.fixture(scope="module")
def structure_file(structures_dir):
    return structures_dir / "1ubq.bcif"


@pytest.fixture(scope="module")
def ubiquitin(structure_file):
    return clean(load_structure(structure_file))


VARIANTS = [parse_mutations(text) for text in ("A:I44A", "WT", "A:L67A+A:I44A")]


def test_a_second_run_reads_the_scores_of_the_first(tmp_path, ubiquitin, structure_file):
    path = tmp_path / "scores.jsonl"
    first, second = CountingScorer(), CountingScorer()
    second.model.load_state_dict(first.model.state_dict())
    want = ScoreCache(path).score(first, ubiquitin, VARIANTS, source=structure_file)
    cache = ScoreCache(path)
    np.testing.assert_array_equal(cache.score(second, ubiquitin, VARIANTS, source=structure_file), want)
    assert (first.calls, second.calls, cache.found) == ([3], [], 1) and np.isnan(want[1]) and want[0] == 43


def test_an_unfinished_line_is_scored_again(tmp_path, ubiquitin, structure_file):
    path = tmp_path / "scores.jsonl"
    ScoreCache(path).score(CountingScorer(), ubiquitin, VARIANTS, source=structure_file)
    path.write_bytes(path.read_bytes()[:-9])
    scorer = CountingScorer()
    ScoreCache(path).score(scorer, ubiquitin, VARIANTS, source=structure_file)
    assert scorer.calls == [3] and json.loads(path.read_text().splitlines()[-1])["scorer"] == "counting"


def test_other_variants_files_options_or_weights_are_scored(tmp_path, ubiquitin, structure_file):
    path, scorer = tmp_path / "scores.jsonl", CountingScorer()
    ScoreCache(path).score(scorer, ubiquitin, VARIANTS, source=structure_file)
    other_file = tmp_path / "other.bcif"
    other_file.write_bytes(structure_file.read_bytes() + b" ")
    cache = ScoreCache(path)
    for source, variants in ((structure_file, VARIANTS[:2]), (other_file, VARIANTS)):
        cache.score(scorer, ubiquitin, variants, source=source)
    assert cache.found == 0 and scorer.calls == [3, 2, 3]
    other = CountingScorer(2.0)
    other.model.load_state_dict(scorer.model.state_dict())
    assert scorer_digest(other) != scorer_digest(scorer)
    other.scale = 1.0
    assert scorer_digest(other) == scorer_digest(scorer)
    with torch.no_grad():
        other.model.weight[0, 0] += 1
    assert scorer_digest(other) != scorer_digest(scorer)


def test_a_structure_without_a_file_is_always_scored(tmp_path, ubiquitin):
    scorer = CountingScorer()
    for _ in range(2):
        ScoreCache(tmp_path / "scores.jsonl").score(scorer, ubiquitin, VARIANTS)
    assert scorer.calls == [3, 3]

"""Kept scores of mutation models: a second run scores nothing again, and every change of the input does."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from torch import nn

from protgraph.bench.mutation_cache import ScoreCache, scorer_digest
from protgraph.structure import clean, load_structure
from protgraph.structure.mutation import find_residues, parse_mutations


class CountingScorer:
    """Score = scale · (number of the residue); counts its calls."""

    name, unit = "counting", "kcal/mol"

    def __init__(self, scale: float = 1.0) -> None:
        self.scale, self.calls, self.model = scale, [], nn.Linear(2, 2)

    def score(self, residues, variants):
        self.calls.append(len(variants))
        return np.array([np.nan if not v else self.scale * find_residues(residues, v).sum() for v in variants])


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return clean(load_structure(structures_dir / "1ubq.bcif"))


VARIANTS = [parse_mutations(text) for text in ("A:I44A", "WT", "A:L67A+A:I44A")]


def test_a_second_run_reads_the_scores_of_the_first(tmp_path, ubiquitin):
    path = tmp_path / "scores.jsonl"
    first, second = CountingScorer(), CountingScorer()
    second.model.load_state_dict(first.model.state_dict())
    want = ScoreCache(path).score(first, ubiquitin, VARIANTS)
    cache = ScoreCache(path)
    np.testing.assert_array_equal(cache.score(second, ubiquitin, VARIANTS), want)
    assert (first.calls, second.calls, cache.found) == ([3], [], 1) and np.isnan(want[1]) and want[0] == 43


def test_an_unfinished_line_is_scored_again(tmp_path, ubiquitin):
    path = tmp_path / "scores.jsonl"
    ScoreCache(path).score(CountingScorer(), ubiquitin, VARIANTS)
    path.write_bytes(path.read_bytes()[:-9])
    scorer = CountingScorer()
    ScoreCache(path).score(scorer, ubiquitin, VARIANTS)
    assert scorer.calls == [3] and json.loads(path.read_text().splitlines()[-1])["scorer"] == "counting"


@pytest.fixture(scope="module")
def with_ligands(structures_dir):
    return clean(load_structure(structures_dir / "1hsg.bcif"), ligands=True)


def _changed(value):
    """Return an array that differs from another one in its last value, or the opposite of a bool."""
    if not isinstance(value, np.ndarray):
        return not value
    other = value.astype(object) if value.dtype.kind in "UO" else value.copy()
    other[-1] = f"{other[-1]}x" if isinstance(other[-1], str) else other[-1] + 1
    return other.astype(str) if value.dtype.kind == "U" else other


def _fields(part):
    return sorted({f.name for f in fields(part)} - {"report", "ligands", "name"})


def test_every_changed_field_of_a_structure_is_scored(tmp_path, with_ligands):
    path, scorer, variants = tmp_path / "scores.jsonl", CountingScorer(), [parse_mutations("WT")]
    ScoreCache(path).score(scorer, with_ligands, variants)
    ligands = with_ligands.ligands
    others = {name: {name: _changed(getattr(with_ligands, name))} for name in _fields(with_ligands)}
    others |= {
        f"ligands.{name}": {"ligands": replace(ligands, **{name: _changed(getattr(ligands, name))})}
        for name in _fields(ligands)
    }
    others |= {"name": {"name": "other"}, "ligands": {"ligands": None}}
    assert {"b_factor", "chain", "predicted", "ligands.atom_pos", "ligands.atom_element"} <= others.keys()
    for change in others.values():
        cache = ScoreCache(path)
        cache.score(scorer, replace(with_ligands, **change), variants)
        assert cache.found == 0, change.keys()
    assert len(scorer.calls) == 1 + len(others)


def test_an_equal_structure_of_another_file_is_not_scored_again(tmp_path, structures_dir, with_ligands):
    path, scorer, variants = tmp_path / "scores.jsonl", CountingScorer(), [parse_mutations("WT")]
    ScoreCache(path).score(scorer, with_ligands, variants)
    again = clean(load_structure(structures_dir / "1hsg.bcif"), ligands=True)
    wide = replace(again, chain=again.chain.astype("U9"), res_name=again.res_name.astype(object))
    for residues in (again, wide):
        cache = ScoreCache(path)
        cache.score(scorer, residues, variants)
        assert cache.found == 1
    assert scorer.calls == [1]


def test_other_variants_structures_options_or_weights_are_scored(tmp_path, ubiquitin):
    path, scorer = tmp_path / "scores.jsonl", CountingScorer()
    ScoreCache(path).score(scorer, ubiquitin, VARIANTS)
    moved = replace(ubiquitin, atom_pos=ubiquitin.atom_pos + np.float32(1))
    cache = ScoreCache(path)
    for residues, variants in ((ubiquitin, VARIANTS[:2]), (moved, VARIANTS)):
        cache.score(scorer, residues, variants)
    assert cache.found == 0 and scorer.calls == [3, 2, 3]
    other = CountingScorer(2.0)
    other.model.load_state_dict(scorer.model.state_dict())
    assert scorer_digest(other) != scorer_digest(scorer)
    other.scale = 1.0
    assert scorer_digest(other) == scorer_digest(scorer)
    with torch.no_grad():
        other.model.weight[0, 0] += 1
    assert scorer_digest(other) != scorer_digest(scorer)


class OtherLayer(nn.Linear):
    """Layer with code of its own."""


def test_other_code_of_a_layer_is_scored_again():
    scorer, other = CountingScorer(), CountingScorer()
    other.model = OtherLayer(2, 2)
    other.model.load_state_dict(scorer.model.state_dict())
    assert scorer_digest(other) != scorer_digest(scorer) == scorer_digest(scorer)

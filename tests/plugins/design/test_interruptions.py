"""Ctrl-C keeps the sequences that were finished, and the command prints how to continue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.design import design_sequences, sampling

import protgraph as pg
from protgraph.errors import Interrupted, OptionError
from protgraph.task.builtin import INVERSE_FOLDING
from tests.cli.test_interrupted import FILES, here, interrupt_at, one_by_one

__all__ = ["here"]


@pytest.fixture(scope="module")
def designer():
    return pg.build_model("proteinmpnn.small", INVERSE_FOLDING.target, seed=0).eval()


def test_sequences_of_finished_chunks_are_kept(here, designer, monkeypatch):
    proteins = [pg.clean(pg.load_structure(path)) for path in sorted(Path("A").iterdir())[:1]]
    options = {"copies": 6, "temperature": [0.1, 0.5], "batch_decoded": 2 * len(proteins[0])}
    counts = []
    (whole,) = design_sequences(designer, proteins, on_sequences=lambda *count: counts.append(count), **options)
    size = len(proteins[0])
    assert counts == [(2, 2 * size), (4, 4 * size), (4, 4 * size), (2, 2 * size)]  # few first, for an estimate
    interrupt_at(monkeypatch, "protgraph_plugins.design.sampling.sample_sequences", 6)  # the second of chunk 3
    designs = design_sequences(designer, proteins, **options)
    part = next(designs)
    with pytest.raises(Interrupted):
        next(designs)
    assert len(part.aatype) == 6
    assert np.array_equal(part.aatype, whole.aatype[[0, 1, 2, 6, 7, 8]])
    assert np.array_equal(part.temperature, [0.1] * 3 + [0.5] * 3)


def test_design_writes_the_sequences_that_were_finished(run, here, designer, monkeypatch):
    monkeypatch.setattr("protgraph_plugins.design.design_command.load_model", lambda *_: designer)
    monkeypatch.setattr("protgraph_plugins.design.run.BATCH_DECODED", 100)
    files = sorted(Path("A").iterdir())
    interrupt_at(monkeypatch, "protgraph_plugins.design.sampling.sample_sequences", 2)
    monkeypatch.setattr(sampling.SamplingRequest, "chunks", lambda self, n: iter([range(2), range(2, 4)]))
    result = run("design", files[0], "--n", 4, "-o", "d.fasta")
    assert result.code == 130 and "2 of 4 sequences" in result.err, result.err
    assert Path("d.fasta").read_text().count("sample=") == 2


def test_design_lists_the_proteins_that_are_left(run, here, designer, monkeypatch):
    monkeypatch.setattr("protgraph_plugins.design.design_command.load_model", lambda *_: designer)
    one_by_one(monkeypatch, "protgraph_plugins.design.run")
    interrupt_at(monkeypatch, "protgraph_plugins.design.sampling.encode", 3)
    result = run("design", "A", "-o", "d.fasta")
    assert result.code == 130 and f"2 of {FILES} files" in result.err, result.err
    assert Path("d.fasta").read_text().count("sample=") == 2
    assert len(Path("d.fasta.left.txt").read_text().split()) == FILES - 2


def test_too_many_sequences_are_refused_at_once(here, designer):
    with pytest.raises(OptionError, match="100,000"):
        next(design_sequences(designer, [], copies=10**9))

"""Tests of ``protgraph generate``: sequences, headers, options and errors."""

from __future__ import annotations

import pytest

import protgraph as pg
from protgraph.checkpoint import Checkpoint, save_checkpoint
from protgraph.structure.io.fasta import load_fasta, read_fasta
from protgraph.task import language_modeling as language


@pytest.fixture
def saved(tmp_path):
    """What training would write of a model with random weights."""

    def save(name, task):
        model = pg.build_model(name, task.target, seed=0).eval()
        checkpoint = Checkpoint(model, task.name, hidden=task.inputs.hidden, visible_types=task.inputs.visible_types)
        return save_checkpoint(tmp_path / f"{name}.safetensors", checkpoint)

    return save


@pytest.mark.slow
def test_sequences_with_their_figures_in_the_headers(run, saved, tmp_path):
    path, out = saved("gpt", language.NEXT_RESIDUE), tmp_path / "new.fasta"
    command = ("generate", path, "--n", 3, "--length", 90, "--prompt", "MKT", "--temperature", 0.8, "--top-k", 10)
    result = run(*command, "--top-p", 0.9, "--seed", 1, "-o", out)
    assert (result.code, result.err.strip()) == (0, "")
    assert "3 sequences of 90 residues, mean perplexity" in result.out
    made = [r.sequence for r in load_fasta(out)]
    assert [len(s) for s in made] == 3 * [90] and all(s.startswith("MKT") for s in made)
    header = read_fasta(out)[0].header
    assert header.startswith("gpt_1 length=90 prompt=3 log_prob=-") and "perplexity=" in header
    assert header.endswith("temperature=0.8 top_k=10 top_p=0.9 seed=1")

"""What assess says equals what is counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.design import design_sequences, score_sequences
from protgraph.design.evaluate import evaluate_design
from protgraph.errors import OptionError
from protgraph.model import build_model
from protgraph.structure import ALPHABET
from protgraph.task.builtin import INVERSE_FOLDING

TARGET = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))


def test_metrics_are_means_over_residues_and_over_proteins(structures_dir):
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    aatype = whole.aatype.copy()
    aatype[5] = 20  # of no known type: it does not count
    proteins = [whole.select(whole.res_id <= 30), replace(whole, aatype=aatype)]
    model = build_model("proteinmpnn.small", TARGET, seed=0).eval()
    found = evaluate_design(model, proteins, samples=2, orders=3, temperature=1.0, seed=7)
    each, right, shares = [], [], []
    for told in score_sequences(model, proteins, orders=3, seed=7):
        counts = told.residues.aatype < 20
        each.append(-told.log_probs[np.arange(len(counts)), told.residues.aatype][counts])
    for made in design_sequences(model, proteins, copies=2, temperature=1.0, seed=7):
        counts = made.residues.aatype < 20
        same = (made.aatype == made.residues.aatype)[:, counts]
        right.append(same.flatten())
        shares.append(same.mean())
    assert found.residues == 30 + 75
    want = {
        "perplexity": np.exp(np.concatenate(each).mean()),
        "recovery": np.concatenate(right).mean(),
        "recovery_median": np.median(shares),
        "perplexity_mean": np.mean([np.exp(e.mean()) for e in each]),
        "recovery_mean": np.mean(shares),
    }
    assert found.metrics == pytest.approx(want, rel=1e-9)
    assert list(found.metrics) == [m.name for m in INVERSE_FOLDING.metrics]
    assert found.confusion.sum() == 2 * (30 + 75)
    assert np.trace(found.confusion) / found.confusion.sum() == pytest.approx(found.metrics["recovery"])
    with pytest.raises(OptionError, match="no protein to assess"):
        evaluate_design(model, [])

"""Metrics of sequence design against direct computation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.design import design_sequences, evaluate_design, score_sequences

import protgraph as pg
from protgraph.errors import OptionError
from protgraph.task.builtin import INVERSE_FOLDING


@pytest.mark.slow
def test_metrics_are_means_over_residues_and_over_chains(structures_dir, model):
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    aatype = whole.aatype.copy()
    aatype[5] = 20  # type X is left out
    proteins = [whole.select(whole.res_id <= 30), replace(whole, aatype=aatype)]
    result = evaluate_design(model, proteins, samples=2, orders=3, temperature=1.0, seed=7)
    losses, recovered, recoveries = [], [], []
    for scores in score_sequences(model, proteins, orders=3, seed=7):
        mask = scores.residues.aatype < 20
        losses.append(-scores.log_probs[np.arange(len(mask)), scores.residues.aatype][mask])
    for design in design_sequences(model, proteins, copies=2, temperature=1.0, seed=7):
        mask = design.residues.aatype < 20
        same = (design.aatype == design.residues.aatype)[:, mask]
        recovered.append(same.flatten())
        recoveries.append(same.mean())
    assert result.residues == 30 + 75
    want = {
        "perplexity": np.exp(np.concatenate(losses).mean()),
        "recovery": np.concatenate(recovered).mean(),
        "recovery_median": np.median(recoveries),
        "perplexity_mean": np.mean([np.exp(e.mean()) for e in losses]),
        "recovery_mean": np.mean(recoveries),
    }
    assert result.metrics == pytest.approx(want, rel=1e-9)
    assert list(result.metrics) == [m.name for m in INVERSE_FOLDING.metrics]
    assert result.confusion.sum() == 2 * (30 + 75)
    assert np.trace(result.confusion) / result.confusion.sum() == pytest.approx(result.metrics["recovery"])
    with pytest.raises(OptionError):
        evaluate_design(model, [])

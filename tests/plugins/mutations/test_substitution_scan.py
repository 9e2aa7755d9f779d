"""Ctrl-C keeps the finished residues of a scan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.mutations import substitution_scan

import protgraph as pg
from protgraph.errors import Interrupted
from tests.cli.test_interrupted import here, interrupt_at, rows_of

__all__ = ["here"]


class Scorer:
    name, unit, convention = "test", "", ""

    def score(self, residues, variants):
        return np.array([float(sum(m.res_id for m in variant)) for variant in variants])


def test_a_scan_in_parts_is_that_of_one_call_and_keeps_finished_residues(here, monkeypatch):
    residues = pg.clean(pg.load_structure(sorted(Path("A").iterdir())[-1]))
    with monkeypatch.context() as patch:
        patch.setattr(substitution_scan, "_AT_ONCE", 10**6)
        whole = substitution_scan.scan_mutations(Scorer(), residues)
    monkeypatch.setattr(substitution_scan, "_AT_ONCE", 7)
    assert np.array_equal(substitution_scan.scan_mutations(Scorer(), residues).scores, whole.scores)
    interrupt_at(monkeypatch, "protgraph_plugins.mutations.substitution_scan._substitutions", 3)
    with pytest.raises(Interrupted) as caught:
        substitution_scan.scan_mutations(Scorer(), residues)
    part = caught.value.result
    assert len(part.rows) == 14 and np.array_equal(part.scores, whole.scores[:14])


def test_scan_writes_the_residues_that_were_finished(run, here, monkeypatch):
    monkeypatch.setattr("protgraph_plugins.mutations.scan.load_scorer", lambda *_, **__: Scorer())
    monkeypatch.setattr(substitution_scan, "_AT_ONCE", 7)
    interrupt_at(monkeypatch, "protgraph_plugins.mutations.substitution_scan._substitutions", 3)
    result = run("scan", sorted(Path("A").iterdir())[-1], "-o", "s.csv")
    assert result.code == 130 and "--positions" in result.err, result.err
    assert len(rows_of("s.csv")) == 14 * 20 and not Path("s.html").exists()

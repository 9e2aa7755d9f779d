"""Scores of other methods beside the models of a benchmark."""

from __future__ import annotations

from types import SimpleNamespace

from protgraph.bench.published import PublishedScore, reference_scores
from protgraph.bench.tables import published_table
from protgraph.data.datasets.card import ReferenceScore


def test_scores_of_the_spec_come_first_then_published_ones_and_floors():
    card = SimpleNamespace(
        published=(ReferenceScore(method="Method", metric="auprc", value=0.5, trained_on="Train_1"),),
        floors=(ReferenceScore(method="prevalence", metric="auprc", value=0.1),),
    )
    dataset = SimpleNamespace(card=SimpleNamespace(tasks={"site": card}))
    given = [PublishedScore(task=task, method="Mine | 2", metric="mcc", value=0.25) for task in ("site", "other")]
    scores = reference_scores("site", dataset, given)
    assert [(row.method, row.is_floor) for row in scores] == [
        ("Mine | 2", False), ("Method", False), ("prevalence", True)
    ]  # fmt: skip
    rows = [[cell.text for cell in cells] for _, cells in published_table(scores).rows]
    assert rows == [["Mine | 2", "0.250", "–"], ["Method", "–", "0.500"], ["prevalence", "–", "0.100"]]
    notes = [cells[0].note for _, cells in published_table(scores).rows]
    assert notes == ["published", "published, trained on Train_1, not confirmed", "floor of the card, not confirmed"]

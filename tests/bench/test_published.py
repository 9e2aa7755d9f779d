"""Scores of other methods beside the models of a benchmark."""

from __future__ import annotations

from types import SimpleNamespace

from protgraph.bench.published import PublishedScore, markdown_scores, reference_scores
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
    table = markdown_scores(scores).splitlines()
    assert len(table) == 5
    assert table[2].startswith(r"| site | test | Mine \| 2 | mcc | 0.250 | published |")
    assert "published, trained on Train_1" in table[3] and "floor of the card" in table[4]

"""``bert`` and ``gpt``: FASTA input, masking, the order of chains and nodes, sizes of the papers."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg
from protgraph.structure.io.fasta import load_fasta
from protgraph.task import language_modeling as language
from protgraph.testing.protein_fixtures import make_protein

TYPES = language.MASKED_LM.target


def block_parameters(width):
    """Return the parameters of a block: attention, feed-forward network of 4 × the width, two normalizations."""
    return 4 * (width**2 + width) + 2 * 4 * width**2 + 5 * width + 4 * width


@pytest.mark.parametrize(
    "name, width, depth, others",
    [
        ("bert.esm2_8m", 320, 6, 33 * 320 + 2 * 320),
        ("bert.devlin2019", 768, 12, 33 * 768 + 2 * 768 + (2048 + 2) * 768),
        ("gpt.radford2019", 768, 12, 22 * 768 + 2 * 768 + 2048 * 768),
    ],
)
def test_paper_sizes(name, width, depth, others):
    with torch.device("meta"):
        model = pg.build_model(name, TYPES)
    layers = sum(p.numel() for p in model.layers.parameters())
    assert layers == depth * block_parameters(width) + others
    assert depth * block_parameters(width) in (7_397_760, 85_054_464)  # ESM-2 8M; BERT base and GPT-2 small


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_sequence_models_read_fasta_and_ignore_coordinates(tmp_path, name):
    model = pg.build_model(name, TYPES, seed=0).eval()
    protein = make_protein((12,), seed=5)
    path = tmp_path / "one.fasta"
    path.write_text(f">made\n{protein.sequence}\n")
    (alone,) = load_fasta(path)
    assert model.needs_coordinates is None
    assert torch.equal(model(model.plan.precompute(alone))["logits"], model(model.plan.precompute(protein))["logits"])


def test_masked_types_do_not_change_predictions():
    model = pg.build_model("bert", TYPES, seed=0).eval()
    graph = model.plan.precompute(make_protein((12,), seed=5))
    graph.masked[3] = True
    hidden = model(graph)["logits"]
    graph.aatype[3] = (graph.aatype[3] + 7) % 20
    assert torch.equal(model(graph)["logits"], hidden)
    graph.masked[3] = False
    assert not torch.allclose(model(graph)["logits"], hidden)
    graph.masked[4] = True
    assert not torch.allclose(model(graph)["logits"], hidden)


def report_of(model, check="node_order"):
    (component,) = pg.testing.find_components(model, kind="model" if isinstance(model, str) else None)
    return next(report for report in pg.testing.check_component(component) if report.check == check)


@pytest.mark.parametrize("name, why", [("gpt.small", "causal"), ("bert.small", "chains follow")])
def test_the_order_of_chains_is_a_documented_input(name, why):
    result = report_of(name)
    assert result.status == "expected" and why in result.message


def test_without_an_order_of_chains_their_order_does_not_matter():
    encoder = pg.component("encoder", dim=8, heads=2, depth=1, position="rotary")
    assert report_of(pg.ModelSpec("unordered", layers=[encoder])).status == "passed"
    learned = pg.component("encoder", dim=8, heads=2, depth=1, position="learned", norm="post", token_dropout=False)
    assert report_of(pg.ModelSpec("as_devlin2019", layers=[learned])).status == "passed"


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_training_lowers_the_training_loss(name):
    """Train on a protein of two alternating types for a few steps."""
    model = pg.build_model(name, TYPES, seed=0).train()
    graph = model.plan.precompute(make_protein((40,), seed=1))
    graph.aatype = torch.arange(40) % 2
    truth = graph.aatype.clone()
    graph.masked = torch.arange(40) % 5 == 0 if name == "bert" else graph.masked
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(25):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(graph)["logits"], truth)
        loss.backward()
        optimizer.step()
    assert loss < 0.2

"""Training, evaluation and prediction with autoregressive decoders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import LeakError, OptionError
from protgraph.evaluation import evaluate
from protgraph.inference import predict
from protgraph.labels import prepare
from protgraph.model.build import as_model_spec, build_model
from protgraph.structure import ReadOptions, clean, load_structure
from protgraph.task import BACKBONE_ALONE
from protgraph.task.builtin import INVERSE_FOLDING
from protgraph.train import FitConfig, fit
from protgraph.train.coordinate_noise import add_noise

SMALL = replace(as_model_spec("proteinmpnn"), name="decoder")
CONFIG = FitConfig(epochs=12, lr=3e-3, seed=0, batch_residues=512)


@pytest.fixture
def one_type(small):
    """The same chains; all residues of a chain have the same type."""

    class OneType(type(small)):
        def read(self, example):
            whole = super().read(example)
            return replace(whole, aatype=np.full_like(whole.aatype, self._examples.index(example) % 2))

    return OneType(small.examples("helix")[0].path.parent)


@pytest.fixture(scope="module")
def decoder(small):
    return fit(SMALL, small, "inverse_folding", config=CONFIG)


@pytest.mark.slow
def test_a_decoder_learns_types_from_earlier_residues(one_type, tmp_path):
    found = fit(SMALL, one_type, "inverse_folding", config=replace(CONFIG, epochs=20), cache=tmp_path)
    task = found.task.for_decoder()
    store = prepare(one_type, task, found.model.plan, cache=tmp_path).splits["test"]
    alone = replace(task, inputs=replace(task.inputs, corrupt=lambda g, _: (without_types(g), g.y)))
    assert evaluate(found.model, store, alone)["perplexity"] > 1.7
    assert found.test["perplexity"] < 1.2


def without_types(graph):
    """Return the graph with all residues decoded at once, so that no type is visible to another."""
    copied = graph.clone()
    copied.decoding_rank = torch.zeros_like(graph.aatype)
    return copied


@pytest.mark.slow
def test_evaluation_of_the_test_split_is_repeatable(decoder, small):
    task = decoder.task.for_decoder()
    store = prepare(small, task, decoder.model.plan).splits["test"]
    assert evaluate(decoder.model, store, task) == decoder.test


@pytest.mark.slow
def test_a_prediction_depends_on_the_backbone_only(decoder, small, tmp_path):
    path = decoder.save(tmp_path / "decoder.safetensors")
    example = small.examples("inverse_folding", "test")[0]
    found = predict(path, example.path, read=ReadOptions(chains=example.chains))
    whole = clean(load_structure(example.path, chains=list(example.chains)))
    graph = decoder.model.plan.precompute(whole.hide(BACKBONE_ALONE), aatype=whole.aatype)
    with torch.no_grad():
        alone = decoder.model(collate([without_types(graph)]))["logits"].softmax(1)
    probabilities = torch.tensor([row[-20:] for row in found.rows])
    assert torch.allclose(probabilities, alone, atol=1e-6)


@pytest.mark.slow
def test_a_decoder_model_whose_encoder_reads_types_is_an_error(small):
    layers = list(SMALL.layers)
    layers[1] = pg.component("embed", reads=["edge_position", "atom_pair_rbf"], dim=64, writes={"h": "edge_attr"})
    leaky = [pg.component("embed", reads=["aatype"], dim=64), *layers[:4]]
    leaky += [replace(layers[4], reads={"h": "h"}), *layers[5:]]
    with pytest.raises(LeakError, match="aatype"):
        fit(replace(SMALL, name="leaky", layers=leaky), small, "inverse_folding", config=CONFIG)


def test_unknown_types_are_decoded_last_and_given_ranks_are_kept():
    plan = build_model(SMALL, INVERSE_FOLDING.target).plan
    f = {"seq_pos": torch.arange(4), "aatype": torch.tensor([3, 20, 5, 20]), "pos": torch.zeros(4, 3)}
    featurizer = next(f for component, f in plan.tensor if component.name == "decoding_rank")
    rank = featurizer(f)["decoding_rank"]
    assert rank[0] < rank[2] < rank[1] == rank[3]
    given = torch.tensor([2, 0, 1, 3])
    assert featurizer(f | {"decoding_rank": given})["decoding_rank"] is given


@pytest.mark.slow
def test_noise_moves_a_copy_and_ca_with_its_backbone(decoder, small):
    graph = prepare(small, decoder.task, decoder.model.plan).splits["test"][0]
    before = graph.backbone.clone()
    moved = add_noise(graph, 0.2, torch.Generator().manual_seed(0))
    assert torch.equal(graph.backbone, before)
    assert torch.equal(moved.pos, moved.backbone[:, 1])
    step = (moved.backbone - before).flatten()
    assert abs(float(step.std()) - 0.2) < 0.02 and abs(float(step.mean())) < 0.02


@pytest.mark.slow
def test_training_with_noise_is_reproducible(small):
    config = replace(CONFIG, epochs=3, noise=0.1)
    configs = (config, config, replace(config, noise=0.0))
    noisy, again, exact = (fit(SMALL, small, "inverse_folding", config=c) for c in configs)
    a, b, c = (r.model.state_dict()["layers.1.linear.weight"] for r in (noisy, again, exact))
    assert torch.equal(a, b) and not torch.equal(a, c)


def test_noise_with_features_of_the_exact_structure_is_an_error(small, tiny):
    with pytest.raises(OptionError, match="'dihedral'"):
        fit(tiny, small, "helix", config=replace(CONFIG, noise=0.1))
    with pytest.raises(OptionError, match="noise = -1"):
        FitConfig(noise=-1.0)


@pytest.mark.slow
def test_recovery_is_the_trace_of_the_confusion_matrix(decoder):
    counts = decoder.confusion["test"]
    assert counts.shape == (20, 20)
    assert float(counts.trace() / counts.sum()) == pytest.approx(decoder.test["recovery"], rel=1e-6)

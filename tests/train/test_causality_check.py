"""Check of causality: logits do not depend on the residue itself or on later ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import protgraph as pg
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_writer import write_store
from protgraph.errors import LeakError
from protgraph.labels.checks import check_causal, find_leak
from protgraph.task import builtin
from protgraph.testing.protein_fixtures import make_protein
from protgraph.train import FitConfig, fit

TARGET = builtin.INVERSE_FOLDING.target
CAUSAL = replace(builtin.INVERSE_FOLDING, inputs=builtin.INVERSE_FOLDING.decoder_inputs)
EMBED = pg.component("embed", reads=["previous"], dim=8)
BLOCK = pg.component("pre_norm_block", heads=2, causal=True, reads={"seq_pos": "seq_pos"})


def model(*layers, features=("previous_residue",)):
    return pg.build_model(pg.ModelSpec("checked", features=features, layers=layers), TARGET, seed=0)


def protein(built, lengths=(23, 11)):
    return built.plan.precompute(make_protein(lengths, seed=2))


@pytest.mark.parametrize(
    "layers",
    [
        [EMBED],
        [EMBED, BLOCK, BLOCK],
        [EMBED, pg.component("post_norm_block", heads=2, causal=True)],
        [EMBED, pg.component("transformer", dim=8, heads=2, causal=True)],
        [EMBED, pg.component("position", reads={"seq_pos": "seq_pos", "chain": "chain"}), BLOCK],
        ["constant"],
    ],
    ids=lambda layers: " ".join(getattr(n, "name", n) for n in layers),
)
def test_causal_models_pass(layers):
    built = model(*layers)
    assert find_leak(built, protein(built)) is None


@pytest.mark.parametrize(
    "layers, own",
    [
        ([pg.component("embed", reads=["aatype"], dim=8)], True),  # reads its own type
        ([EMBED, replace(BLOCK, options={"heads": 2})], False),
        ([EMBED, BLOCK, pg.component("transformer", dim=8, heads=2)], False),
        ([EMBED, pg.component("window", size=1), pg.component("linear", dim=8)], False),
        (["encoder"], False),
    ],
)
def test_models_that_read_their_own_or_later_residues_are_found(layers, own):
    built = model(*layers)
    row, cut = find_leak(built, protein(built))
    assert row == cut if own else row <= cut


def test_a_leak_is_found_if_the_head_is_constant():
    built = model(pg.component("embed", reads=["aatype"], dim=8))
    before = {name: x.clone() for name, x in built.state_dict().items()}
    built.head.initialize_logits(torch.zeros(20))
    assert find_leak(built, protein(built)) is not None
    assert not torch.equal(before["head.mlp.0.weight"], built.head.mlp[0].weight)
    assert not built.head.mlp[0].weight.any() and built.dtype == torch.float32  # the model is not changed


def test_only_the_given_fields_are_checked():
    built = model(
        pg.component("embed", reads=["previous", "dihedral"], dim=8), features=("previous_residue", "dihedral")
    )
    assert find_leak(built, protein(built)) is not None
    assert find_leak(built, protein(built), ["aatype"]) is None


@pytest.mark.slow
def test_the_longest_protein_of_moderate_length_is_checked(tmp_path, monkeypatch):
    built, checked = model(EMBED), []
    monkeypatch.setattr(
        "protgraph.labels.checks.find_leak", lambda model, graph, fields: checked.append((graph, fields))
    )
    for number, sizes in enumerate([(5, 40, 320), (400, 320)]):
        graphs = [protein(built, (n,)) for n in sizes]
        for graph in graphs:
            graph.y, graph.y_level = graph.aatype, "node"
        write_store(tmp_path / str(number), graphs)
        check_causal(built, GraphStore(tmp_path / str(number)), CAUSAL)
    assert [graph.num_nodes for graph, _ in checked] == [40, 320]
    assert all(fields == {"aatype", "masked"} for _, fields in checked)


@pytest.mark.slow
def test_training_a_model_that_reads_later_residues_is_an_error(small):
    quick = FitConfig(epochs=1, device="cpu")
    with pytest.raises(LeakError, match="'sequence_mlp'.*'inverse_folding'"):
        fit("sequence_mlp", small, CAUSAL, config=quick)
    causal = pg.ModelSpec("causal", features=["previous_residue"], layers=[EMBED, BLOCK])
    assert fit(causal, small, CAUSAL, config=quick).epochs == 1

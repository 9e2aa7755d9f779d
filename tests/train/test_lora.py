"""Low-rank terms: the sum that the paper defines, what is trained, merged weights, and adapters saved alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from protgraph import Target
from protgraph.checkpoint import load_checkpoint
from protgraph.checkpoint.checkpoint_file import save_checkpoint
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import CheckpointError, OptionError
from protgraph.model import ModelSpec, build_model
from protgraph.nn import add_low_rank_terms, merge_low_rank_terms
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from protgraph.train import fit
from tests.train.test_resume import one_thread


@pytest.fixture(scope="module")
def parent(trained, tmp_path_factory) -> str:
    return str(trained.save(tmp_path_factory.mktemp("parent") / "parent.safetensors"))


@pytest.fixture
def adapted(quick, parent):
    return replace(quick, start_from=parent, lora={"layers": 2}, epochs=2)


def randomize(model: nn.Module) -> None:
    """Give the low-rank terms values, as training does."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".up"):
                parameter.normal_(std=0.1)


def test_linear_map_with_a_low_rank_term_is_that_of_the_paper():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 5))
    x, weight, bias = torch.randn(7, 6), network[0].weight.detach().clone(), network[0].bias.detach().clone()
    before = network(x)
    assert add_low_rank_terms(network, lambda path: 2, seed=0) == ["0"]
    assert torch.equal(network(x), before)  # B = 0
    randomize(network)
    term = network[0].parametrizations.weight[0]
    expected = x @ weight.T + bias + (x @ term.down.T) @ term.up.T  # Hu et al. 2022, eq. 3
    torch.testing.assert_close(network(x), expected, rtol=1e-5, atol=1e-6)
    merge_low_rank_terms(network)
    torch.testing.assert_close(network(x), expected, rtol=1e-5, atol=1e-6)
    assert sorted(network.state_dict()) == ["0.bias", "0.weight"]


@pytest.mark.parametrize("model", ["gat", "gvp", "bert", "site_mpnn", "proteinmpnn"])
def test_merged_models_give_the_logits_of_unmerged_ones(model, structures_dir):
    task = Target("y", "node", "classification", 20)
    network = build_model(model, task, seed=0).eval()
    batch = collate([network.plan.precompute(clean(load_structure(structures_dir / "1crn.bcif")))])
    names = list(network.state_dict())
    assert add_low_rank_terms(network, lambda path: 2 if path.startswith("layers") else None, seed=0)
    with torch.no_grad():
        before = network(batch)["logits"]
        randomize(network)
        unmerged = network(batch)["logits"]
        merge_low_rank_terms(network)
        merged = network(batch)["logits"]
    assert (unmerged - before).abs().max() > 1e-3
    assert (merged - unmerged).abs().max() <= 1e-6 * unmerged.abs().max()
    assert sorted(network.state_dict()) == sorted(names)


def test_only_the_terms_and_the_head_are_trained(adapted, parent, tiny, small):
    result = fit(tiny, small, "buried", config=adapted)
    before, after = load_checkpoint(parent).model.state_dict(), result.model.state_dict()
    differences = {name: after[name] - value for name, value in before.items() if name.startswith("layers")}
    linear = {name for name, x in differences.items() if x.ndim == 2 and "tables" not in name}
    assert all(torch.equal(x, torch.zeros_like(x)) for name, x in differences.items() if name not in linear)
    ranks = {int(torch.linalg.matrix_rank(differences[name].double(), rtol=1e-4)) for name in linear}
    assert ranks <= {1, 2} and 2 in ranks  # of the changes


def test_adapters_alone_give_the_merged_model(adapted, tiny, small, tmp_path):
    result = fit(tiny, small, "buried", config=adapted)
    merged = load_checkpoint(result.save(tmp_path / "merged.safetensors")).model.state_dict()
    adapters = result.save_adapters(tmp_path / "alone.safetensors")
    loaded = load_checkpoint(adapters)
    assert loaded.model.state_dict().keys() == merged.keys()
    assert all(torch.equal(value, merged[name]) for name, value in loaded.model.state_dict().items())
    assert loaded.metrics["val"] == result.metrics["val"]
    assert not any(name.endswith("original") for name in result.adapters.tensors)


def test_adapters_of_initial_weights_need_no_file(quick, tiny, small, tmp_path):
    result = fit(tiny, small, "buried", config=replace(quick, lora={"layers.1": 1}, epochs=1, seed=3))
    loaded = load_checkpoint(result.save_adapters(tmp_path / "alone.safetensors")).model.state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in result.model.state_dict().items())


def test_adapters_of_another_base_are_an_error(adapted, trained, tiny, small, tmp_path):
    base = trained.save(tmp_path / "base.safetensors")
    result = fit(tiny, small, "buried", config=replace(adapted, start_from=str(base), epochs=1))
    adapters = result.save_adapters(tmp_path / "alone.safetensors")
    save_checkpoint(base, replace(trained.checkpoint(), model=build_model(tiny, trained.model.target, seed=5)))
    with pytest.raises(CheckpointError, match="other weights"):
        load_checkpoint(adapters)
    base.unlink()
    with pytest.raises(CheckpointError, match="base.safetensors"):
        load_checkpoint(adapters)


def test_terms_of_a_wide_model_are_less_than_a_hundredth_of_it(small, quick, tmp_path):
    layers = [component("embed", reads=["aatype"], dim=512), component("mlp", hidden=2048, depth=2)]
    wide = ModelSpec("wide", [], layers)
    result = fit(wide, small, "helix", config=replace(quick, lora={"layers.1": 2}, epochs=1))
    assert 0 < result.adapters.share <= 0.01
    sizes = [f.stat().st_size for f in (result.save_adapters(tmp_path / "a.st"), result.save(tmp_path / "m.st"))]
    assert sizes[0] < 0.05 * sizes[1]  # with the head


def test_interrupted_run_is_resumed_to_the_same_bits(adapted, tiny, small, tmp_path):
    def stop(row):
        raise RuntimeError("stop")

    with one_thread():
        expected = fit(tiny, small, "buried", config=adapted).model.state_dict()
        with pytest.raises(RuntimeError, match="stop"):
            fit(tiny, small, "buried", config=adapted, run_dir=tmp_path, on_epoch=stop)
        resumed = fit(tiny, small, "buried", config=adapted, run_dir=tmp_path, resume=True).model.state_dict()
    assert all(torch.equal(value, resumed[name]) for name, value in expected.items())


def test_pattern_without_a_linear_map_and_adapters_of_another_run_are_errors(quick, tiny, small, trained, tmp_path):
    with pytest.raises(OptionError, match="lora: 'blocks' matches no linear map"):
        fit(tiny, small, "helix", config=replace(quick, lora={"blocks": 2}))
    with pytest.raises(OptionError, match="no low-rank terms"):
        trained.save_adapters(tmp_path / "a.safetensors")

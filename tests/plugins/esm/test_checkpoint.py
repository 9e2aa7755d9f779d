"""ESM checkpoints: loading and errors, cached embeddings, frozen and trained weights, recorded attention."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.esm import embedding
from protgraph_plugins.esm.checkpoint import DEFAULT, checkpoint_digest, load_esm
from protgraph_plugins.esm.contact import predict_contacts
from protgraph_plugins.esm.embedding import Embedder
from protgraph_plugins.esm.featurizer import EsmEmbedding
from protgraph_plugins.esm.language_model import checkpoint_width
from protgraph_plugins.esm.vocabulary import TOKENS
from protgraph_plugins.esm.weights import load_encoder
from safetensors.torch import load_file, save_file

import protgraph as pg
from protgraph.errors import CheckpointError, MissingExtraError, OptionError
from protgraph.featurize.plan import FeaturePlan
from protgraph.model.build import as_model_spec
from protgraph.testing.protein_fixtures import make_protein

transformers = pytest.importorskip("transformers")
TARGET = pg.Target("t", "node", "classification", 3)


@pytest.fixture
def copied(esm_folder, tmp_path):
    return shutil.copytree(esm_folder, tmp_path / "copy")


def edited(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return str(folder)


def counting(monkeypatch):
    """Record the sequences that a network computes."""
    computed, usual = [], embedding.hidden_states

    def count(model, sequences, **options):
        computed.extend(sequences)
        return usual(model, sequences, **options)

    monkeypatch.setattr(embedding, "hidden_states", count)
    return computed


def test_each_sequence_is_computed_once_and_cached(esm_folder, tmp_path, monkeypatch):
    computed = counting(monkeypatch)
    embedder = Embedder(checkpoint=str(esm_folder), folder=tmp_path)
    one, other = np.array([5, 6, 7]), np.array([8, 9, 10, 11])
    first = embedder([one, other, one])
    assert [len(s) for s in computed] == [5, 6]
    again = Embedder(checkpoint=str(esm_folder), folder=tmp_path)([other, one])
    assert len(computed) == 2
    assert np.array_equal(again[1], first[0]) and np.array_equal(again[0], first[1]) and again[0].dtype == np.float32
    Embedder(checkpoint=str(esm_folder), folder=tmp_path, layer=1)([one])
    assert len(computed) == 3
    files = sorted(tmp_path.rglob("*.safetensors"))
    assert len(files) == 3 and not list(tmp_path.rglob("*.tmp"))
    for file in files:
        file.write_bytes(b"damaged")
    # computed alone this time, not beside another sequence: last bits may differ
    assert np.allclose(embedder([one])[0], first[0], rtol=1e-5, atol=1e-5) and len(computed) == 4


def test_the_cache_key_of_a_long_chain_includes_its_windows(esm_folder, tmp_path):
    tokens = np.arange(4, 24)
    whole, cut, other = (
        Embedder(checkpoint=str(esm_folder), folder=tmp_path, max_len=most, long="chunk")([tokens])[0]
        for most in (30, 10, 8)
    )
    assert np.abs(whole - cut).max() > 1e-3 and np.abs(cut - other).max() > 1e-3


def test_equal_chains_are_computed_once(esm_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    computed = counting(monkeypatch)
    residues = make_protein((6, 6), seed=1)
    residues = replace(residues, aatype=np.concatenate([residues.aatype[:6]] * 2))
    result = EsmEmbedding(checkpoint=str(esm_folder))(residues)["esm_embedding"]
    assert len(computed) == 1 and np.array_equal(result[:6], result[6:])


def test_another_checkpoint_invalidates_prepared_graphs(esm_folder, copied):
    def key(folder):
        return FeaturePlan([pg.component("esm_embedding", checkpoint=str(folder))]).key()

    before = key(copied)
    assert before == key(copied) and checkpoint_digest(str(copied)) == checkpoint_digest(str(esm_folder))
    state = load_file(copied / "model.safetensors")
    save_file({n: x + 0.01 for n, x in state.items()}, copied / "model.safetensors", metadata={"format": "pt"})
    assert key(copied) != before
    assert checkpoint_digest("random:tiny") != checkpoint_digest("random:tiny:7")


def test_random_networks_are_reproducible_and_differ_by_seed():
    usual = load_esm("random:tiny").state_dict()
    torch.manual_seed(5)
    torch.set_default_dtype(torch.float64)
    try:
        again = load_esm("random:tiny:0").state_dict()
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(x, again[n]) for n, x in usual.items())
    other = load_esm("random:tiny:7").state_dict()
    name = "embeddings.word_embeddings.weight"
    assert not torch.equal(usual[name], other[name]) and usual[name].dtype == torch.float32


def test_other_checkpoints_are_errors(copied, tmp_path):
    with pytest.raises(OptionError, match="random:tiny:7"):
        load_esm("random:large")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match="no config.json"):
        load_esm(str(tmp_path / "empty"))
    with pytest.raises(CheckpointError, match="'bert'"):
        load_esm(edited(copied, model_type="bert"))
    with pytest.raises(CheckpointError, match="20 tokens.* 33 "):
        load_esm(edited(copied, model_type="esm", vocab_size=20))
    edited(copied, vocab_size=33)
    (copied / "vocab.txt").write_text("\n".join(reversed(TOKENS)))
    with pytest.raises(CheckpointError, match="tokens.* 33 "):
        load_esm(str(copied))
    (copied / "vocab.txt").unlink()
    with pytest.raises(CheckpointError, match="incomplete"):
        load_esm(edited(copied, num_hidden_layers=5))
    (copied / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="HF_HUB|hf download"):
        load_esm(edited(copied, num_hidden_layers=3))


def test_files_of_older_versions_give_the_same(esm_folder, copied):
    # As in published files: frequencies in every block, and a table of positions that rotary models do not use.
    state = load_file(copied / "model.safetensors")
    frequencies = state.pop("esm.rotary_embeddings.inv_freq", 1 / 10000 ** (torch.arange(0, 6, 2) / 6))
    state = {n: x for n, x in state.items() if not n.endswith("inv_freq")}
    for block in range(3):
        state[f"esm.encoder.layer.{block}.attention.self.rotary_embeddings.inv_freq"] = frequencies.clone()
    state["esm.embeddings.position_ids"] = torch.arange(1026)[None]
    state["esm.embeddings.position_embeddings.weight"] = torch.randn(1026, 24)
    save_file(state, copied / "model.safetensors", metadata={"format": "pt"})
    token = torch.tensor([[0, 5, 6, 7, 8, 2]])
    with torch.no_grad():
        result, expected = (load_esm(str(f))(token).last_hidden_state for f in (copied, esm_folder))
    assert torch.equal(result, expected)


def test_layer_indices_are_those_of_transformers(esm_folder, tmp_path):
    with pytest.raises(OptionError, match="0 .tokens. to 3"):
        Embedder(checkpoint=str(esm_folder), folder=tmp_path, layer=4)([np.array([5, 6])])


def test_the_encoder_rejects_other_architectures(copied):
    with pytest.raises(CheckpointError, match="'encoder'"):
        load_encoder(edited(copied, token_dropout=False))


def test_the_error_without_the_extra_has_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="protgraph-pyg.esm."):
        load_esm("random:tiny")
    assert checkpoint_width(DEFAULT) == 320
    assert pg.build_model("esm", TARGET, seed=0).fields["esm_embedding"].dim == 320


@pytest.mark.slow
def test_names_load_from_the_cache_of_the_hub_offline(esm_folder, tmp_path):
    hub = tmp_path / "hub" / "models--some--esm"
    shutil.copytree(esm_folder, hub / "snapshots" / ("ab" * 20))
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text("ab" * 20)
    code = """if True:
        import sys, protgraph as pg
        assert "esm" in pg.models and "esm_encoder" in pg.layers and "torch" not in sys.modules
        import protgraph_plugins.esm.family, protgraph_plugins.esm.featurizer
        assert not any(name.startswith("transformers.models.esm") for name in sys.modules)
        from protgraph.errors import CheckpointError
        from protgraph_plugins.esm.checkpoint import checkpoint_digest, load_esm
        from protgraph_plugins.esm.language_model import checkpoint_width
        assert checkpoint_digest("some/esm") == "ab" * 20 and checkpoint_width("some/esm") == 24
        assert load_esm("some/esm").config.hidden_size == 24
        try:
            load_esm()
        except CheckpointError as e:
            print(e)
    """
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    out = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert f"{DEFAULT!r}" in out.stdout and f"hf download {DEFAULT}" in out.stdout


def with_checkpoint(name, folder, **options):
    graph = as_model_spec(name)
    layers = [replace(n, options={**n.options, "checkpoint": str(folder), **options}) for n in graph.layers]
    return replace(graph, layers=tuple(layers))


def test_a_frozen_encoder_is_constant_and_a_free_one_is_trained(esm_folder):
    residues = make_protein((9,), seed=1)
    for frozen in (True, False):
        model = pg.build_model(with_checkpoint("esm.finetune_8m", esm_folder, frozen=frozen), TARGET, seed=0).train()
        model(model.plan.precompute(residues))["logits"].square().sum().backward()
        esm = model.layers[0].esm
        learns = [p.grad is not None and bool(p.grad.any()) for p in esm.parameters()]
        assert all(learns) != frozen and any(learns) != frozen and esm.training != frozen
        assert (model.num_parameters > 20_000) != frozen


def test_attention_equals_transformers_and_stays_within_chains(esm_folder):
    residues = make_protein((9, 6), seed=1)
    model = pg.build_model(with_checkpoint("esm.finetune_8m", esm_folder), TARGET, seed=0).double().eval()
    graph = model.plan.precompute(residues)
    maps = {layer: found[0] for layer, found in model.attention(graph).items()}
    assert list(maps) == [f"layers[0].blocks.{k} (esm_encoder)" for k in range(3)]
    reference = transformers.EsmModel.from_pretrained(
        esm_folder, add_pooling_layer=False, attn_implementation="eager"
    ).double()
    for rows in (slice(0, 9), slice(9, 15)):
        letters = "".join("ACDEFGHIKLMNPQRSTVWYX"[t] for t in residues.aatype[rows])
        token = torch.tensor([[0, *(TOKENS.index(letter) for letter in letters), 2]])
        with torch.no_grad():
            expected = reference.eval()(token, output_attentions=True).attentions
        for found, weights in zip(maps.values(), expected, strict=True):
            assert torch.allclose(found.weights[:, rows, rows], weights[0, :, 1:-1, 1:-1], atol=1e-12)
            assert found.visible[rows, rows].all() and int(found.visible.sum()) == 81 + 36
            assert not found.weights[:, :9, 9:].any()
    out = model(graph)["logits"]
    assert torch.equal(out, model(graph)["logits"])  # the fast implementation is restored
    assert model.layers[0].esm.config._attn_implementation == "sdpa"


def test_attention_of_long_chains_is_recorded_per_window(esm_folder):
    graph = with_checkpoint("esm.finetune_8m", esm_folder, max_len=10, long="chunk")
    model = pg.build_model(graph, TARGET, seed=0).double().eval()
    found = next(iter(model.attention(model.plan.precompute(make_protein((25,), seed=1))).values()))[0]
    assert found.visible[0].nonzero().flatten().tolist() == list(range(10))
    assert found.visible[12].nonzero().flatten().tolist() == list(range(10, 20))
    assert not found.weights[:, ~found.visible].any() and (found.weights[:, found.visible] > 0).all()


def test_contacts_equal_transformers(esm_folder, copied):
    residues = make_protein((14, 9), seed=1)
    result = predict_contacts(residues, checkpoint=str(esm_folder))
    model = transformers.EsmForMaskedLM.from_pretrained(esm_folder, attn_implementation="eager").eval()
    for rows in (slice(0, 14), slice(14, 23)):
        letters = "".join("ACDEFGHIKLMNPQRSTVWYX"[t] for t in residues.aatype[rows])
        token = torch.tensor([[0, *(TOKENS.index(letter) for letter in letters), 2]])
        with torch.no_grad():
            expected = model.predict_contacts(token, torch.ones_like(token))[0].numpy()
        assert np.abs(result[rows, rows] - expected).max() < 1e-5 and expected.std() > 0.01
    assert np.isnan(result[:14, 14:]).all() and np.allclose(result, result.T, equal_nan=True, atol=1e-6)
    state = {n: x for n, x in load_file(copied / "model.safetensors").items() if "contact_head" not in n}
    save_file(state, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="contact regression"):
        predict_contacts(residues, checkpoint=str(copied))


def test_position_codes_are_those_of_the_checkpoint(esm_folder):
    from protgraph_plugins.view.attention_figures import position_codes

    model = pg.build_model(with_checkpoint("esm.finetune_8m", esm_folder), TARGET, seed=0)
    (code,) = position_codes(model, 30).values()
    assert code.kind == "rotary" and code.values.shape == (30, 3)


def test_models_on_embeddings_run_without_coordinates(esm_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    graph = as_model_spec("esm.random")
    model = pg.build_model(graph, TARGET, seed=0).eval()
    residues = make_protein((9,), seed=1).hide({"coordinates"})
    assert model.needs_coordinates is None and model(model.plan.precompute(residues))["logits"].shape == (9, 3)
    assert pg.build_model("esm_hybrid.random", TARGET, seed=0).needs_coordinates == "features[1] (dihedral)"

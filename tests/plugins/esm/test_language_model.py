"""ESM-C, ProtT5, Ankh and SaProt against transformers' own model and tokenizer, on tiny random networks on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from protgraph_plugins.esm.embedding import embed_sequences
from protgraph_plugins.esm.featurizer import EsmEmbedding
from protgraph_plugins.esm.language_model import checkpoint_width, language_model_kind, load_token_table
from protgraph_plugins.esm.layers import EsmEncoder
from protgraph_plugins.similarity import structural_letters

import protgraph as pg
from protgraph.data.graph.fields import field
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import CheckpointError, FieldError, OptionError, WiringError
from protgraph.featurize.plan import FeaturePlan, inputs
from protgraph.nn import add_low_rank_terms, merge_low_rank_terms
from protgraph.structure.residues.alphabet import ALPHABET

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

LETTERS = "ALGVSREDTIPKFQNYMHWCXBOUZ"  # of ProtT5 and Ankh
SEQUENCE = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVX"


class Network(NamedTuple):
    folder: Path
    states: Callable[[str, int], np.ndarray]  # of transformers: sequence, layer → (T, D)


def randomized(model):
    """Give all parameters, also biases and gains, random values."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for parameter in model.parameters():
            parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def states_of(model, encode, ends: slice):
    def states(sequence: str, layer: int = -1) -> np.ndarray:
        with torch.no_grad():
            out = model(**encode(sequence), output_hidden_states=True)
        return out.hidden_states[layer][0, ends].numpy()

    return states


def esmc(folder: Path) -> Network:
    config = transformers.EsmcConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4)
    model, tokenizer = randomized(transformers.EsmcModel(config)), transformers.EsmcTokenizer()
    model.save_pretrained(folder)
    return Network(folder, states_of(model, lambda text: tokenizer(text, return_tensors="pt"), slice(1, -1)))


def t5(folder: Path, *, mark: str, activation: str) -> Network:
    """Save a T5 encoder whose letters have a mark of a space before them (ProtT5), or none (Ankh)."""
    vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2} | {mark + letter: 3 + i for i, letter in enumerate(LETTERS)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    if mark:
        words.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    else:
        words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    config = transformers.T5Config(
        vocab_size=32, d_model=24, d_kv=6, num_heads=4, d_ff=40, num_layers=3, feed_forward_proj=activation,
        dropout_rate=0.0,
    )  # fmt: skip
    model = randomized(transformers.T5EncoderModel(config))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Network(folder, states_of(model, lambda text: tokenizer(" ".join(text), return_tensors="pt"), slice(0, -1)))


def saprot(folder: Path) -> Network:
    """Save an ESM with the vocabulary of SaProt; its tokenizer reads pairs, e.g. ``"MdKv"``."""
    pairs = [a + b for a in "ACDEFGHIKLMNPQRSTVWY#" for b in "pynwrqhgdlvtmfsaeikc#"]
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(["<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *pairs]))
    tokenizer = transformers.EsmTokenizer(str(folder / "vocab.txt"))
    config = transformers.EsmConfig(
        vocab_size=len(tokenizer), mask_token_id=4, pad_token_id=1, hidden_size=24, num_hidden_layers=3,
        num_attention_heads=4, intermediate_size=96, position_embedding_type="rotary", token_dropout=True,
        emb_layer_norm_before=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = randomized(transformers.EsmModel(config, add_pooling_layer=False))
    model.save_pretrained(folder)
    return Network(folder, states_of(model, lambda text: tokenizer(text, return_tensors="pt"), slice(1, -1)))


MAKERS = {
    "esmc": esmc,
    "prott5": lambda folder: t5(folder, mark="▁", activation="relu"),
    "ankh": lambda folder: t5(folder, mark="", activation="gated-gelu"),
    "saprot": saprot,
}


@pytest.fixture(scope="module", params=MAKERS)
def network(request, tmp_path_factory) -> Network:
    return MAKERS[request.param](tmp_path_factory.mktemp(request.param))


def text_of(network: Network, sequence: str) -> str:
    """Return the text that the tokenizer of transformers reads; SaProt has unknown 3Di letters, and no X."""
    if language_model_kind(str(network.folder)) != "saprot":
        return sequence
    return "".join(f"{'#' if letter == 'X' else letter}#" for letter in sequence)


def assert_equal(states: np.ndarray, expected: np.ndarray) -> None:
    assert states.shape == expected.shape
    assert np.abs(states - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("layer", [-1, 0, 2])
def test_embeddings_equal_transformers(network, layer, tmp_path):
    embedded = embed_sequences([SEQUENCE, "MKV"], checkpoint=str(network.folder), layer=layer, folder=tmp_path)
    for states, sequence in zip(embedded, (SEQUENCE, "MKV"), strict=True):
        assert_equal(states, network.states(text_of(network, sequence), layer))


def test_width_is_that_of_the_states(network):
    assert checkpoint_width(str(network.folder)) == network.states(text_of(network, "MKV"), -1).shape[1]


def encoder(network: Network, **options) -> EsmEncoder:
    names = ("aatype", "masked", "chain", "seq_pos", "proteins")
    return EsmEncoder({name: field(name) for name in names}, checkpoint=str(network.folder), **options).eval()


def batch_fields(structures_dir) -> dict:
    plan = FeaturePlan([])
    names = ("1crn", "2erl")
    residues = [pg.clean(pg.load_structure(structures_dir / f"{name}.bcif")) for name in names]
    fields = inputs(collate([plan.precompute(one) for one in residues]))
    fields["masked"] = torch.zeros(len(fields["aatype"]), dtype=torch.bool)
    return fields


@pytest.mark.parametrize("layer", [-1, 1])
def test_the_layer_equals_transformers_in_a_batch_and_is_trained(network, layer, structures_dir):
    fields = batch_fields(structures_dir)
    module = encoder(network, layer=layer)
    h = module(fields)["h"]
    types = fields["aatype"].numpy()
    owner = fields["proteins"].batch.numpy()
    for protein in (0, 1):
        sequence = "".join(ALPHABET[t] for t in types[owner == protein])
        expected = network.states(text_of(network, sequence), layer)
        assert_equal(h[torch.from_numpy(owner == protein)].detach().numpy(), expected)
    h.square().sum().backward()
    assert any(parameter.grad is not None for parameter in module.esm.parameters())
    with pytest.raises(OptionError, match="invalid layer: 9"):
        encoder(network, layer=9)


def test_long_sequences_are_windows_whose_states_are_those_of_each_window(network, tmp_path):
    options = {"checkpoint": str(network.folder), "folder": tmp_path, "max_len": 20}
    with pytest.raises(FieldError, match="too long"):
        embed_sequences([SEQUENCE], **options)
    (states,) = embed_sequences([SEQUENCE], long="chunk", **options)
    assert_equal(states[:15], network.states(text_of(network, SEQUENCE[:20]), -1)[:15])
    assert_equal(states[-13:], network.states(text_of(network, SEQUENCE[-20:]), -1)[-13:])


def test_a_masked_residue_is_the_mask_of_the_model(network, structures_dir):
    fields = batch_fields(structures_dir)
    fields["masked"][3] = True
    changed = encoder(network)(fields)["h"][fields["proteins"].batch == 0].detach().numpy()
    sequence = [ALPHABET[t] for t in fields["aatype"][fields["proteins"].batch == 0]]
    kind = language_model_kind(str(network.folder))
    if kind == "esmc":
        sequence[3] = "<mask>"
    else:
        sequence[3] = "X"
    text = text_of(network, "".join(sequence)) if kind != "t5" else sequence
    assert_equal(changed, network.states(text, -1))


def test_saprot_reads_the_letters_of_the_structure(tmp_path, structures_dir, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    network = saprot(tmp_path / "saprot")
    residues = pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))
    types = [ALPHABET[t] for t in residues.aatype]
    letters = structural_letters(residues.backbone)
    assert load_token_table(str(network.folder)).reads_structure and len(set(letters)) > 5
    embedded = EsmEmbedding(checkpoint=str(network.folder))(residues)["esm_embedding"]
    text = "".join(a + b for a, b in zip(types, letters, strict=True))
    assert_equal(embedded, network.states(text, -1))
    alone = EsmEmbedding(checkpoint=str(network.folder))(residues.hide(["coordinates"]))["esm_embedding"]
    assert_equal(alone, network.states("".join(f"{a}#" for a in types), -1))


def test_networks_that_are_no_protein_language_models_are_errors(tmp_path):
    network = t5(tmp_path / "t5", mark="", activation="relu")
    config = network.folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "bert"}))
    with pytest.raises(CheckpointError, match="'bert'"):
        encoder(network)
    absent = Network(tmp_path, network.states)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        encoder(absent)


def test_low_rank_terms_of_a_language_model_are_merged_into_its_weights(network, structures_dir):
    fields = batch_fields(structures_dir)
    module = encoder(network)
    names = set(module.state_dict())
    paths = add_low_rank_terms(module, lambda path: 2, seed=0)
    assert len(paths) >= 3 * 4  # in each block
    with torch.no_grad():
        before = module(fields)["h"]
        for name, parameter in module.named_parameters():
            if name.endswith(".up"):
                parameter.normal_(std=0.1, generator=torch.Generator().manual_seed(len(name)))
        unmerged = module(fields)["h"]
        merge_low_rank_terms(module)
        merged = module(fields)["h"]
    assert (unmerged - before).abs().max() > 1e-2
    assert (merged - unmerged).abs().max() <= 1e-6 * unmerged.abs().max()
    assert set(module.state_dict()) == names


@pytest.mark.parametrize("max_len", [1022, 30])
def test_the_layer_computes_the_letters_of_saprot_from_the_backbone(max_len, tmp_path, structures_dir):
    network = saprot(tmp_path / "saprot")
    fields = batch_fields(structures_dir)
    specs = {name: field(name) for name in ("aatype", "masked", "chain", "seq_pos", "proteins", "backbone")}
    module = EsmEncoder(specs, checkpoint=str(network.folder), max_len=max_len, long="chunk").eval()
    h = module(fields)["h"].detach().numpy()
    rows = (fields["proteins"].batch == 0).numpy()
    letters = structural_letters(fields["backbone"].numpy()[rows])
    types = [ALPHABET[t] for t in fields["aatype"].numpy()[rows]]
    text = [a + b for a, b in zip(types, letters, strict=True)]
    if max_len == 30:  # the letters are those of the whole chain
        assert_equal(h[rows][:20], network.states("".join(text[:30]), -1)[:20])
    else:
        assert_equal(h[rows], network.states("".join(text), -1))


def test_a_model_of_sequences_does_not_read_the_backbone(tmp_path):
    network = esmc(tmp_path / "esmc")
    specs = {name: field(name) for name in ("aatype", "masked", "chain", "seq_pos", "proteins", "backbone")}
    with pytest.raises(WiringError, match="sequence only"):
        EsmEncoder(specs, checkpoint=str(network.folder))

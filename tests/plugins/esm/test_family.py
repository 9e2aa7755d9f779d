"""ESM-2 in protgraph against transformers, residue by residue, on real and synthetic proteins."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest
import torch
from protgraph_plugins.esm.alignment import UNRESOLVED, chain_rows, chain_tokens, split_windows
from protgraph_plugins.esm.embedding import embed_sequences
from protgraph_plugins.esm.featurizer import EsmEmbedding
from protgraph_plugins.esm.layers import EsmEncoder
from protgraph_plugins.esm.vocabulary import MASK, TOKENS
from protgraph_plugins.esm.weights import load_encoder
from protgraph_plugins.view.attention import residue_attention

import protgraph as pg
from protgraph.data.graph.fields import field
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import FieldError, OptionError, WiringError
from protgraph.model.attention_maps import AttentionMap
from protgraph.nn.attention_recorder import AttentionRecorder
from protgraph.ops import Proteins
from protgraph.structure.residues.alphabet import ALPHABET, aatype
from protgraph.testing.protein_fixtures import make_protein

transformers = pytest.importorskip("transformers")
READS = ("aatype", "masked", "chain", "seq_pos", "proteins")


def relative(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


def letters(residues, rows):
    return "".join(ALPHABET[t] for t in residues.aatype[rows])


@pytest.fixture(scope="module")
def theirs(esm_folder):
    """Compute hidden states ``(T, D)`` of a sequence, possibly with ``<mask>``, with transformers."""
    model = transformers.EsmModel.from_pretrained(esm_folder, add_pooling_layer=False).eval()
    tokenizer = transformers.EsmTokenizer(str(esm_folder / "vocab.txt"))

    def states(sequence, layer=-1, dtype=torch.float32):
        with torch.no_grad():
            out = model.to(dtype)(**tokenizer(sequence, return_tensors="pt"), output_hidden_states=True)
        return out.hidden_states[layer][0, 1:-1].numpy()

    return states


@pytest.fixture
def embedding(esm_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))

    def make(residues, **options):
        return EsmEmbedding(checkpoint=str(esm_folder), **options)(residues)["esm_embedding"]

    return make


def test_tokens_equal_the_tokenizer(esm_folder):
    tokenizer = transformers.EsmTokenizer(str(esm_folder / "vocab.txt"))
    result = chain_tokens(np.arange(21), np.arange(21), gaps="join")
    assert tokenizer(ALPHABET)["input_ids"][1:-1] == result.tolist()
    assert chain_tokens(np.array([0, UNRESOLVED]), np.array([3]), gaps="mask").tolist() == [TOKENS.index("E"), MASK]


@pytest.mark.parametrize("layer", [-1, 0, 1, 3])
def test_embeddings_equal_transformers(embedding, theirs, structures_dir, layer):
    for name in ("1ubq", "1bfr"):
        residues = pg.clean(pg.load_structure(structures_dir / f"{name}.bcif"))
        result = embedding(residues, layer=layer)
        assert result.dtype == np.float32 and len(result) == len(residues)
        for chain in residues.chain_names:
            rows = np.flatnonzero(residues.chain == chain)
            assert relative(result[rows], theirs(letters(residues, rows), layer)) < 1e-5


@pytest.fixture
def load(request, structures_dir):
    """``load("1bhl")``: residues of a committed entry; ``load("formats/5zng.cif")``: of a file of the larger data."""

    def load(name):
        path = request.getfixturevalue("shared_data") / name if "/" in name else structures_dir / f"{name}.bcif"
        return pg.clean(pg.load_structure(path))

    return load


@pytest.mark.parametrize(
    ("file", "chains"),
    [
        ("1hvr", 2),  # CSO is C
        ("1bhl", 1),  # a gap
        ("robustness/modres__4oz7.pdb", 2),  # two residues per chain without a parent residue
        ("robustness/predicted__7ubd_from_af3.cif", 1),  # D-amino acids, and one unknown
        ("robustness/icode__1a0q.pdb", 2),  # insertion codes, gaps, an antibody's numbering
        ("robustness/numbering__chainIDrepeat.pdb.gz", 6),
        ("formats/5zng.cif", 2),
    ],
)
def test_modified_and_unknown_residues_have_the_tokens_of_their_letters(load, embedding, theirs, file, chains):
    residues = load(file)
    assert len(residues.chain_names) == chains
    result = embedding(residues)
    for chain in residues.chain_names:
        rows = np.flatnonzero(residues.chain == chain)
        sequence = "".join(ALPHABET[aatype(str(name))] for name in residues.res_name[rows])
        assert relative(result[rows], theirs(sequence)) < 1e-5
    if "4oz7" in file:
        assert letters(residues, slice(None)).count("X") == 4


def seqres(path):
    """Return the whole sequence of each chain, from the header of a PDB file."""
    sequences: dict[str, str] = {}
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        for line in file:
            if line.startswith("SEQRES"):
                letters = "".join(ALPHABET[aatype(name)] for name in line[19:70].split())
                sequences[line[11].strip()] = sequences.get(line[11].strip(), "") + letters
    return sequences


SEQRES_1BHL = (
    "SPGIWQLDCTHLEGKVILVAVHVASGYIEAEVIPAETGQETAYFLLKLAGRWPVKTVHTDNGSNFTSTTVKAACWWAGIKQEFGIPYNPQSQGVIESMNK"
    "ELKKIIGQVRDQAEHLKTAVQMAVFIHNHKRKGGIGGYSAGERIVDIIATD"
)  # CAS is read as C


@pytest.mark.parametrize(
    ("file", "missing"),
    [
        ("1bhl", 16),
        ("robustness/large__4UPY.pdb", 15),
        ("robustness/ligand__1oky.pdb.gz", 6),
        ("robustness/modres__1uwy.pdb", 9),
    ],
)
def test_filled_gaps_match_the_full_sequence(request, load, embedding, theirs, file, missing):
    residues = load(file)
    (rows,) = chain_rows(*np.zeros((2, len(residues)), np.int64), residues.seq_pos, gaps="mask")
    whole = "".join("." if i == UNRESOLVED else ALPHABET[residues.aatype[i]] for i in rows)
    assert whole.count(".") == missing
    sequence = SEQRES_1BHL
    if "/" in file:
        sequence = seqres(request.getfixturevalue("shared_data") / file)[str(residues.chain[0])]
    assert re.search(whole, sequence)
    for gaps, token in (("mask", "<mask>"), ("unknown", "X")):
        result, expected = embedding(residues, gaps=gaps), theirs(whole.replace(".", token))
        assert relative(result, expected[rows != UNRESOLVED]) < 1e-5
    assert relative(embedding(residues), theirs(whole.replace(".", ""))) < 1e-5


def batch_of(*proteins):
    graph = collate([pg.build_graph(r, []) for r in proteins])
    return {n: Proteins.from_graph(graph) if n == "proteins" else graph[n] for n in READS}


def layer_of(esm_folder, **options):
    return EsmEncoder({n: field(n) for n in READS}, checkpoint=str(esm_folder), **options).double().eval()


def test_the_layer_equals_transformers_in_float64_in_any_batch(esm_folder, theirs):
    some = [make_protein((40, 31), seed=1), make_protein((7,), seed=2), make_protein((1, 40), seed=3)]
    f = batch_of(*some)
    f["masked"] = torch.arange(len(f["aatype"])) % 6 == 2
    result = layer_of(esm_folder)(f)["h"].detach().numpy()
    start = 0
    for residues in some:
        hidden = f["masked"][start : start + len(residues)].numpy()
        for chain in residues.chain_names:
            rows = np.flatnonzero(residues.chain == chain)
            sequence = "".join("<mask>" if hidden[i] else ALPHABET[residues.aatype[i]] for i in rows)
            assert relative(result[start + rows], theirs(sequence, dtype=torch.float64)) < 1e-12
        start += len(residues)


def test_the_layer_fills_gaps_as_the_featurizer_does(esm_folder, embedding, load):
    residues = load("1bhl")
    for gaps in ("join", "mask", "unknown"):
        result = layer_of(esm_folder, gaps=gaps)(batch_of(residues))["h"].detach().numpy()
        assert relative(embedding(residues, gaps=gaps), result) < 1e-5


def test_the_encoder_with_converted_weights_equals_transformers(esm_folder, theirs):
    encoder = load_encoder(str(esm_folder)).eval()
    sequence = "MKTAYIAKQRQISFVKSHFSRQDILDLWQYFSYGRALN"
    token = torch.tensor([TOKENS.index(letter) for letter in sequence])
    place, proteins = torch.arange(len(token)), Proteins(torch.zeros_like(token), (len(token),))
    for dtype, tolerance in (
        (torch.float32, 1e-5),
        (torch.float64, 1e-6),
    ):  # transformers has float32 rotary frequencies
        with torch.no_grad():
            result = encoder.to(dtype)({"aatype": token, "seq_pos": place, "proteins": proteins})["h"].numpy()
        assert relative(result, theirs(sequence, dtype=dtype)) < tolerance


def test_long_chains_are_an_error_or_windows(esm_folder, embedding, theirs):
    residues = make_protein((50,), seed=1)
    sequence = letters(residues, slice(None))
    with pytest.raises(FieldError, match="made1 has 50 residues.* 20 "):
        embedding(residues, max_len=20)
    with pytest.raises(FieldError, match="protein 1 .* 50 residues"):
        layer_of(esm_folder, max_len=20)(batch_of(make_protein((5,), seed=1), residues))
    parts = ((0, 20, 0, 15), (10, 30, 15, 25), (20, 40, 25, 35), (30, 50, 35, 50))
    expected = np.concatenate([theirs(sequence[a:b])[i - a : j - a] for a, b, i, j in parts])
    assert relative(embedding(residues, max_len=20, long="chunk"), expected) < 1e-5
    result = layer_of(esm_folder, max_len=20, long="chunk")(batch_of(residues))["h"].detach().numpy()
    assert relative(result, expected) < 1e-5
    assert relative(embedding(residues, max_len=50), theirs(sequence)) < 1e-5


@pytest.mark.parametrize("length", [3, 20, 21, 29, 30, 31, 59, 100])
def test_windows_cover_each_position_once_and_not_at_their_edges(length):
    cut = split_windows(length, max_len=20, long="chunk")
    assert [p for w in cut for p in range(w.keep.start, w.keep.stop)] == list(range(length))
    for w in cut:
        assert w.stop - w.start == min(length, 20)
        assert w.keep.start - w.start >= 5 or w.start == 0
        assert w.stop - w.keep.stop >= 5 or w.stop == length


def test_the_order_of_nodes_does_not_matter(esm_folder):
    f = batch_of(make_protein((12, 9), seed=4))
    order = torch.randperm(21, generator=torch.Generator().manual_seed(0))
    layer = layer_of(esm_folder)
    other = {n: x if n == "proteins" else x[order] for n, x in f.items()}
    assert torch.allclose(layer(other)["h"], layer(f)["h"][order], atol=1e-12)


@pytest.mark.parametrize("gaps", ["join", "mask"])
def test_atoms_have_the_state_of_their_residue(esm_folder, gaps):
    residues = make_protein((12, 9), seed=4)
    residues = residues.select(residues.seq_pos % 5 != 3)
    f, layer = batch_of(residues), layer_of(esm_folder, gaps=gaps)
    atoms = torch.arange(len(residues)).repeat_interleave(torch.arange(len(residues)) % 3 + 1)
    spread = {n: x[atoms] for n, x in f.items() if n != "proteins"}
    spread["proteins"] = Proteins(torch.zeros_like(atoms), (len(atoms),))
    assert torch.allclose(layer(spread)["h"], layer(f)["h"][atoms], atol=1e-12)
    with AttentionRecorder(layer) as recorder:
        layer(f), layer(spread)
    for alone, together in recorder.weights.values():
        found = residue_attention(AttentionMap(together.maps[0], together.visible[0]), atoms, len(residues))
        assert torch.allclose(found.weights, alone.maps[0], atol=1e-12)
        assert torch.equal(found.visible, alone.visible[0])


def test_two_residues_at_one_position_are_an_error():
    chain = np.zeros(3, np.int64)
    with pytest.raises(FieldError, match="seq_pos"):
        chain_rows(chain, chain, np.array([0, 1, 1]), gaps="mask")


def test_another_alphabet_is_an_error():
    fields = {n: field(n) for n in READS} | {"aatype": field("aatype").as_("kind", classes=33)}
    with pytest.raises(WiringError, match="'kind': 33.* 21 "):
        EsmEncoder(fields, checkpoint="random:tiny")


def test_sequences_of_a_dataset_are_embedded_in_batches(esm_folder, theirs, tmp_path):
    sequences = ["MKV", "ACDEFGHIKLMNPQRSTVWYX", "MKV", "mBZ"]
    result = embed_sequences(sequences, checkpoint=str(esm_folder), folder=tmp_path)
    for sequence, states in zip(["MKV", sequences[1], "MKV", "XXX"], result, strict=True):
        assert relative(states, theirs(sequence)) < 1e-5
    with pytest.raises(OptionError, match="index 1"):
        embed_sequences(["A", ""], checkpoint=str(esm_folder), folder=tmp_path)

"""Generated sequences follow the probabilities of the model; options, FASTA headers and errors."""

from __future__ import annotations

import math

import pytest
import torch
from protgraph_plugins.gpt import generate, sampling_probabilities, write_generated
from scipy.stats import chisquare

import protgraph as pg
from protgraph.checkpoint import Checkpoint
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import CheckpointError, LeakError, MissingCoordinatesError, OptionError, WiringError
from protgraph.structure.io.fasta import load_fasta, read_fasta
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.task import language_modeling as language

TASK = language.NEXT_RESIDUE
EMBED = pg.component("embed", reads=["previous"], dim=16)
BLOCK = pg.component("pre_norm_block", heads=2, causal=True, reads={"seq_pos": "seq_pos"})


def checkpoint(*layers, task=TASK, features=("previous_residue",), name="small"):
    model = pg.build_model(pg.ModelSpec(name, features=features, layers=layers), task.target, seed=3)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.5)  # untrained probabilities are nearly uniform
    return Checkpoint(model.eval(), task.name, hidden=task.inputs.hidden, visible_types=task.inputs.visible_types)


@pytest.fixture(scope="module")
def causal():
    return checkpoint(EMBED, BLOCK, BLOCK, "layer_norm")


def logits(checkpoint, sequences, tmp_path):
    """Return the logits of sequences read back from a file, ``(n, L, 20)``."""
    path = tmp_path / "again.fasta"
    path.write_text("".join(f">s{i}\n{s}\n" for i, s in enumerate(sequences)))
    plan = checkpoint.model.plan
    graphs = [plan.precompute(r.hide(checkpoint.hidden), aatype=r.aatype) for r in load_fasta(path)]
    with torch.no_grad():
        return checkpoint.model(collate(graphs))["logits"].view(len(sequences), -1, 20).double()


@pytest.mark.parametrize("prompt", ["", "MKT"])
def test_headers_contain_the_perplexity_under_the_model(causal, tmp_path, prompt):
    made = generate(causal, n=3, length=20, prompt=prompt, temperature=0.7, top_k=8, top_p=0.9)
    log_probs = logits(causal, [s.sequence for s in made], tmp_path).log_softmax(-1)
    for s, row in zip(made, log_probs, strict=True):
        own = [row[i, ALPHABET.index(letter)] for i, letter in enumerate(s.sequence)][len(prompt) :]
        assert s.log_prob == pytest.approx(float(sum(own) / len(own)), abs=1e-5)
        assert s.perplexity == pytest.approx(math.exp(-s.log_prob))


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"temperature": 1.5, "top_k": 6}, {"top_p": 0.95}])
def test_samples_are_drawn_with_the_probabilities_of_the_model(causal, tmp_path, options):
    made = generate(causal, n=2500, length=3, prompt="M", seed=5, **options)
    second = torch.bincount(torch.tensor([ALPHABET.index(s.sequence[1]) for s in made]), minlength=20).double()
    check_frequencies(second, sampling_probabilities(logits(causal, ["MX"], tmp_path)[:, 1], **options)[0])
    common = ALPHABET[int(second.argmax())]
    third = [ALPHABET.index(s.sequence[2]) for s in made if s.sequence[1] == common]
    want = sampling_probabilities(logits(causal, [f"M{common}X"], tmp_path)[:, 2], **options)[0]
    check_frequencies(torch.bincount(torch.tensor(third), minlength=20).double(), want)


def check_frequencies(counts, want):
    """Apply Pearson's chi-squared test; classes expected fewer than 5 times are pooled."""
    assert not counts[want == 0].any()
    often = want * counts.sum() >= 5
    got = torch.cat([counts[often], counts[~often].sum()[None]]).numpy()
    expected = torch.cat([want[often], want[~often].sum()[None]]).numpy() * got.sum()
    got, expected = got[expected > 0], expected[expected > 0]
    assert len(got) > 1 and chisquare(got, expected).pvalue > 1e-3


def test_sequences_depend_on_the_seed(causal):
    one, again, other = (generate(causal, n=4, length=30, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert {s.sequence for s in other}.isdisjoint(s.sequence for s in one)
    assert len({s.sequence for s in one}) == 4


def test_sequences_start_with_the_prompt_and_depend_on_it(causal):
    made = {p: generate(causal, n=3, length=25, prompt=p, top_k=1) for p in ("MKTAX", "mktax", "GGGSG")}
    assert all(s.sequence.startswith("MKTAX") and len(s.sequence) == 25 for s in made["MKTAX"])
    assert made["mktax"] == made["MKTAX"]
    assert made["MKTAX"][0].sequence[5:] != made["GGGSG"][0].sequence[5:]
    assert len({s.sequence for s in made["MKTAX"]}) == 1  # the most probable residue each time


def test_the_first_residue_is_sampled_from_the_model(causal, tmp_path):
    made = generate(causal, n=2000, length=1)
    counts = torch.bincount(torch.tensor([ALPHABET.index(s.sequence) for s in made]), minlength=20).double()
    check_frequencies(counts, logits(causal, ["X"], tmp_path)[0, 0].softmax(0))


@pytest.mark.slow
def test_a_saved_checkpoint_generates_and_sequences_are_written_as_fasta(causal, tmp_path):
    path = pg.checkpoint.save_checkpoint(tmp_path / "small.safetensors", causal)
    done = []
    made = generate(path, n=2, length=100, prompt="MK", seed=1, on_residue=done.append)
    assert done == list(range(3, 101))
    assert made == generate(causal, n=2, length=100, prompt="MK", seed=1)
    out = write_generated(tmp_path / "new" / "sequences.fasta", made, name="small", settings={"seed": 1, "top_k": None})
    assert [r.sequence for r in load_fasta(out)] == [s.sequence for s in made]
    header = read_fasta(out)[1].header
    assert header.startswith(f"small_2 length=100 prompt=2 log_prob={made[1].log_prob:.6f} perplexity=")
    assert header.endswith(" seed=1")


def test_a_model_without_inputs_generates():
    made = generate(checkpoint("constant", features=()), n=2, length=5)
    assert all(len(s.sequence) == 5 for s in made)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"prompt": "MK1"}, "'1'"),
        ({"prompt": "MKT", "length": 3}, "length = 3"),
        ({"length": 0}, "length = 0"),
        ({"n": 0}, "n = 0"),
        ({"temperature": 0}, "temperature=0"),
        ({"top_k": 21}, "top_k=21"),
        ({"top_p": 1.1}, "top_p=1.1"),
        ({"device": "abacus"}, "abacus"),
    ],
)
def test_options_out_of_range_are_errors(causal, options, match):
    with pytest.raises(OptionError, match=match):
        generate(causal, **options)


def test_models_that_cannot_generate_are_errors():
    encoder = pg.component("encoder", dim=8, heads=2)
    with pytest.raises(LeakError, match="'bidirectional'"):
        generate(checkpoint(encoder, name="bidirectional"))
    states = pg.Task("states", pg.Target("states", "node", "classification", 3), TASK.loss, TASK.metrics, TASK.monitor)
    with pytest.raises(CheckpointError, match="'states'"):
        generate(checkpoint(EMBED, task=states))
    with pytest.raises(MissingCoordinatesError, match=r"features\[1\] \(dihedral\) of model 'small'"):
        generate(checkpoint(EMBED, features=("previous_residue", "dihedral")))


def test_a_causal_layer_of_another_kind_generates():
    layers = [
        EMBED,
        pg.component("position", reads={"seq_pos": "seq_pos"}),
        pg.component("window", size=0),
        pg.component("linear"),
    ]
    assert len(generate(checkpoint(*layers), n=2, length=4)) == 2


def test_a_model_with_edges_is_an_error():
    with pytest.raises(WiringError, match="edges"):
        generate(checkpoint(EMBED, BLOCK, features=("previous_residue", "sequence")), n=2, length=4)

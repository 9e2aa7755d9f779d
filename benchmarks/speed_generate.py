"""Sequences of a causal transformer: with a key-value cache, and without."""

from __future__ import annotations

import torch

from benchmarks.synthetic_inputs import largest_difference, threads
from benchmarks.timing import Measurement, Timing, interleave
from protgraph.checkpoint import Checkpoint
from protgraph.data.graph.protein_graph import collate
from protgraph.inference import generate
from protgraph.model import ModelSpec, ProteinModel, build_model
from protgraph.model.incremental import incremental_step
from protgraph.registry.component import component
from protgraph.structure.io.fasta import FastaRecord
from protgraph.task.language_modeling import NEXT_RESIDUE

__all__ = ["measure"]

SEQUENCES, LENGTH = 8, 120
CONTEXT = 512  # residues before the one that the second part adds
WIDTH, HEADS, DEPTH = 96, 6, 4
CACHED, PLAIN = "with cache", "without"


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """Measure 8 sequences of 120 residues, and one residue after 512; width 96, 6 heads, 4 blocks, random weights."""
    model = _model()
    return [_whole(model, seconds), _one_more(model, seconds)]


def _whole(model: ProteinModel, seconds: float) -> Measurement:
    masking = NEXT_RESIDUE.inputs
    checkpoint = Checkpoint(model, NEXT_RESIDUE.name, hidden=masking.hidden, visible_types=masking.visible_types)

    def sample(cache: bool) -> tuple[torch.Tensor]:
        samples = generate(checkpoint, n=SEQUENCES, length=LENGTH, cache=cache, device="cpu")
        return (torch.tensor([s.log_prob for s in samples]),)

    ways = {CACHED: lambda: sample(True), PLAIN: lambda: sample(False)}
    outcomes = [way() for way in ways.values()]
    rows = interleave(ways, reference=CACHED, seconds=seconds, warm=True)
    rates = ", ".join(f"{1e3 * SEQUENCES * LENGTH / row.ms:,.0f} residues/s {row.name}" for row in rows)
    return _result(
        f"{SEQUENCES} sequences of {LENGTH} residues ({rates})", rows, largest_difference(*outcomes), LENGTH, LENGTH / 2
    )


def _one_more(model: ProteinModel, seconds: float) -> Measurement:
    letters = ("ACDEFGHIKLMNPQRSTVWY" * CONTEXT)[: CONTEXT + 1]
    graphs = [
        model.plan.precompute(FastaRecord("", "s", 1, 1, ((1, letters[:end]),)).residues())
        for end in (CONTEXT, CONTEXT + 1)
    ]
    before, after = (collate(SEQUENCES * [graph]) for graph in graphs)
    with torch.no_grad():
        _, progress = incremental_step(model, before)

    def cached() -> tuple[torch.Tensor]:
        with torch.no_grad():
            return (incremental_step(model, after, progress)[0],)

    def plain() -> tuple[torch.Tensor]:
        with torch.no_grad():
            return (model(after)["logits"].view(SEQUENCES, CONTEXT + 1, -1)[:, -1],)

    outcomes = cached(), plain()
    rows = interleave({CACHED: cached, PLAIN: plain}, reference=CACHED, seconds=seconds, warm=True)
    return _result(f"residue {CONTEXT + 1} of {SEQUENCES} sequences", rows, largest_difference(*outcomes), 1, CONTEXT)


def _result(what: str, rows: tuple[Timing, ...], error: float, steps: int, context: float) -> Measurement:
    products = SEQUENCES * steps * DEPTH * (12 * WIDTH**2 + 2 * context * WIDTH)
    return Measurement(
        title=f"{what}, causal transformer of width {WIDTH}, {HEADS} heads, {DEPTH} blocks, {threads()}",
        reference=CACHED,
        rows=rows,
        lower_bound=f"{products / 1e6:.0f} M multiply-adds with one pass per residue",
        error=error,
    )


def _model() -> ProteinModel:
    block = component("pre_norm_block", heads=HEADS, causal=True, reads={"seq_pos": "seq_pos"})
    layers = [component("embed", reads=["previous"], dim=WIDTH), *DEPTH * [block], "layer_norm"]
    graph = ModelSpec("causal", features=["previous_residue"], layers=layers)
    return build_model(graph, NEXT_RESIDUE.target, seed=0).eval()

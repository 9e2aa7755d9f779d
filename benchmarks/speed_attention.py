"""Attention within each protein: the layer of protgraph, a padded one, and PyG's on explicit complete edges.

Second, invariant point attention with pair features as two factors per residue, and as their products for all pairs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from protgraph_plugins.ipa.attention import IPA
from torch import Tensor

from benchmarks.synthetic_inputs import forward_backward, largest_difference, machine, scalars
from benchmarks.timing import Measurement, interleave
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.layers.transformer import Transformer
from protgraph.ops import Proteins
from protgraph.process_memory import mmap_large_blocks, peak_memory, release_memory, reset_peak_memory
from protgraph.testing.symmetry import random_rotations

__all__ = ["measure"]

SIZES = tuple(range(90, 301, 30))  # 8 proteins of 90 to 300 residues
WIDTH, HEADS = 128, 8
LENGTH, RANK = 2048, 16  # of the protein and of the pair features of invariant point attention


def measure(*, seconds: float = 5.0, device: str = "cpu") -> list[Measurement]:
    """Measure 8 proteins of 90–300 residues, and pair factors of one of 2,048; forward and backward, same weights."""
    return [_complete_attention(seconds / 2, device), _pair_factors(seconds / 2, device)]


def _complete_attention(seconds: float, device: str) -> Measurement:
    from torch_geometric.nn import TransformerConv

    generator = torch.Generator().manual_seed(0)
    n, pairs = sum(SIZES), sum(size * size for size in SIZES)
    h = torch.randn(n, WIDTH, generator=generator).to(device).requires_grad_()
    batch = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES)).to(device)
    proteins, complete = Proteins(batch, SIZES), _complete_edges().to(device)
    ours = Transformer({"h": scalars("h", WIDTH), "proteins": field("proteins")}, dim=WIDTH, heads=HEADS)
    theirs = TransformerConv(WIDTH, WIDTH // HEADS, heads=HEADS)
    _share_weights(ours, theirs)
    ours, theirs = ours.to(device), theirs.to(device)
    cotangent = torch.randn(n, WIDTH, generator=generator).to(device)
    ways = {
        "transformer": forward_backward(lambda x: ours({"h": x, "proteins": proteins})["h"], h, cotangent),
        "padded to the longest, masked": forward_backward(lambda x: _padded(ours, x, proteins), h, cotangent),
        "PyG TransformerConv, complete edges": forward_backward(lambda x: theirs(x, complete), h, cotangent),
    }
    outcomes = [run() for run in ways.values()]
    products = 3 * (2 * pairs * WIDTH + 4 * n * WIDTH * WIDTH)  # backward has twice the products of forward
    return Measurement(
        title=f"attention, {len(SIZES)} proteins of {SIZES[0]}–{SIZES[-1]} residues ({pairs:,} pairs), width "
        f"{WIDTH}, {HEADS} heads, forward and backward, {machine(device)}",
        reference="transformer",
        rows=interleave(ways, reference="transformer", seconds=seconds, device=device),
        lower_bound=f"{products / 1e9:.1f} G multiply-adds; {n * WIDTH * 4 / 2**20:.1f} MiB in and out; one "
        f"tensor of explicit messages has {pairs * WIDTH * 4 / 2**20:.0f} MiB",
        error=max(largest_difference(outcomes[0], o) for o in outcomes),
    )


def _pair_factors(seconds: float, device: str) -> Measurement:
    generator, n = torch.Generator().manual_seed(0), LENGTH
    names, given = ("frame", "pos", "proteins"), {"h": scalars("h", WIDTH)}
    factors = {name: scalars(name, RANK) for name in ("pair_left", "pair_right")}
    fields = given | {name: field(name) for name in names}
    ours = IPA(fields | factors, dim=WIDTH, heads=HEADS)
    theirs = IPA(fields | {"pair": FieldSpec("pair", "pair", f"{RANK}x0e")}, dim=WIDTH, heads=HEADS)
    theirs.load_state_dict(ours.state_dict())
    ours, theirs = ours.to(device), theirs.to(device)
    h, left, right, pos = (torch.randn(n, width, generator=generator).to(device) for width in (WIDTH, RANK, RANK, 3))
    f = {"frame": random_rotations(n).to(h), "pos": 10 * pos}
    f["proteins"] = Proteins(torch.zeros(n, dtype=torch.long, device=device), (n,))

    def dense(a: Tensor) -> Tensor:
        return theirs({"h": h, "pair": (a[:, None] * right[None]).flatten(0, 1), **f})["h"]

    left.requires_grad_()
    cotangent, name = torch.randn(n, WIDTH, generator=generator).to(device), "ipa, factors"
    ways = {
        name: forward_backward(
            lambda a: ours({"h": h, "pair_left": a, "pair_right": right, **f})["h"], left, cotangent
        ),
        "ipa, their products for all pairs": forward_backward(dense, left, cotangent),
    }
    outcomes, memory = zip(*(_with_memory(way, torch.device(device)) for way in ways.values()), strict=True)
    return Measurement(
        title=f"pair features of rank {RANK}, one protein of {n:,} residues, width {WIDTH}, {HEADS} heads, forward and "
        f"backward, {machine(device)}",
        reference=name,
        rows=interleave(ways, reference=name, seconds=seconds, rounds=3, warm=True, device=device),
        lower_bound=f"{n * RANK * 4 / 2**20:.2f} MiB per factor; the products have {n * n * RANK * 4 / 2**20:.0f} MiB. "
        f"Peak memory: +{memory[0]:.0f} MiB with factors, +{memory[1]:.0f} MiB with products",
        error=largest_difference(*outcomes),
    )


def _with_memory(run: Callable[[], tuple[Tensor, ...]], device: torch.device) -> tuple[tuple[Tensor, ...], float]:
    """Run once, and return the result and by how much the peak memory increases, MiB."""
    mmap_large_blocks()
    release_memory()
    reset_peak_memory(device)
    before = peak_memory(device)
    return run(), peak_memory(device) - before


def _complete_edges() -> Tensor:
    """Return ``(2, E)``, all pairs within each protein, with self loops."""
    edges_of_protein, start = [], 0
    for size in SIZES:
        nodes = torch.arange(start, start + size)
        edges_of_protein.append(torch.stack([nodes.repeat(size), nodes.repeat_interleave(size)]))
        start += size
    return torch.cat(edges_of_protein, 1)


def _share_weights(ours: Transformer, theirs: torch.nn.Module) -> None:
    parts = (theirs.lin_query, theirs.lin_key, theirs.lin_value)
    with torch.no_grad():
        for part, weight, bias in zip(parts, ours.qkv.weight.chunk(3), ours.qkv.bias.chunk(3), strict=True):
            part.weight.copy_(weight)
            part.bias.copy_(bias)
        theirs.lin_skip.load_state_dict(ours.root.state_dict())


def _padded(layer: Transformer, x: Tensor, proteins: Proteins) -> Tensor:
    """Compute attention without explicit edges: one call over all proteins, padded to the longest, with a mask."""
    from torch.nn.functional import scaled_dot_product_attention

    padded, real = proteins.pad(layer.qkv(x).view(x.size(0), 3, HEADS, -1))  # (B, L, 3, H, D), (B, L)
    q, k, v = padded.permute(2, 0, 3, 1, 4)
    out = scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, None])  # (B, H, L, D)
    return proteins.unpad(out.transpose(1, 2)).flatten(1) + layer.root(x)

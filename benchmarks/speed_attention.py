"""Attention within each protein: the layer of protgraph, a padded one, and PyG's on explicit complete edges."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.synthetic_inputs import forward_backward, largest_difference, scalars, threads
from benchmarks.timing import Measurement, interleave
from protgraph.data.graph.fields import field
from protgraph.nn.layers.transformer import Transformer
from protgraph.ops import Proteins

__all__ = ["measure"]

SIZES = tuple(range(90, 301, 30))  # 8 proteins of 90 to 300 residues
WIDTH, HEADS = 128, 8


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """Measure 8 proteins of 90–300 residues, width 128, 8 heads; forward and backward, same weights."""
    from torch_geometric.nn import TransformerConv

    generator = torch.Generator().manual_seed(0)
    n, pairs = sum(SIZES), sum(size * size for size in SIZES)
    h = torch.randn(n, WIDTH, generator=generator, requires_grad=True)
    batch = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    proteins, complete = Proteins(batch, SIZES), _complete_edges()
    ours = Transformer({"h": scalars("h", WIDTH), "proteins": field("proteins")}, dim=WIDTH, heads=HEADS)
    theirs = TransformerConv(WIDTH, WIDTH // HEADS, heads=HEADS)
    _share_weights(ours, theirs)
    cotangent = torch.randn(n, WIDTH, generator=generator)
    ways = {
        "transformer": forward_backward(lambda x: ours({"h": x, "proteins": proteins})["h"], h, cotangent),
        "padded to the longest, masked": forward_backward(lambda x: _padded(ours, x, proteins), h, cotangent),
        "PyG TransformerConv, complete edges": forward_backward(lambda x: theirs(x, complete), h, cotangent),
    }
    outcomes = [run() for run in ways.values()]
    products = 3 * (2 * pairs * WIDTH + 4 * n * WIDTH * WIDTH)  # backward has twice the products of forward
    return [
        Measurement(
            title=f"attention, {len(SIZES)} proteins of {SIZES[0]}–{SIZES[-1]} residues ({pairs:,} pairs), width "
            f"{WIDTH}, {HEADS} heads, forward and backward, {threads()}",
            reference="transformer",
            rows=interleave(ways, reference="transformer", seconds=seconds),
            lower_bound=f"{products / 1e9:.1f} G multiply-adds; {n * WIDTH * 4 / 2**20:.1f} MiB in and out; one "
            f"tensor of explicit messages has {pairs * WIDTH * 4 / 2**20:.0f} MiB",
            error=max(largest_difference(outcomes[0], o) for o in outcomes),
        )
    ]


def _complete_edges() -> Tensor:
    """Return ``(2, E)``, all pairs within each protein, with self loops."""
    parts, start = [], 0
    for size in SIZES:
        nodes = torch.arange(start, start + size)
        parts.append(torch.stack([nodes.repeat(size), nodes.repeat_interleave(size)]))
        start += size
    return torch.cat(parts, 1)


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

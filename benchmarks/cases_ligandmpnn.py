"""Context atoms of LigandMPNN in ``python -m benchmarks layers``, with concatenated features of atoms and pairs."""

from __future__ import annotations

import torch
from protgraph_plugins.ligandmpnn.fields import num_pairs
from protgraph_plugins.ligandmpnn.layers import ContextAtomEncoder
from torch import Tensor, nn
from torch.nn.functional import gelu

from benchmarks.layer_case import LayerInputs, SpeedCase
from protgraph import FieldSpec

__all__ = ["CASES", "JoinedPairs"]

ATOMS, CHANNELS, BINS = 12, 32, 16  # as in training; 25 atoms and 128 channels require 70 times the memory


class JoinedPairs(nn.Module):
    """``y_a ← update(y_a, Σ_b W₃ g(W₂ g(W₁ [y_a, e_ab])))`` on all k × k pairs, W₃ among them."""

    def __init__(self, ours: ContextAtomEncoder) -> None:
        super().__init__()
        self.ours = ours
        self.first = nn.Linear(2 * CHANNELS, CHANNELS)
        with torch.no_grad():
            self.first.weight.copy_(torch.cat([ours.target.weight, ours.edge.weight], 1))
            self.first.bias.copy_(ours.edge.bias)

    def forward(self, y: Tensor, basis: Tensor) -> Tensor:
        o, update = self.ours, self.ours.update
        e = o.pair_norm(o.pair(basis))  # (N, k, k, C)
        z = torch.cat([y[:, :, None].expand_as(e), e], -1)  # (N, k, k, 2 C)
        m = update.out(gelu(o.middle(gelu(self.first(z)))))
        h = update.norms[0](y + m.sum(2) / update.scale)
        return update.norms[1](h + update.feed_forward(h))


def context_atom_encoder(s: LayerInputs) -> SpeedCase:
    """Compare 12 context atoms per residue, without padding."""
    n = len(s.h)
    shapes = {"context_h": (ATOMS, CHANNELS), "context_pair_rbf": (num_pairs(ATOMS), BINS)}
    specs = {name: FieldSpec(name, "node", f"{a * b}x0e", shape=(a, b)) for name, (a, b) in shapes.items()}
    specs["context_mask"] = FieldSpec("context_mask", "node", f"{ATOMS}x0e", "bool", shape=(ATOMS,))
    ours = ContextAtomEncoder(specs, dropout=0.0)
    basis, mask = torch.rand(n, *shapes["context_pair_rbf"]), torch.ones(n, ATOMS, dtype=torch.bool)
    both, plain = basis[:, ours.place.flatten()].view(n, ATOMS, ATOMS, BINS), JoinedPairs(ours)
    return SpeedCase(
        lambda x: ours({"context_h": x, "context_pair_rbf": basis, "context_mask": mask})["context_h"],
        ours,
        "joined features of all pairs",
        lambda x: plain(x, both),
        nn.ModuleList([plain.first, ours.middle, ours.update, ours.pair, ours.pair_norm]),
        torch.randn(n, *shapes["context_h"], requires_grad=True),
        f"{CHANNELS} channels of {ATOMS} context atoms",
        (
            num_pairs(ATOMS) * (BINS + CHANNELS) * CHANNELS + ATOMS**2 * CHANNELS**2 + 10 * ATOMS * CHANNELS**2,
            0,
            "V and B on pairs a ≤ b, W₂ on all pairs, the rest on atoms",
        ),
    )


CASES = {"context_atom_encoder": context_atom_encoder}

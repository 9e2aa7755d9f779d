"""Components that fail for large proteins, large or small values, or take memory of every pair of nodes."""

from __future__ import annotations

import numpy as np
import torch
from honest_twins import (  # test_broken_twins adds this folder to the path
    HonestEdges,
    HonestHead,
    HonestMeasure,
    HonestScalars,
    twin,
)
from torch import nn

import protgraph as pg


@twin("large_proteins")
class NoNodeAfterThe64th(HonestScalars):
    reads = ("h", "edges", "proteins")

    def forward(self, f):
        proteins, h = f["proteins"], super().forward(f)["h"]
        number = torch.arange(len(h), device=h.device) - proteins.ptr[:-1].index_select(0, proteins.batch)
        return {"h": h * (number < 64).to(h)[:, None]}


@twin("large_proteins")
class TableOf100Positions(HonestScalars):
    reads = ("h", "edges", "seq_pos")

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.table = nn.Embedding(100, dim)

    def forward(self, f):
        return {"h": super().forward(f)["h"] + self.table(f["seq_pos"])}


@twin("large_proteins")
class WindowOf64Neighbors(HonestScalars):
    """The first 64 neighbors in the order of their distance."""

    def forward(self, f):
        edges = f["edges"]
        first = torch.arange(edges.num_edges, device=edges.device) - edges.ptr[:-1].index_select(0, edges.index[1]) < 64
        return {"h": self.own(f["h"]) + edges.sum(edges.source(self.other(f["h"])) * first[:, None])}


@twin("large_proteins")
class RaisesFrom100ResiduesOn(HonestScalars):
    reads = ("h", "edges", "proteins")

    def forward(self, f):
        if max(f["proteins"].sizes) > 100:
            raise ValueError("too long")
        return super().forward(f)


@twin("large_proteins")
class HeadOfTheFirst100(HonestHead):
    def forward(self, f):
        parts = []
        for x in f["proteins"].split(self.linear(f["h"])):
            parts.append(torch.cat([x[:100], 0 * x[100:]]))
        return {"logits": torch.cat(parts)}


@twin("large_proteins")
class MeasureOfTheFirst64(HonestMeasure):
    def __call__(self, residues):
        value = super().__call__(residues)["twin_scalar"]
        value[64:] = 0
        return {"twin_scalar": value}


@twin("large_proteins")
class MeasureOfShortProteins(HonestMeasure):
    def __call__(self, residues):
        table = np.zeros((200, 1))
        table[: len(residues)] = super().__call__(residues)["twin_scalar"]
        return {"twin_scalar": table[: len(residues)]}


@twin("large_proteins")
class NoEdgesFrom60ResiduesOn(HonestEdges):
    def choose(self, source, target):
        is_short = len(source) < 0.9 * 60 * 8 or target.max(initial=0) < 60
        return pg.EdgeList(source[: len(source) * is_short], target[: len(target) * is_short])


@twin("memory")
class DenseDistances(HonestScalars):
    reads = ("h", "edges", "pos", "proteins")

    def forward(self, f):
        pos, batch = f["pos"], f["proteins"].batch
        weight = torch.exp(-(pos[:, None] - pos).square().sum(-1) / 100) * (batch[:, None] == batch)
        return {"h": super().forward(f)["h"] + weight @ self.other(f["h"])}


@twin("memory")
class DenseAdjacency(HonestScalars):
    def forward(self, f):
        edges, h = f["edges"], self.other(f["h"])
        adjacency = h.new_zeros(len(h), len(h))
        adjacency = adjacency.index_put((edges.index[1], edges.index[0]), h.new_ones(()))
        return {"h": self.own(f["h"]) + adjacency @ h}


@twin("memory")
class PairsOfEachProtein(HonestScalars):
    reads = ("h", "edges", "proteins")

    def forward(self, f):
        h, mask = f["proteins"].pad(self.other(f["h"]))
        weight = torch.einsum("bid,bjd->bij", h, h).tanh() * mask[:, None]
        return {"h": super().forward(f)["h"] + f["proteins"].unpad(weight @ h) / 10}


@twin("memory")
class AttentionOverTheBatch(HonestScalars):
    reads = ("h", "edges", "proteins")

    def forward(self, f):
        h, batch = self.other(f["h"]), f["proteins"].batch
        logits = (h @ h.T).masked_fill(batch[:, None] != batch, float("-inf"))
        return {"h": super().forward(f)["h"] + logits.softmax(1) @ h}


class _AllPairs(torch.autograd.Function):
    """The identity, whose gradient takes a detour over all pairs of rows."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ones = torch.eye(len(gradient), dtype=gradient.dtype, device=gradient.device)
        return ones @ gradient


@twin("memory")
class DenseInTheBackwardPass(HonestScalars):
    def forward(self, f):
        return {"h": _AllPairs.apply(super().forward(f)["h"])}


@twin("scale")
class ExponentialOfFeatures(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h.exp() / (1 + h.exp())}


@twin("scale")
class SoftmaxWithoutItsMaximum(HonestScalars):
    def forward(self, f):
        edges, m = f["edges"], f["edges"].source(self.other(f["h"]))
        weight = (m.sum(1, keepdim=True) / 3).exp()
        return {"h": self.own(f["h"]) + edges.sum(weight * m) / (1e-6 + edges.sum(weight))}


@twin("scale")
class TwelfthPower(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h * f["h"].mean(1, keepdim=True).pow(12).add(1).pow(1 / 12)}


@twin("scale")
class HeadOfProbabilities(HonestHead):
    def forward(self, f):
        return {"logits": super().forward(f)["logits"].softmax(1)}


@twin("scale")
class HeadOfSigmoids(HonestHead):
    def forward(self, f):
        return {"logits": super().forward(f)["logits"].sigmoid()}

"""Layers that depend on the order of nodes and edges, or on the other proteins of a batch."""

from __future__ import annotations

import torch
from honest_twins import HonestScalars, twin  # test_broken_twins adds this folder to the path
from torch import nn
from torch.nn import functional


@twin("node_order")
class DependsOnNodeOrder(HonestScalars):
    def forward(self, f):
        number = torch.arange(len(f["h"]), device=f["h"].device)[:, None] / 10
        return {"h": super().forward(f)["h"] + number.to(f["h"]) % 1}


@twin("node_order")
class ConvolutionOverTheOrderOfNodes(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + functional.avg_pool1d(h.T[None], 3, stride=1, padding=1)[0].T}


@twin("edge_order")
class NeighborCapByEdgeOrder(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        first = torch.arange(edges.num_edges, device=edges.device) - edges.ptr[:-1].index_select(0, edges.index[1]) < 3
        m = edges.source(self.other(f["h"])) * first[:, None]
        return {"h": self.own(f["h"]) + edges.sum(m)}


@twin("batch_equals_singles")
class CrossProteinEdges(HonestScalars):
    reads = ("h", "edges", "pos")

    def forward(self, f):
        near = torch.cdist(f["pos"] - f["pos"].mean(0), f["pos"] - f["pos"].mean(0)).topk(4, largest=False).indices
        return {"h": super().forward(f)["h"] + self.other(f["h"])[near].mean(1)}


@twin("batch_equals_singles")
class MeanOverPadding(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        return {"h": self.own(f["h"]) + edges.incoming(edges.source(self.other(f["h"]))).mean(1)}


@twin("batch_equals_singles")
class MaximumOverPadding(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        return {"h": self.own(f["h"]) + edges.incoming(edges.source(self.other(f["h"]))).amax(1)}


@twin("batch_equals_singles")
class SoftmaxOverPadding(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        m = edges.incoming(edges.source(self.other(f["h"])))
        return {"h": self.own(f["h"]) + (m.softmax(1) * m).sum(1)}


@twin("batch_equals_singles")
class SumOverTheLargestDegree(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        return {"h": self.own(f["h"]) + edges.sum(edges.source(self.other(f["h"]))) / edges.max_degree}


@twin("batch_equals_singles")
class SumTimesTheMeanDegree(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        h = super().forward(f)["h"]
        return {"h": h * (edges.num_edges / edges.num_nodes)}


@twin("batch_equals_singles")
class SoftmaxOverTheBatch(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h.softmax(0) * 10}


@twin("batch_equals_singles")
class NormalizedOverTheBatch(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": (h - h.mean(0)) / (h.std(0, correction=0) + 1e-5)}


@twin("batch_equals_singles")
class OneProteinAssumed(HonestScalars):
    reads = ("h", "edges", "proteins")

    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + h.mean(0) + 0 * f["proteins"].expand(f["proteins"].mean(h))}


@twin("no_leak")
class BatchNormLeaksInTraining(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, f):
        return {"h": self.norm(super().forward(f)["h"])}


@twin("node_order")
class ReversedEdgesAssumed(HonestScalars):
    """Adds the message of the reversed edge, which exists in symmetric graphs only."""

    def forward(self, f):
        edges = f["edges"]
        source, target = edges.index
        reverse = torch.argsort(source * edges.num_nodes + target)
        m = edges.source(self.other(f["h"]))
        return {"h": self.own(f["h"]) + edges.mean(m + torch.tanh(m).index_select(0, reverse))}


@twin("memory_layout")
class ViewsItsInput(HonestScalars):
    def forward(self, f):
        return super().forward({**f, "h": f["h"].view(-1).view(len(f["h"]), -1)})


@twin("memory_layout")
class ReadsByStrides(HonestScalars):
    def forward(self, f):
        h = f["h"]
        return super().forward({**f, "h": torch.as_strided(h, h.shape, (h.size(1), 1))})


@twin("memory_layout")
class RefusesSlices(HonestScalars):
    def forward(self, f):
        assert f["h"].is_contiguous()
        return super().forward(f)


@twin("edge_order")
class LastNeighborAlone(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        is_last = (
            torch.arange(edges.num_edges, device=edges.device) == edges.ptr[1:].index_select(0, edges.index[1]) - 1
        )
        return {"h": self.own(f["h"]) + edges.sum(edges.source(self.other(f["h"])) * is_last[:, None])}


@twin("edge_order")
class WeightsByRank(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        rank = torch.arange(edges.num_edges, device=edges.device) - edges.ptr[:-1].index_select(0, edges.index[1])
        return {"h": self.own(f["h"]) + edges.sum(edges.source(self.other(f["h"])) / (1 + rank)[:, None])}


@twin("no_leak")
class CenteredOnTheBatchInTraining(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h - h.mean(0) if self.training else h}


@twin("no_leak")
class MixesProteinsInTraining(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + 0.1 * h.roll(1, 0) if self.training else h}


@twin("batch_equals_singles")
class TwiceAsLargeFromSixProteinsOn(HonestScalars):
    reads = ("h", "edges", "proteins")

    def forward(self, f):
        return {"h": super().forward(f)["h"] * (2 if len(f["proteins"].sizes) >= 6 else 1)}


@twin("batch_equals_singles")
class OtherKernelFrom512Nodes(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h.half().to(h) if len(h) >= 512 else h}

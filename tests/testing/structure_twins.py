"""Broken heads and featurizers."""

from __future__ import annotations

import numpy as np
import torch
from honest_twins import (
    HonestEdges,
    HonestExpansion,
    HonestHead,
    HonestMeasure,
    twin,
)  # test_broken_twins adds this folder to the path
from torch import nn

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec


@twin("rotation")
class HeadOnVectorComponents(HonestHead):
    def __init__(self, fields, target):
        pg.Head.__init__(self, fields, target)
        self.linear = nn.Linear(fields["h"].dim, target.size)
        self.declare(logits=FieldSpec("logits", "node", f"{target.size}x0e"))


@twin("node_order")
class HeadThatCounts(HonestHead):
    def forward(self, f):
        return {"logits": super().forward(f)["logits"] * (1 + torch.arange(len(f["h"])).to(f["h"])[:, None] % 7)}


@twin("batch_equals_singles")
class HeadOverTheBatch(HonestHead):
    def forward(self, f):
        logits = super().forward(f)["logits"]
        return {"logits": logits - logits.mean(0)}


@twin("rotation")
class MeasuredFromTheOrigin(HonestMeasure):
    def vector(self, residues):
        return residues.pos


@twin("rotation")
class HeightAboveAPlane(HonestMeasure):
    def vector(self, residues):
        return (residues.pos - residues.pos.mean(0))[:, 2:]


@twin("rotation")
class VectorInTheFramesOfTheFile(HonestMeasure):
    writes = ("twin_vector",)

    def __call__(self, residues):
        return {"twin_vector": np.abs(self.vector(residues))}


@twin("reflection")
class HandednessDeclaredEven(HonestMeasure):
    def __call__(self, residues):
        n, ca, c, o = residues.backbone.transpose(1, 0, 2)
        return {"twin_scalar": np.einsum("nx,nx->n", np.cross(n - ca, c - ca), o - ca)[:, None]}


@twin("node_order")
class NumberOfTheRow(HonestMeasure):
    def __call__(self, residues):
        return {"twin_scalar": super().__call__(residues)["twin_scalar"] * (1 + np.arange(len(residues))[:, None])}


@twin("batch_equals_singles", first="rotation")
class RunningMean(HonestMeasure):
    def __init__(self):
        super().__init__()
        self.total, self.count = 0.0, 0

    def __call__(self, residues):
        value = super().__call__(residues)["twin_scalar"]
        self.total, self.count = self.total + value.mean(), self.count + 1
        return {"twin_scalar": value + self.total / self.count + 1e-3 * self.count}


@twin("degenerate")
class NaNWhereAnAtomIsMissing(HonestMeasure):
    def vector(self, residues):
        return residues.backbone[:, 0] - residues.backbone[:, 2]


@twin("inputs_unchanged")
class CentersTheResiduesInPlace(HonestMeasure):
    def vector(self, residues):
        residues.pos[:] -= residues.pos.mean(0)
        return residues.pos


@twin("finite")
class LogarithmOfNothing(HonestMeasure):
    def __call__(self, residues):
        with np.errstate(divide="ignore"):
            return {"twin_scalar": np.log(0 * super().__call__(residues)["twin_scalar"])}


@twin("non_trivial")
class TheSameForEveryProtein(HonestMeasure):
    def __call__(self, residues):
        return {"twin_scalar": np.ones((len(residues), 1))}


@twin("node_order")
class NeighborCapByIndexOrder(HonestEdges):
    def choose(self, source, target):
        rank = np.empty(len(target), int)
        rank[np.lexsort((source, target))] = np.arange(len(target)) - np.searchsorted(target, target)
        return pg.EdgeList(source[rank < 2], target[rank < 2])


@twin("rotation")
class NeighborsInABox(HonestEdges):
    def __call__(self, residues):
        apart = np.abs(residues.pos[:, None] - residues.pos).max(-1)
        distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
        target, source = np.nonzero((apart <= 6.0) & ~np.eye(len(residues), dtype=bool))
        order = np.lexsort((source, distance[target, source], target))
        return pg.EdgeList(source[order], target[order])


@twin("reads_writes")
class EdgesToThemselves(HonestEdges):
    def choose(self, source, target):
        return pg.EdgeList(np.concatenate([[0], source]), np.concatenate([[0], target]))


@twin("reads_writes")
class EdgesSortedBySource(HonestEdges):
    def choose(self, source, target):
        return pg.EdgeList(target, source)


@twin("reads_writes")
class FalseDegree(HonestEdges):
    def choose(self, source, target):
        return pg.EdgeList(source, target, degree=3)


@twin("rotation")
class MeanPositionOfNeighbors(HonestExpansion):
    def __call__(self, f):
        return {"twin_vector": f["edges"].mean(f["edges"].source(f["pos"]))}


@twin("rotation")
class DirectionWithAGlobalUp(HonestExpansion):
    def __call__(self, f):
        vector = super().__call__(f)["twin_vector"]
        return {"twin_vector": vector + torch.tensor([0.0, 0.0, 1.0]).to(vector)}


@twin("batch_equals_singles", first="rotation")
class CenteredOnTheBatch(HonestExpansion):
    def __call__(self, f):
        pos = f["pos"]
        return {"twin_vector": super().__call__(f)["twin_vector"] * (1 + (pos - pos.mean(0)).norm(dim=1, keepdim=True))}


@twin("numbering")
class AuthorNumbersAsValues(HonestMeasure):
    def __call__(self, residues):
        return {"twin_scalar": super().__call__(residues)["twin_scalar"] + residues.res_id[:, None] / 100}


@twin("numbering")
class NameOfTheChain(HonestMeasure):
    def __call__(self, residues):
        letter = np.array([float(len(name) + ord(name[:1] or " ")) for name in residues.chain])[:, None]
        return {"twin_scalar": super().__call__(residues)["twin_scalar"] + letter}


@twin("numbering")
class NameOfTheProtein(HonestMeasure):
    def __call__(self, residues):
        return {"twin_scalar": super().__call__(residues)["twin_scalar"] * len(residues.name)}


@twin("numbering")
class EdgesByAuthorNumbers(HonestEdges):
    def __call__(self, residues):
        edges = super().__call__(residues)
        keep = (residues.res_id[edges.source] + residues.res_id[edges.target]) % 3 > 0
        return pg.EdgeList(edges.source[keep], edges.target[keep]) if residues.res_id.min() < 1000 else edges


@twin("gradients")
class ExpansionThatDetaches(HonestExpansion):
    def __call__(self, f):
        return super().__call__({**f, "pos": f["pos"].detach()})


@twin("numbering")
class AlphabeticalNumberOfTheChain(HonestMeasure):
    def __call__(self, residues):
        number = np.unique(residues.chain, return_inverse=True)[1]
        return {"twin_scalar": super().__call__(residues)["twin_scalar"] + number[:, None]}


@twin("large_proteins")
class TableOf500Residues(HonestMeasure):
    def __call__(self, residues):
        values = super().__call__(residues)["twin_scalar"]
        values[500:] = 0
        return {"twin_scalar": values}


@twin("options")
class RadiusThatIsIgnored(HonestMeasure):
    def __init__(self, *, radius: float = 10.0):
        super().__init__()
        self.radius = radius


@twin("numbering")
class DifferencesOfAuthorNumbers(HonestEdges):
    def __call__(self, residues):
        edges = super().__call__(residues)
        is_far = np.abs(residues.res_id[edges.source] - residues.res_id[edges.target]) > 2
        return pg.EdgeList(edges.source[is_far], edges.target[is_far])


@twin("node_order")
class ToTheNextResidueOfTheFile(HonestMeasure):
    """Also from the end of a chain to the beginning of the next."""

    def vector(self, residues):
        return np.roll(residues.pos, -1, axis=0) - residues.pos


@twin("node_order")
class ToTheLastAtomOfTheResidue(HonestMeasure):
    def vector(self, residues):
        return residues.atom_pos[residues.atom_ptr[1:] - 1] - residues.pos


@twin("non_trivial")
class HeadWithoutTheFirstLogit(HonestHead):
    def forward(self, f):
        logits = super().forward(f)["logits"]
        return {"logits": torch.cat([0 * logits[:, :1], logits[:, 1:]], 1)}

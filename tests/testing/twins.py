"""Layers, heads and featurizers with one defect each, as they are known from the field, beside honest ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import protgraph as pg
from protgraph.data.fields import FieldSpec

# Twin → the check that must catch it, and the one that is the first to.
BROKEN: dict[type, tuple[str, str]] = {}


def twin(check: str, *, first: str | None = None):
    def mark(cls: type) -> type:
        BROKEN[cls] = check, first or check
        return cls

    return mark


# --- layers -----------------------------------------------------------------------------------------------------------


class HonestLayer(pg.GraphLayer):
    """Scalars from distances and vectors from directions: ``h_i = mean_j φ(h_j, d) , mean_j φ'(h_j) r_ij``."""

    reads, writes = ("h", "edge_vec", "edges"), ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        width = self.scalar_width("h")
        self.scalar = nn.Linear(width + 1, dim)
        self.vector = nn.Linear(width, 4, bias=False)
        self.declare(h=f"{dim}x0e+4x1o")

    def see(self, vec):
        return vec / 10

    def forward(self, f):
        edges, vec = f["edges"], self.see(f["edge_vec"])
        h = edges.source(f["h"])
        scalars = edges.mean(torch.tanh(self.scalar(torch.cat([h, vec.square().sum(1, keepdim=True)], 1))))
        vectors = edges.mean(self.vector(h)[:, :, None] * vec[:, None])
        return self.finish(scalars, vectors)

    def finish(self, scalars, vectors):
        return {"h": torch.cat([scalars, vectors.flatten(1)], 1)}


class HonestScalars(pg.GraphLayer):
    """``h_i = W h_i + mean_j U h_j``."""

    reads, writes = ("h", "edges"), ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        self.own = nn.Linear(self.scalar_width("h"), dim)
        self.other = nn.Linear(self.scalar_width("h"), dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        return {"h": self.own(f["h"]) + f["edges"].mean(f["edges"].source(self.other(f["h"])))}


def twisted(f: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**f, **changes}


@twin("rotation")
class GlobalAxisAsDirection(HonestLayer):
    def see(self, vec):
        return vec / 10 + torch.tensor([0.0, 0.0, 1.0]).to(vec)


@twin("rotation")
class UnrotatedEdgeVectors(HonestLayer):
    def see(self, vec):
        return vec.abs() / 10


@twin("rotation")
class VectorsInFloat32(HonestLayer):
    def see(self, vec):
        return vec.float().to(vec.dtype) / 10


@twin("rotation")
class SumOfVectorComponents(HonestLayer):
    def finish(self, scalars, vectors):
        return {"h": torch.cat([scalars + vectors.sum((1, 2))[:, None], vectors.flatten(1)], 1)}


@twin("rotation")
class ComponentsBeforeChannels(HonestLayer):
    def finish(self, scalars, vectors):
        return {"h": torch.cat([scalars, vectors.mT.flatten(1)], 1)}


@twin("rotation")
class NonlinearityOnVectors(HonestLayer):
    def finish(self, scalars, vectors):
        return {"h": torch.cat([scalars, torch.tanh(vectors.flatten(1))], 1)}


@twin("rotation")
class BiasOnVectorsThatStartsAtZero(HonestLayer):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.bias = nn.Parameter(torch.zeros(12))

    def finish(self, scalars, vectors):
        return {"h": torch.cat([scalars, vectors.flatten(1) + self.bias], 1)}


@twin("rotation")
class ScalarsDeclaredAsVectors(HonestScalars):
    def __init__(self, fields, *, dim: int = 9):
        super().__init__(fields, dim=dim)
        self.declare(h="3x1o")


class OnPositions(pg.GraphLayer):
    reads, writes = ("pos", "edges", "proteins"), ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        self.linear = nn.Linear(self.width, dim)
        self.declare(h=f"{dim}x0e")

    width = 3

    def forward(self, f):
        return {
            "h": self.linear(self.features(f) / 10)
            + f["edges"].mean(f["edges"].source(self.features(f) / 10)).sum(1, keepdim=True)
        }


@twin("rotation")
class PositionsUsedRaw(OnPositions):
    def features(self, f):
        return f["pos"]


@twin("rotation")
class PositionsCentredButNotTurned(OnPositions):
    def features(self, f):
        return f["pos"] - f["proteins"].expand(f["proteins"].mean(f["pos"]))


@twin("rotation")
class DistanceFromTheOrigin(OnPositions):
    width = 1

    def features(self, f):
        return f["pos"].norm(dim=1, keepdim=True)


@twin("rotation")
class PositionsWrittenWithoutTheirShift(pg.GraphLayer):
    reads, writes = ("pos", "edges"), ("pos",)

    def __init__(self, fields):
        super().__init__(fields)
        self.declare(pos=pg.field("pos"))

    def forward(self, f):
        return {"pos": f["pos"] + 0.1 * f["edges"].sum(f["edges"].source(f["pos"]))}


@twin("rotation")
class AxesOfInertiaWithArbitrarySigns(OnPositions):
    def features(self, f):
        centred = f["pos"] - f["proteins"].expand(f["proteins"].mean(f["pos"]))
        outer = f["proteins"].mean(centred[:, :, None] * centred[:, None])
        axes = torch.linalg.eigh(outer).eigenvectors  # each axis or its opposite
        return torch.einsum("nx,nxk->nk", centred, f["proteins"].expand(axes))


@twin("reflection")
class TripleProductDeclaredEven(HonestLayer):
    def finish(self, scalars, vectors):
        volume = torch.linalg.det(10 * vectors[:, :3])[:, None]
        return {"h": torch.cat([scalars + volume, vectors.flatten(1)], 1)}


@twin("reflection")
class CrossProductDeclaredOdd(HonestLayer):
    def finish(self, scalars, vectors):
        turned = torch.linalg.cross(10 * vectors, vectors.roll(1, 1))
        return {"h": torch.cat([scalars, turned.flatten(1)], 1)}


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
class NeighbourCapByEdgeOrder(HonestScalars):
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
class SoftmaxOverTheBatch(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h.softmax(0) * 10}


@twin("batch_equals_singles")
class NormalisedOverTheBatch(HonestScalars):
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


@twin("finite")
class NaNOutput(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] * float("nan")}


@twin("non_trivial")
class ZeroOutput(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] * 0}


@twin("non_trivial")
class VectorsAlwaysZero(HonestLayer):
    def finish(self, scalars, vectors):
        return {"h": torch.cat([scalars, 0 * vectors.flatten(1)], 1)}


@twin("non_trivial")
class ScaledByTenBillionth(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] * 1e-10}


@twin("non_trivial")
class ReadsEdgesInVain(HonestScalars):
    def forward(self, f):
        return {"h": self.own(f["h"]) + self.other(f["h"])}


@twin("non_trivial")
class ReadsAFieldInVain(HonestScalars):
    reads = ("h", "edges", "edge_attr")


@twin("non_trivial")
class HardlyMovesWithAField(HonestScalars):
    reads = ("h", "edges", "edge_attr")

    def forward(self, f):
        return {"h": super().forward(f)["h"] + 1e-10 * f["edges"].sum(f["edge_attr"]).sum(1, keepdim=True)}


@twin("non_trivial")
class RemembersItsFirstAnswer(HonestScalars):
    def forward(self, f):
        if getattr(self, "answer", None) is None or len(self.answer) != len(f["h"]):
            self.answer = super().forward(f)["h"]
        return {"h": self.answer}


@twin("reads_writes")
class ReadsAnUndeclaredField(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] + f["edge_vec"].sum()}


@twin("reads_writes")
class ReadsAnUndeclaredFieldIfThere(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h if f.get("pos") is None else h + f["pos"].sum(1, keepdim=True)}


@twin("reads_writes")
class WritesMoreThanDeclared(HonestScalars):
    def forward(self, f):
        return {**super().forward(f), "pos": f["h"][:, :3]}


@twin("reads_writes")
class WritesLessThanDeclared(HonestScalars):
    writes = ("h", "update")

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.declare(update="8x0e")


@twin("reads_writes")
class WrongShape(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"][:, :-1]}


@twin("reads_writes")
class AlwaysFloat32(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"].float()}


@twin("inputs_unchanged")
class ChangesItsInputInPlace(HonestScalars):
    def forward(self, f):
        return super().forward(twisted(f, h=torch.relu_(f["h"])))


@twin("inputs_unchanged")
class PutsItsOutputIntoTheInput(HonestScalars):
    def forward(self, f):
        out = super().forward(f)
        f["message"] = out["h"]
        return out


@twin("every_parameter_learns")
class UnusedParameter(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.spare = nn.Linear(3, 3)


@twin("every_parameter_learns")
class BiasThatSoftmaxRemoves(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.query = nn.Linear(self.scalar_width("h"), 1)

    def forward(self, f):
        edges = f["edges"]
        weight = edges.softmax(edges.source(self.query(f["h"])))
        return {"h": self.own(f["h"]) + edges.sum(weight * edges.source(self.other(f["h"])))}


@twin("every_parameter_learns")
class DetachedBranch(HonestScalars):
    def forward(self, f):
        return {"h": self.own(f["h"]) + f["edges"].mean(f["edges"].source(self.other(f["h"]).detach()))}


@twin("degenerate")
class DividesByDistance(HonestLayer):
    def see(self, vec):
        return vec / vec.norm(dim=1, keepdim=True)


@twin("degenerate")
class RootOfZeroInTheGradient(HonestLayer):
    def see(self, vec):
        return vec / (1 + vec.square().sum(1, keepdim=True).sqrt())


@twin("degenerate")
class MeanOfNoNeighbours(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        return {"h": self.own(f["h"]) + edges.sum(edges.source(self.other(f["h"]))) / edges.count[:, None]}


@twin("degenerate")
class EqualDegreesAssumed(HonestScalars):
    def forward(self, f):
        m = f["edges"].source(self.other(f["h"]))
        return {"h": self.own(f["h"]) + m.view(len(f["h"]), -1, m.size(1)).sum(1)}


@twin("state_dict")
class StateNotInStateDict(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.scale = torch.rand(dim)

    def forward(self, f):
        return {"h": super().forward(f)["h"] * self.scale.to(f["h"])}


@twin("seed")
class HiddenRandomNumbers(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.register_buffer("scale", torch.from_numpy(np.random.rand(dim)).float())

    def forward(self, f):
        return {"h": super().forward(f)["h"] * self.scale}


@twin("seed", first="rotation")
class NoiseInEvaluation(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + 0.01 * torch.randn_like(h)}


@twin("seed", first="rotation")
class DropoutInEvaluation(HonestScalars):
    def forward(self, f):
        return {"h": functional.dropout(super().forward(f)["h"], 0.1)}


@twin("float32")
class CancellationFarFromTheOrigin(OnPositions):
    width = 1

    def features(self, f):
        pos, edges = f["pos"], f["edges"]
        square = pos.square().sum(1, keepdim=True)
        product = (edges.source(pos) * edges.target(pos)).sum(1, keepdim=True)
        squared = edges.source(square) + edges.target(square) - 2 * product
        return edges.mean((squared.clamp(min=0) + 1e-6).sqrt())


@twin("signature")
class OpenSignature(HonestScalars):
    def __init__(self, fields, **options):
        super().__init__(fields, dim=options.get("dim", 8))


@twin("signature")
class PositionalOption(HonestScalars):
    def __init__(self, fields, dim: int = 8):
        super().__init__(fields, dim=dim)


@twin("builds")
class OptionWithoutDefault(HonestScalars):
    conformity = pg.Conformity(options={"dim": 8})

    def __init__(self, fields, *, dim: int):
        super().__init__(fields, dim=dim)


@twin("builds")
class CannotBeBuilt(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        raise ValueError("nothing suits")


# --- heads ------------------------------------------------------------------------------------------------------------


class HonestHead(pg.Head):
    reads = ("h", "proteins")

    def __init__(self, fields, target):
        super().__init__(fields, target)
        self.linear = nn.Linear(self.scalar_width("h"), target.size)
        self.declare(logits=FieldSpec("logits", "node", f"{target.size}x0e"))

    def forward(self, f):
        return {"logits": self.linear(f["h"])}


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


# --- featurizers ------------------------------------------------------------------------------------------------------

pg.register_field(FieldSpec("twin_scalar", "node", "1x0e"))
pg.register_field(FieldSpec("twin_vector", "node", "1x1o"))


class HonestMeasure(pg.StructureFeaturizer):
    """How far each CA is from the mean of its protein."""

    writes = ("twin_scalar",)

    def __call__(self, residues):
        return {"twin_scalar": np.linalg.norm(self.vector(residues), axis=1, keepdims=True)}

    def vector(self, residues):
        return residues.pos - residues.pos.mean(0)


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
class CentresTheResiduesInPlace(HonestMeasure):
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


class HonestEdges(pg.EdgeFeaturizer):
    """All other residues within 8 Å."""

    def __call__(self, residues):
        distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
        target, source = np.nonzero((distance <= 8.0) & ~np.eye(len(residues), dtype=bool))
        return self.choose(source, target)

    def choose(self, source, target):
        return pg.EdgeList(source, target)


@twin("node_order")
class NeighbourCapByIndexOrder(HonestEdges):
    def choose(self, source, target):
        rank = np.arange(len(target)) - np.searchsorted(target, target)
        return pg.EdgeList(source[rank < 2], target[rank < 2])


@twin("rotation")
class NeighboursInABox(HonestEdges):
    def __call__(self, residues):
        apart = np.abs(residues.pos[:, None] - residues.pos).max(-1)
        target, source = np.nonzero((apart <= 6.0) & ~np.eye(len(residues), dtype=bool))
        return pg.EdgeList(source, target)


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


class HonestExpansion(pg.TensorFeaturizer):
    """The mean vector to the neighbours."""

    reads, writes = ("pos", "edges"), ("twin_vector",)

    def __call__(self, f):
        edges, pos = f["edges"], f["pos"]
        return {"twin_vector": edges.mean(edges.source(pos) - edges.target(pos))}


@twin("rotation")
class MeanPositionOfNeighbours(HonestExpansion):
    def __call__(self, f):
        return {"twin_vector": f["edges"].mean(f["edges"].source(f["pos"]))}


@twin("rotation")
class DirectionWithAGlobalUp(HonestExpansion):
    def __call__(self, f):
        vector = super().__call__(f)["twin_vector"]
        return {"twin_vector": vector + torch.tensor([0.0, 0.0, 1.0]).to(vector)}


@twin("batch_equals_singles", first="rotation")
class CentredOnTheBatch(HonestExpansion):
    def __call__(self, f):
        pos = f["pos"]
        return {"twin_vector": super().__call__(f)["twin_vector"] * (1 + (pos - pos.mean(0)).norm(dim=1, keepdim=True))}


HONEST = (HonestLayer, HonestScalars, HonestHead, HonestMeasure, HonestEdges, HonestExpansion)

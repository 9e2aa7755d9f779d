"""Broken symmetry: layers that do not turn, mirror or stay exact as they declare."""

from __future__ import annotations

import torch
from honest_twins import HonestLayer, HonestScalars, OnPositions, twin  # test_broken_twins adds this folder to the path
from torch import nn

import protgraph as pg


@twin("rotation")
class GlobalAxisAsDirection(HonestLayer):
    def edge_vectors(self, vec):
        return vec / 10 + torch.tensor([0.0, 0.0, 1.0]).to(vec)


@twin("rotation")
class UnrotatedEdgeVectors(HonestLayer):
    def edge_vectors(self, vec):
        return vec.abs() / 10


@twin("rotation")
class VectorsInFloat32(HonestLayer):
    def edge_vectors(self, vec):
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


@twin("rotation")
class PositionsUsedRaw(OnPositions):
    def features(self, f):
        return f["pos"]


@twin("rotation")
class PositionsCenteredButNotTurned(OnPositions):
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
        centered = f["pos"] - f["proteins"].expand(f["proteins"].mean(f["pos"]))
        outer = f["proteins"].mean(centered[:, :, None] * centered[:, None])
        axes = torch.linalg.eigh(outer).eigenvectors  # each axis or its opposite
        return torch.einsum("nx,nxk->nk", centered, f["proteins"].expand(axes))


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


@twin("float32")
class CancellationFarFromTheOrigin(OnPositions):
    width = 1

    def features(self, f):
        pos, edges = f["pos"], f["edges"]
        square = pos.square().sum(1, keepdim=True)
        product = (edges.source(pos) * edges.target(pos)).sum(1, keepdim=True)
        squared = edges.source(square) + edges.target(square) - 2 * product
        return edges.mean((squared.clamp(min=0) + 1e-6).sqrt())


class _BesideDihedrals(HonestLayer):
    """Scalars that depend on dihedral angles, which are chiral."""

    reads = ("h", "edge_vec", "edges", "dihedral")

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.angles = nn.Linear(fields["dihedral"].dim, dim)

    def forward(self, f):
        h = super().forward(f)["h"]
        scalars, vectors = h.split((self.angles.out_features, 12), 1)
        return self.finish(scalars + self.angles(f["dihedral"]), vectors.view(-1, 4, 3))


@twin("reflection")
class CrossProductBesideDihedrals(_BesideDihedrals):
    def finish(self, scalars, vectors):
        return super().finish(scalars, torch.linalg.cross(10 * vectors, vectors.roll(1, 1)))


@twin("reflection")
class TripleProductBesideDihedrals(_BesideDihedrals):
    def finish(self, scalars, vectors):
        return super().finish(scalars + torch.linalg.det(10 * vectors[:, :3])[:, None], vectors)


@twin("reflection")
class HandednessBesideDihedrals(_BesideDihedrals):
    def finish(self, scalars, vectors):
        volume = torch.linalg.det(10 * vectors[:, :3])[:, None, None]
        return super().finish(scalars, vectors * (1 + volume))

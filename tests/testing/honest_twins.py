"""What is shared by the broken twins: the mark, and the honest layers, heads and featurizers that they are twins of."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec

# Twin → the check that must catch it, and the one that is the first to.
BROKEN: dict[type, tuple[str, str]] = {}


def twin(check: str, *, first: str | None = None):
    """Say by which check a class is to be caught."""

    def mark(cls: type) -> type:
        BROKEN[cls] = check, first or check
        return cls

    return mark


pg.register_field(FieldSpec("twin_scalar", "node", "1x0e", doc="a scalar of the twins"))
pg.register_field(FieldSpec("twin_vector", "node", "1x1o", doc="a vector of the twins"))


class HonestLayer(pg.GraphLayer):
    """Scalars from distances and vectors from directions: ``h_i = mean_j φ(h_j, d) , mean_j φ'(h_j) r_ij``."""

    reads, writes = ("h", "edge_vec", "edges"), ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        width = self.scalar_width("h")
        self.scalar = nn.Linear(width + 1, dim)
        self.vector = nn.Linear(width, 4, bias=False)
        self.declare(h=f"{dim}x0e+4x1o")

    def edge_vectors(self, vec):
        return vec / 10

    def forward(self, f):
        edges, vec = f["edges"], self.edge_vectors(f["edge_vec"])
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


class HonestHead(pg.Head):
    reads = ("h", "proteins")

    def __init__(self, fields, target):
        super().__init__(fields, target)
        self.linear = nn.Linear(self.scalar_width("h"), target.size)
        self.declare(logits=FieldSpec("logits", "node", f"{target.size}x0e"))

    def forward(self, f):
        return {"logits": self.linear(f["h"])}


class HonestMeasure(pg.StructureFeaturizer):
    """How far each CA is from the mean of its protein."""

    writes = ("twin_scalar",)

    def __call__(self, residues):
        return {"twin_scalar": np.linalg.norm(self.vector(residues), axis=1, keepdims=True)}

    def vector(self, residues):
        return residues.pos - residues.pos.mean(0)


class HonestEdges(pg.EdgeFeaturizer):
    """All other residues within 8 Å."""

    def __call__(self, residues):
        distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
        target, source = np.nonzero((distance <= 8.0) & ~np.eye(len(residues), dtype=bool))
        order = np.lexsort((source, distance[target, source], target))
        return self.choose(source[order], target[order])

    def choose(self, source, target):
        return pg.EdgeList(source, target)


class HonestExpansion(pg.TensorFeaturizer):
    """The mean vector to the neighbors."""

    reads, writes = ("pos", "edges"), ("twin_vector",)

    def __call__(self, f):
        edges, pos = f["edges"], f["pos"]
        return {"twin_vector": edges.mean(edges.source(pos) - edges.target(pos))}


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


class HonestResidueMean(pg.GraphLayer):
    """``h_i = W mean_k h_k`` over the atoms k of the residue of atom i, in graphs of atoms."""

    reads, writes = ("h", "proteins", "residue"), ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        residues = pg.ops.Segments(f["proteins"].residues, len(f["h"]))  # not more residues than atoms
        return {"h": self.linear(residues.expand(residues.mean(f["h"])))}


class HonestHydropathy(pg.StructureFeaturizer):
    """A number for each residue name, and nothing else of the structure."""

    writes = ("twin_scalar",)

    def __call__(self, residues):
        numbers = {"ALA": 1.8, "ARG": -4.5, "CYS": 2.5, "GLY": -0.4, "ILE": 4.5, "LEU": 3.8, "LYS": -3.9, "VAL": 4.2}
        return {"twin_scalar": np.array([[numbers.get(name, 0.1)] for name in residues.res_name])}


HONEST = (
    *(HonestLayer, HonestScalars, HonestHead, HonestMeasure, HonestEdges, HonestExpansion),
    *(HonestResidueMean, HonestHydropathy),
)

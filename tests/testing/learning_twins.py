"""Layers that do not learn, break on degenerate proteins, or cannot be saved and repeated."""

from __future__ import annotations

import numpy as np
import torch
from honest_twins import HonestLayer, HonestScalars, twin  # test_broken_twins adds this folder to the path
from torch import nn
from torch.nn import functional


@twin("every_parameter_learns")
class UnusedParameter(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.spare = nn.Linear(3, 3)


@twin("every_parameter_learns")
class FrozenParameter(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.own.weight.requires_grad_(False)


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
    def edge_vectors(self, vec):
        return vec / vec.norm(dim=1, keepdim=True)


@twin("degenerate")
class RootOfZeroInTheGradient(HonestLayer):
    def edge_vectors(self, vec):
        return vec / (1 + vec.square().sum(1, keepdim=True).sqrt())


@twin("degenerate", first="finite")  # nodes without neighbors are among the usual inputs, too
class MeanOfNoNeighbors(HonestScalars):
    def forward(self, f):
        edges = f["edges"]
        return {"h": self.own(f["h"]) + edges.sum(edges.source(self.other(f["h"]))) / edges.count[:, None]}


@twin("degenerate", first="reads_writes")
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


@twin("seed", first="global_state")
class HiddenRandomNumbers(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.register_buffer("scale", torch.from_numpy(np.random.rand(dim)).float())

    def forward(self, f):
        return {"h": super().forward(f)["h"] * self.scale}


@twin("seed", first="global_state")
class NoiseInEvaluation(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + 0.01 * torch.randn_like(h)}


@twin("seed", first="global_state")
class DropoutInEvaluation(HonestScalars):
    def forward(self, f):
        return {"h": functional.dropout(super().forward(f)["h"], 0.1)}


@twin("state_dict")
class BufferThatIsNotSaved(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.register_buffer("scale", torch.rand(dim), persistent=False)

    def forward(self, f):
        return {"h": super().forward(f)["h"] * self.scale}


@twin("state_dict")
class NumbersInAList(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.factors = torch.rand(dim).tolist()

    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": torch.stack([x * factor for x, factor in zip(h.unbind(1), self.factors, strict=True)], 1)}


@twin("float32")
class Float16InFloat32(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h.half().float() if h.dtype == torch.float32 else h}


@twin("every_parameter_learns")
class EqualInitialWeights(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)


@twin("state_dict")
class LoadsNoWeights(HonestScalars):
    def load_state_dict(self, *arguments, **options):
        return None

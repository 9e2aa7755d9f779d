"""Layers that are not what they declare, or that say nothing."""

from __future__ import annotations

import torch
from honest_twins import HonestHead, HonestLayer, HonestScalars, twin  # test_broken_twins adds this folder to the path

import protgraph as pg


@twin("finite")
class NaNOutput(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] * float("nan")}


@twin("finite")
class StartsWithWeightsOfAMillion(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        with torch.no_grad():
            self.own.weight.mul_(1e6)


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


@twin("non_trivial", first="inputs_unchanged")
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
        return super().forward({**f, "h": torch.relu_(f["h"])})


@twin("inputs_unchanged")
class PutsItsOutputIntoTheInput(HonestScalars):
    def forward(self, f):
        out = super().forward(f)
        f["message"] = out["h"]
        return out


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
    conformity = pg.data.Conformity(options={"dim": 8})

    def __init__(self, fields, *, dim: int):
        super().__init__(fields, dim=dim)


@twin("builds")
class CannotBeBuilt(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        raise ValueError("nothing suits")


@twin("non_trivial")
class ReadsHalfOfTheChannels(HonestScalars):
    def forward(self, f):
        h = f["h"].clone()
        h[:, h.shape[1] // 2 :] = 0
        return super().forward({**f, "h": h})


@twin("non_trivial")
class WithoutTheFirstChannel(HonestHead):
    def forward(self, f):
        h = torch.cat([torch.zeros_like(f["h"][:, :1]), f["h"][:, 1:]], 1)
        return super().forward({**f, "h": h})


@twin("inputs_unchanged")
class KeepsAMeanOfEvaluations(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, f):
        out = super().forward(f)
        self.mean.mul_(0.9).add_(0.1 * out["h"].detach().mean(0))
        return out


@twin("inputs_unchanged")
class CountsItsCalls(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def forward(self, f):
        self.calls += 1
        return super().forward(f)


@twin("inputs_unchanged")
class ShrinksItsWeights(HonestScalars):
    def forward(self, f):
        out = super().forward(f)
        with torch.no_grad():
            self.own.bias.mul_(0.999)
        return out

"""Layers that read values on the host or leave tensors on the CPU: one for each way."""

from __future__ import annotations

import torch
from honest_twins import (
    HonestExpansion,
    HonestHead,
    HonestScalars,
    twin,
)  # test_broken_twins adds this folder to the path


@twin("device")
class ReadsAnItem(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h / (1 + 0 * h.detach().abs().max().item())}


@twin("device")
class ConvertsToFloat(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + 0 * float(h.detach().abs().max())}


@twin("device")
class BranchesOnATensor(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h if bool(torch.isfinite(h).all()) else torch.zeros_like(h)}


@twin("device")
class BranchesOnATensorInEvaluation(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h if self.training or torch.isfinite(h).all() else torch.zeros_like(h)}


@twin("device")
class FindsNonzero(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        rows = torch.isfinite(h).all(1).nonzero().flatten()
        return {"h": torch.zeros_like(h).index_copy(0, rows, h.index_select(0, rows))}


@twin("device")
class IndexesWithAMask(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        mask = torch.isfinite(h).all(1)
        return {"h": torch.zeros_like(h).masked_scatter(mask[:, None], h[mask])}


@twin("device")
class ComputesOnTheCpu(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h.cpu().to(h)}


@twin("device")
class ComputesWithNumpy(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        scale = f["h"].detach().numpy().shape[0] / len(f["h"])
        return {"h": h * scale}


@twin("device")
class MakesAList(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": torch.cat(h.split([1] * len(f["edges"].count.tolist())))}


@twin("device")
class MultipliesWithATensorOnTheCpu(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h * torch.linspace(1, 2, h.size(1), dtype=h.dtype)}


@twin("device")
class MatrixOnTheCpu(HonestScalars):
    """Torch itself is silent about this product on ``meta``."""

    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h @ torch.eye(h.size(1), dtype=h.dtype)}


@twin("device")
class IndexOnTheCpu(HonestScalars):
    """Torch itself is silent about this index on ``meta``, and copies it to a GPU."""

    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h[torch.arange(len(h))]}


@twin("device")
class CopiesAConstantInEveryCall(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h * torch.linspace(1, 2, h.size(1)).to(h)}


@twin("device")
class CopiesNumbersInEveryCall(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h * torch.tensor([1.0, 2.0] * (h.size(1) // 2), dtype=h.dtype, device=h.device)}


@twin("device")
class Float64BufferOnTheCpu(HonestScalars):
    """A tensor attribute instead of a registered buffer, which ``Module.to`` would move."""

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.scale = torch.linspace(1, 2, dim, dtype=torch.float64)

    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h * self.scale.to(h.dtype)}


@twin("device")
class OutputOnTheCpu(HonestScalars):
    writes = ("h", "update")

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.declare(update="8x0e")

    def forward(self, f):
        return {**super().forward(f), "update": torch.arange(1, 9, dtype=f["h"].dtype).expand(len(f["h"]), 8)}


@twin("device")
class ReadsAnItemInBackward(HonestScalars):
    def forward(self, f):
        return {"h": _ReadsTheGradient.apply(super().forward(f)["h"])}


class _ReadsTheGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad if bool(torch.isfinite(grad).all()) else torch.zeros_like(grad)


@twin("device")
class HeadThatReadsAnItem(HonestHead):
    def forward(self, f):
        logits = super().forward(f)["logits"]
        return {"logits": logits + 0 * logits.detach().sum().item()}


@twin("device")
class FeaturizerThatCountsOnTheHost(HonestExpansion):
    def __call__(self, f):
        degree = int(f["edges"].count.max())
        return {"twin_vector": super().__call__(f)["twin_vector"] * (1 + 0 * degree)}

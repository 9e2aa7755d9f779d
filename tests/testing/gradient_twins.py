"""Layers and heads whose gradient is not that of their values."""

from __future__ import annotations

import torch
from honest_twins import (
    HonestHead,
    HonestLayer,
    HonestScalars,
    OnPositions,
    twin,
)  # test_broken_twins adds this folder to the path


class _Reversed(torch.autograd.Function):
    """The identity, with a gradient of the wrong sign."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class _Hundredth(torch.autograd.Function):
    """The identity, with a hundredth of its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 0.01 * gradient


def _halve(p):
    if p.grad is not None:
        p.grad.mul_(0.5)


@twin("gradients")
class HalvesAGradientByAHook(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.own.weight.register_hook(lambda gradient: 0.5 * gradient)


@twin("gradients")
class HalvesAnAccumulatedGradient(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.own.weight.register_post_accumulate_grad_hook(_halve)


@twin("gradients")
class DetachesItsInput(HonestScalars):
    def forward(self, f):
        return super().forward({**f, "h": f["h"].detach()})


@twin("gradients")
class DetachesItsNeighbors(HonestScalars):
    def forward(self, f):
        return {"h": self.own(f["h"]) + f["edges"].mean(self.other(f["edges"].source(f["h"].detach())))}


@twin("gradients")
class DetachesPositions(OnPositions):
    width = 1

    def features(self, f):
        centered = f["pos"] - f["proteins"].expand(f["proteins"].mean(f["pos"]))
        return centered.detach().square().sum(1, keepdim=True) / 100


@twin("gradients")
class DetachesDirections(HonestLayer):
    def edge_vectors(self, vec):
        return vec.detach() / 10


@twin("gradients")
class GradientOfTheWrongSign(HonestScalars):
    def forward(self, f):
        return {"h": _Reversed.apply(super().forward(f)["h"])}


@twin("gradients")
class HundredthOfTheGradient(HonestScalars):
    def forward(self, f):
        h = f["h"]
        return {"h": self.own(h) + f["edges"].mean(f["edges"].source(_Hundredth.apply(self.other(h))))}


@twin("gradients")
class ClippedGradient(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        if h.requires_grad:
            h.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
        return {"h": h}


@twin("gradients")
class RoundsStraightThrough(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + ((10 * h).round() / 10 - h).detach()}


@twin("gradients")
class ComputesInFloat32(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": torch.tanh(h.float()).to(h.dtype)}


@twin("gradients")
class MessagesInBfloat16(HonestScalars):
    def forward(self, f):
        messages = f["edges"].source(self.other(f["h"]))
        return {"h": self.own(f["h"]) + f["edges"].mean(messages.bfloat16().to(messages.dtype))}


@twin("gradients")
class MessagesInFloat16(HonestScalars):
    def forward(self, f):
        messages = f["edges"].source(self.other(f["h"]))
        return {"h": self.own(f["h"]) + f["edges"].mean(messages.half().to(messages.dtype))}


@twin("gradients")
class HeadThatDetaches(HonestHead):
    def forward(self, f):
        return {"logits": self.linear(f["h"].detach())}


@twin("gradients")
class HeadWithReversedGradient(HonestHead):
    def forward(self, f):
        return {"logits": self.linear(_Reversed.apply(f["h"]))}


@twin("gradients")
class HeadThatDetachesHalf(HonestHead):
    def forward(self, f):
        return {"logits": self.linear((f["h"] + f["h"].detach()) / 2)}


@twin("gradients")
class GradientClippedWhereItIsLarge(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        if h.requires_grad:
            h.register_hook(lambda gradient: gradient.clamp(-10, 10))
        return {"h": h}


@twin("gradients")
class HalfTheGradientInFloat32(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        if h.dtype == torch.float32:
            h = h.detach() + 0.5 * (h - h.detach())
        return {"h": h}

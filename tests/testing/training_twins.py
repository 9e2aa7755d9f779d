"""Layers that compute another function in training, or keep a state."""

from __future__ import annotations

import torch
from honest_twins import HonestHead, HonestLayer, HonestScalars, twin  # test_broken_twins adds this folder to the path
from torch import nn
from torch.nn import functional


@twin("training")
class DoublesInTraining(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] * (2 if self.training else 1)}


@twin("training")
class ComponentInTraining(HonestLayer):
    def finish(self, scalars, vectors):
        return super().finish(scalars + vectors[:, :1, 0] if self.training else scalars, vectors)


@twin("training")
class NodeOrderInTraining(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        number = torch.arange(len(h), device=h.device)[:, None].to(h)
        return {"h": h + number / 10 if self.training else h}


@twin("training")
class DropoutWithoutAnOption(HonestScalars):
    def forward(self, f):
        return {"h": functional.dropout(super().forward(f)["h"], 0.1, self.training)}


@twin("training")
class DropsSingleComponents(HonestLayer):
    def __init__(self, fields, *, dim: int = 8, dropout: float = 0.0):
        super().__init__(fields, dim=dim)
        self.rate = dropout

    def finish(self, scalars, vectors):
        return super().finish(scalars, functional.dropout(vectors, self.rate, self.training))


@twin("training")
class NoiseThatStays(HonestScalars):
    """The option scales the noise in one branch only."""

    def __init__(self, fields, *, dim: int = 8, noise: float = 0.1):
        super().__init__(fields, dim=dim)
        self.noise = noise

    def forward(self, f):
        h = super().forward(f)["h"]
        if self.training:
            h = h + (0.01 + self.noise) * torch.randn_like(h)
        return {"h": h}


@twin("training")
class ChangesItsInputInTraining(HonestScalars):
    def forward(self, f):
        if self.training:
            f["h"].data.mul_(2)
            return super().forward({**f, "h": f["h"] / 2})
        return super().forward(f)


@twin("training")
class AddsItsInputInTraining(HonestScalars):
    def forward(self, f):
        out = super().forward(f)
        if self.training:
            f["message"] = out["h"]
        return out


@twin("training")
class CountsItsCallsInTraining(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, f):
        h = super().forward(f)["h"]
        if self.training:
            self.calls += 1
        return {"h": h * (1 + (self.calls > 1) * 0.1)}


@twin("training")
class StateOfTheLastInput(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.register_buffer("last", torch.zeros(1, dim))

    def forward(self, f):
        h = super().forward(f)["h"]
        if self.training:
            self.last = h.detach()
        return {"h": h}


@twin("training")
class HeadWithAnotherScaleInTraining(HonestHead):
    def forward(self, f):
        logits = super().forward(f)["logits"]
        return {"logits": logits / 2 if self.training else logits}


@twin("training")
class AnotherFunctionWithGradients(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": 1.1 * h if torch.is_grad_enabled() else h}


@twin("training")
class TrainDoesNothing(HonestScalars):
    def train(self, mode=True):
        return self


@twin("training")
class DropoutStaysOff(HonestScalars):
    """The part with dropout is evaluated only."""

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.dropout = nn.Dropout(0.1)

    def train(self, mode=True):
        super().train(mode)
        self.dropout.eval()
        return self

    def forward(self, f):
        return {"h": self.dropout(super().forward(f)["h"])}

"""Mixture density head (Bishop 1994): weights, means and widths of K normal distributions per value."""

from __future__ import annotations

import math

import torch
from torch import nn

import protgraph as pg


@pg.heads.register("outside_mixture")
class Mixture(pg.Head):
    """``p(y) = Σ_k w_k N(y; m_k, s_k)``; the logits are the mean ``Σ_k w_k m_k``."""

    reads, writes, level = ("h",), ("logits", "weight", "center", "log_width"), "node"

    def __init__(self, fields, target, *, parts: int = 3):
        super().__init__(fields, target)
        self.shape = (target.size, parts)
        count = target.size * parts
        self.linear = nn.Linear(self.scalar_width("h"), 3 * count)
        nn.init.normal_(self.linear.bias)  # parts that begin apart
        self.declare(logits=f"{target.size}x0e", **dict.fromkeys(self.writes[1:], f"{count}x0e"))

    def forward(self, f):
        score, center, log_width = self.linear(f["h"]).chunk(3, 1)  # (N, C K) each
        weight = score.unflatten(1, self.shape).softmax(2)  # (N, C, K)
        logits = (weight * center.unflatten(1, self.shape)).sum(2)
        return {"logits": logits, "weight": weight.flatten(1), "center": center, "log_width": log_width}

    def training_loss(self, outputs, y):
        parameters = (outputs[name].unflatten(1, self.shape) for name in ("weight", "center", "log_width"))
        weight, center, log_width = parameters
        known = ~y.isnan()
        distance = (y.nan_to_num().unsqueeze(2) - center) / log_width.exp()  # (N, C, K)
        log_density = -0.5 * distance.square() - log_width - 0.5 * math.log(2 * math.pi)
        likelihood = torch.logsumexp(log_density + weight.clamp(min=1e-12).log(), 2)  # (N, C)
        return -likelihood[known].sum() / known.sum().clamp(min=1)


LAYERS = [pg.component("embed", reads=["aatype"], dim=16), pg.component("gcn", dim=16)]
MODEL = pg.ModelSpec("outside_mixture", features=["knn"], layers=LAYERS)
CHECKED = [Mixture, MODEL]

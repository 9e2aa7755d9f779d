"""Layers that ``torch.compile`` cannot trace as one graph."""

from __future__ import annotations

import torch
from honest_twins import HonestScalars, twin  # test_broken_twins adds this folder to the path


@twin("compiled")
class BreaksTheGraph(HonestScalars):
    def forward(self, f):
        torch._dynamo.graph_break()
        return super().forward(f)


@twin("compiled")
class IsCompiledForEverySize(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": torch.cat(list(h.split(8)))}


@twin("compiled")
class ComputesOtherValuesWhileCompiling(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": 1.001 * h if torch.compiler.is_compiling() else h}

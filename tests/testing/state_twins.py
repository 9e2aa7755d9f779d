"""Components with side effects: on random streams, modes, and inputs; and edges in another order than by distance."""

from __future__ import annotations

import numpy as np
import torch
from honest_twins import HonestEdges, HonestMeasure, HonestScalars, twin  # put there by test_broken_twins

import protgraph as pg


@twin("global_state")
class DrawsInEvaluation(HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h + 0 * torch.rand_like(h)}


@twin("global_state")
class SeedsTorch(HonestScalars):
    def forward(self, f):
        torch.manual_seed(0)
        return super().forward(f)


@twin("global_state")
class SeedsTorchInTraining(HonestScalars):
    def forward(self, f):
        if self.training:
            torch.manual_seed(0)
        return super().forward(f)


@twin("global_state")
class SwitchesToTraining(HonestScalars):
    def forward(self, f):
        self.train()
        return super().forward(f)


@twin("global_state")
class SwitchesGradientsOff(HonestScalars):
    def forward(self, f):
        torch.set_grad_enabled(False)
        return super().forward(f)


@twin("global_state")
class SetsTheDefaultDtype(HonestScalars):
    def forward(self, f):
        torch.set_default_dtype(torch.float64)
        return super().forward(f)


@twin("global_state")
class DetectsAnomalies(HonestScalars):
    def forward(self, f):
        torch.autograd.set_detect_anomaly(True)
        return super().forward(f)


@twin("global_state")
class SetsThreads(HonestScalars):
    def forward(self, f):
        torch.set_num_threads(3)
        return super().forward(f)


@twin("global_state")
class SeedsNumPy(HonestMeasure):
    def __call__(self, residues):
        np.random.seed(len(residues))
        return super().__call__(residues)


@twin("neighbor_order")
class EdgesSortedByTargetAlone(HonestEdges):
    def choose(self, source, target):
        order = np.lexsort((source, target))
        return pg.EdgeList(source[order], target[order])

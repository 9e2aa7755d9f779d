"""Components with side effects: on random streams, modes, and inputs; and edges in another order than by distance."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings

import numpy as np
import torch
from honest_twins import (
    HonestEdges,
    HonestMeasure,
    HonestScalars,
    twin,
)  # test_broken_twins adds this folder to the path
from torch import nn

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


@twin("global_state", first="inputs_unchanged")
class SwitchesGradientsOff(HonestScalars):
    def forward(self, f):
        torch.set_grad_enabled(False)
        return super().forward(f)


@twin("global_state", first="reads_writes")
class SetsTheDefaultDtype(HonestScalars):
    def forward(self, f):
        torch.set_default_dtype(torch.float64)
        return super().forward(f)


@twin("global_state", first="reads_writes")
class DetectsAnomalies(HonestScalars):
    def forward(self, f):
        torch.autograd.set_detect_anomaly(True)
        return super().forward(f)


@twin("global_state", first="reads_writes")
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


@twin("global_state")
class SeedsNumPyInInit(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        np.random.seed(7)


@twin("global_state")
class SetsTheDefaultDtypeInInit(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        torch.set_default_dtype(torch.float16)


@twin("global_state")
class SetsAnEnvironmentVariable(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        os.environ["PROTGRAPH_TWIN"] = str(id(self))


@twin("global_state")
class SilencesWarningsInInit(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        warnings.simplefilter("ignore", RuntimeWarning)


@twin("global_state")
class StartsAThread(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()


@twin("degenerate")
class DetectsAnomaliesWithoutEdges(HonestScalars):
    def forward(self, f):
        if f["edges"].num_edges == 0:
            torch.autograd.set_detect_anomaly(True)
        return super().forward(f)


@twin("float32")
class SetsTheDefaultDtypeInFloat32(HonestScalars):
    def forward(self, f):
        if f["h"].dtype == torch.float32:
            torch.set_default_dtype(torch.float64)
        return super().forward(f)


@twin("batch_equals_singles")
class SetsThreadsForOneProtein(HonestScalars):
    reads = ("h", "edges", "proteins")

    def forward(self, f):
        if len(f["proteins"]) == 1:
            torch.set_num_threads(3)
        return super().forward(f)


@twin("seed")
class SeedsInInit(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        torch.manual_seed(7)
        super().__init__(fields, dim=dim)


@twin("seed")
class SeedsAfterItsWeights(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        torch.manual_seed(7)


@twin("seed")
class GeneratorOfItsOwn(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        generator = torch.Generator().manual_seed(7)
        self.other.weight.data.normal_(generator=generator)


@twin("seed")
class WeightsOfNumPy(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        weight = np.random.default_rng(7).normal(size=self.own.weight.shape)
        self.own.weight.data.copy_(torch.from_numpy(weight))


@twin("global_state")
class PrintsShapes(HonestScalars):
    def forward(self, f):
        print("h", tuple(f["h"].shape))
        return super().forward(f)


@twin("global_state")
class PrintsInTraining(HonestScalars):
    def forward(self, f):
        if self.training:
            sys.stderr.write("step\n")
        return super().forward(f)


@twin("global_state")
class HooksOfAllModules(HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.hook = nn.modules.module.register_module_forward_hook(_same_output)


def _same_output(module, arguments, output):
    return None


@twin("neighbor_order")
class FarthestNeighborsFirst(HonestEdges):
    def choose(self, source, target):
        order = np.lexsort((-np.arange(len(target)), target))
        return pg.EdgeList(source[order], target[order])


@twin("neighbor_order")
class NeighborsInRandomOrder(HonestEdges):
    def choose(self, source, target):
        order = np.lexsort((np.random.default_rng(0).random(len(target)), target))
        return pg.EdgeList(source[order], target[order])


@twin("other_process")
class OrderOfASet(HonestScalars):
    """Multiplies by a number from the order of a set of texts, which two processes never share by chance."""

    def forward(self, f):
        first_texts = list(set(map(str, range(100))))[:8]
        return {"h": super().forward(f)["h"] * (1 + float("0." + "".join(first_texts)))}


@twin("other_process")
class NumberOfTheProcess(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] * (1 + os.getpid() / 1e6)}


_FACTORS = {}


@twin("other_process")
class TableOfTheModule(HonestScalars):
    """Reads a table of its module that instances fill."""

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        _FACTORS[dim] = 2.0

    def forward(self, f):
        return {"h": super().forward(f)["h"] * _FACTORS.get(self.own.out_features, 1.0)}


@twin("other_process")
class HashOfTheTypes(HonestMeasure):
    def __call__(self, residues):
        numbers = np.array([hash(name) % 97 for name in residues.res_name])
        return {"twin_scalar": super().__call__(residues)["twin_scalar"] * (1 + numbers[:, None])}


@twin("inputs_unchanged")
class KeepsItsInput(HonestScalars):
    def forward(self, f):
        self.last = f["h"]
        return super().forward(f)


@twin("inputs_unchanged")
class KeepsItsOutput(HonestScalars):
    def forward(self, f):
        self.last = super().forward(f)["h"]
        return {"h": self.last}


@twin("other_process")
class RightOnlyWhileItIsTested(HonestScalars):
    def forward(self, f):
        return {"h": super().forward(f)["h"] * (1 if "protgraph.testing" in sys.modules else 2)}


@twin("global_state", first="reads_writes")
class ReplacesAFunctionOfTorch(HonestScalars):
    def forward(self, f):
        torch.nn.functional.relu6 = torch.tanh
        return super().forward(f)


@twin("global_state", first="reads_writes")
class SwitchesGarbageCollectionOff(HonestScalars):
    def forward(self, f):
        gc.disable()
        return super().forward(f)


@twin("global_state", first="reads_writes")
class SilencesFloatingPointErrors(HonestScalars):
    def forward(self, f):
        np.seterr(all="ignore")
        return super().forward(f)


@twin("global_state", first="reads_writes")
class FlushesDenormalNumbers(HonestScalars):
    def forward(self, f):
        torch.set_flush_denormal(True)
        return super().forward(f)

"""Checks of side effects: random streams, modes of torch and of the module, and the order of neighbors of edges."""

from __future__ import annotations

import io
import os
import random
import threading
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
import torch
from torch import nn

from protgraph.featurize import EdgeFeaturizer
from protgraph.process_state import (
    MODES,
    RANDOM_STATES,
    describe_changes,
    new_threads,
    read_state,
    restored_state,
)
from protgraph.testing.featurizer_wiring import StructureModule
from protgraph.testing.runner import NotApplicable, Runner
from protgraph.testing.wiring import Wiring

__all__ = ["global_state", "neighbor_order"]

#: Å; featurizers may compare distances in float32.
_SAME_DISTANCE = 1e-3


def global_state(runner: Runner) -> None:
    """Check that it changes no mode and no random stream, except for initial weights, and for dropout in training."""
    for wiring in runner.wirings:
        _check_init(runner, wiring)
        module = runner.private_module(wiring)
        for is_training in (False, True):
            _check_mode(runner, wiring, module, is_training=is_training)


def _check_init(runner: Runner, wiring: Wiring) -> None:
    """Check ``__init__``: it may draw initial weights from torch's generator."""
    with restored_state():
        torch.manual_seed(101)
        before, threads = read_state(), set(threading.enumerate())
        wiring.create({})
        after = read_state()
    changes = describe_changes(before, after)
    changes += [f"the threads: + {name}" for name in new_threads(threads, wait=0.0)]
    changes = [change for change in changes if change != "the random state of torch"]
    if changes:
        raise runner.failure(f"it changes {changes[0]} in __init__{wiring.suffix}")


def _check_mode(runner: Runner, wiring: Wiring, module: nn.Module, *, is_training: bool) -> None:
    """Check one mode, with random streams from two different starts."""
    module.train(is_training)
    when = f"in {'training' if is_training else 'evaluation'}{wiring.suffix}"
    with restored_state():
        before = _modes(module)
        start, end = _streams_around(runner, wiring, module, 101)
        _, other_end = _streams_around(runner, wiring, module, 202)
        after = _modes(module)
    changes = describe_changes(before, after)
    if changes:
        raise runner.failure(f"it changes {changes[0]} {when}")
    drawn = [name for name in RANDOM_STATES if start[name] != end[name]]
    if drawn and not is_training:
        raise runner.failure(f"it uses or seeds {drawn[0]} {when}. Use a generator of its own with a fixed seed.")
    for name in drawn:
        if end[name] == other_end[name]:
            raise runner.failure(f"it seeds {name} {when}")


def _streams_around(runner: Runner, wiring: Wiring, module: nn.Module, seed: int) -> tuple[dict, dict]:
    """Return the states of the random streams before and after a call; before, they have this seed."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    before = _streams()
    _call(runner, wiring, module)
    return before, _streams()


def _streams() -> dict[str, Any]:
    return {name: read() for name, (read, _) in RANDOM_STATES.items()}


def _call(runner: Runner, wiring: Wiring, module: nn.Module) -> None:
    argument = wiring.inputs.argument(runner.device, runner.dtype)
    printed, files = io.StringIO(), sorted(os.listdir())
    step = wiring.label or "it does not run"
    with runner.errors_as_failures(step), redirect_stdout(printed), redirect_stderr(printed):
        module(argument)
    if printed.getvalue():
        text = printed.getvalue().strip().splitlines()[:1]
        raise runner.failure(f"it prints {text}{wiring.suffix}. Use the logger of your package.")
    if sorted(os.listdir()) != files:
        raise runner.failure(f"it writes files to the working directory{wiring.suffix}")


def _modes(module: nn.Module) -> dict[str, Any]:
    modes = {name: read() for name, (read, _) in MODES.items()}
    return {"the training mode of a module": tuple(m.training for m in module.modules()), **modes}


def neighbor_order(runner: Runner) -> None:
    """Check that the edges of a featurizer are sorted by target, then by the distance of the nodes."""
    for wiring in runner.wirings:
        module = runner.module(wiring)
        if not isinstance(module, StructureModule) or not isinstance(module.featurizer, EdgeFeaturizer):
            raise NotApplicable("it makes no edges")
        for residues in wiring.inputs.argument(runner.device, runner.dtype):
            edges = module.featurizer(residues)
            step = residues.pos[edges.source].astype(np.float64) - residues.pos[edges.target]
            distance = np.linalg.norm(step, axis=1)
            wrong = (np.diff(edges.target) == 0) & (np.diff(distance) < -_SAME_DISTANCE)
            if wrong.any():
                first = int(np.argmax(wrong)) + 1
                i, j = int(edges.target[first]), int(edges.source[first])
                raise runner.failure(
                    f"{int(wrong.sum())} of {len(wrong) + 1} edges are nearer than the one before "
                    f"of the same target; the first is {j} → {i}. Sort them: "
                    "protgraph.structure.neighbors.sort_edges(residues.pos, np.stack([source, target]))."
                )

"""Run a pickled module in another process.

The conformity suite does so in a process that does not import :mod:`protgraph.testing`, so that no layer can compute
otherwise while it is tested.
"""

from __future__ import annotations

import pickle

import torch
from torch import Tensor

from protgraph.registry.provider import import_listed

__all__ = ["run_pickled_module"]


def run_pickled_module(message: bytes) -> dict[str, Tensor]:
    """Return the outputs of a pickled module for a pickled argument, floating-point ones in float64."""
    import_listed()
    module, argument = pickle.loads(message)
    with torch.no_grad():
        out = module(argument)
    return {name: x.to(torch.float64) if x.is_floating_point() else x for name, x in out.items()}

"""Sequences for backbones: decoding orders, constraints, sampling and scoring, for every model with a decoder."""

from __future__ import annotations

from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding, conditional, forced, mean_forced, unconditional
from protgraph.design.order import forward_order, random_order, ranks
from protgraph.design.sample import Sampled, sample

__all__ = [
    "Constraints",
    "Decoding",
    "Sampled",
    "conditional",
    "forced",
    "forward_order",
    "mean_forced",
    "random_order",
    "ranks",
    "sample",
    "unconditional",
]

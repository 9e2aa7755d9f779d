"""Radial basis of edge lengths: spherical Bessel functions with a polynomial envelope."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from operator import mul
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import TensorFeaturizer

__all__ = ["EdgeBessel"]
ENTRY_POINTS = {"protgraph.featurizers": {"edge_bessel": "EdgeBessel"}}

register_field(FieldSpec("edge_bessel", "edge", "16x0e", doc="Bessel basis of edge_dist, 0 beyond the cutoff"))


class EdgeBessel(TensorFeaturizer):
    """``sqrt(2 / c) sin(n π d / c) / d · u(d / c)`` for n = 1 … bins; 0 beyond the cutoff c.

    The envelope ``u(q) = 1 - (p+1)(p+2)/2 q^p + p(p+2) q^(p+1) - p(p+1)/2 q^(p+2)`` makes the value and two
    derivatives 0 at the cutoff.

    Parameters
    ----------
    bins : int
        Number of functions.
    cutoff : float
        c, Å.
    envelope : int
        p, at least 2.

    Reads
    -----
    edge_dist : (E, 1), Å

    Writes
    ------
    edge_bessel : (E, bins), bins x 0e, Å^(-3/2)
        Finite where nodes coincide: the limit ``sqrt(2 / c) n π / c``.

    References
    ----------
    Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, eqs. 7–8 (p = 6).
    """

    reads: ClassVar[tuple[str, ...]] = ("edge_dist",)
    writes: ClassVar[tuple[str, ...]] = ("edge_bessel",)

    def __init__(self, *, bins: Annotated[int, Ge(1)] = 16, cutoff: Annotated[float, Gt(0)] = 20.0, envelope: Annotated[int, Ge(2)] = 6) -> None:
        super().__init__()
        self.bins, self.cutoff, self.envelope = bins, float(cutoff), envelope
        self.declare(edge_bessel=f"{bins}x0e")

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        q, p = f["edge_dist"] / self.cutoff, self.envelope
        n = torch.arange(1, self.bins + 1, dtype=q.dtype, device=q.device)
        waves = math.sqrt(2 / self.cutoff) * (math.pi / self.cutoff) * n * torch.sinc(n * q)  # (E, bins)
        power = reduce(mul, [q] * p)  # q^p by products: pow rounds an edge differently in small and in large tensors
        fall = power * ((p + 1) * (p + 2) / 2 - q * (p * (p + 2) - q * (p * (p + 1) / 2)))
        return {"edge_bessel": waves * torch.where(q < 1, 1 - fall, torch.zeros_like(fall))}

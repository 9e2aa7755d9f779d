"""Sequence relation of two residues: same chain, and sinusoidal encoding of the offset."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import TensorFeaturizer

__all__ = ["EdgeSameChain", "EdgeSinusoid"]
ENTRY_POINTS = {"protgraph.featurizers": {"edge_same_chain": "EdgeSameChain", "edge_sinusoid": "EdgeSinusoid"}}

register_field(FieldSpec("edge_same_chain", "edge", "1x0e", doc="1 if both residues are in the same chain, else 0"))
register_field(FieldSpec("edge_sinusoid", "edge", "16x0e", doc="sinusoidal encoding of seq_pos[j] - seq_pos[i]"))


class EdgeSameChain(TensorFeaturizer):
    """1 if both residues are in the same chain, else 0.

    Reads
    -----
    chain : (N,) int64
    edges : the edges j → i

    Writes
    ------
    edge_same_chain : (E, 1), 1x0e, dimensionless, torch's default floating type
    """

    reads: ClassVar[tuple[str, ...]] = ("chain", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_same_chain",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"edge_same_chain": _same_chain(f).to(torch.get_default_dtype())}


class EdgeSinusoid(TensorFeaturizer):
    """``cos(d ω_c)`` and ``sin(d ω_c)`` of the offset ``d = seq_pos[j] - seq_pos[i]``, ``ω_c = 10000^(-2c/dim)``.

    Parameters
    ----------
    dim : int
        Width, even: first the cosines, then the sines.

    Reads
    -----
    seq_pos, chain : (N,) int64
        Numbering includes unresolved residues, so a gap in the structure is a gap in the encoding.
    edges : the edges j → i

    Writes
    ------
    edge_sinusoid : (E, dim), dim x 0e, dimensionless, torch's default floating type
        0 between residues of different chains.

    References
    ----------
    Ingraham et al. 2019, "Generative models for graph-based protein design", NeurIPS 32 (relative positional encoding;
    for a single chain, by node index).
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos", "chain", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_sinusoid",)

    def __init__(self, *, dim: int = 16) -> None:
        super().__init__()
        if not (isinstance(dim, int) and dim >= 2 and dim % 2 == 0):
            raise OptionError(f"edge_sinusoid: invalid dim={dim!r}. Use an even integer of at least 2.")
        self.dim = dim
        self.declare(edge_sinusoid=f"{dim}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, seq_pos = f["edges"], f["seq_pos"]
        offset = (edges.source(seq_pos) - edges.target(seq_pos)).to(torch.get_default_dtype())
        step = torch.arange(0, self.dim, 2, dtype=offset.dtype, device=offset.device)
        angle = offset[:, None] * torch.exp(step * (-math.log(10000.0) / self.dim))  # (E, dim / 2)
        return {"edge_sinusoid": torch.cat([angle.cos(), angle.sin()], 1) * _same_chain(f)}


def _same_chain(f: Mapping[str, Any]) -> Tensor:
    """Return True for edges within one chain, ``(E, 1)`` bool."""
    return (f["edges"].source(f["chain"]) == f["edges"].target(f["chain"]))[:, None]

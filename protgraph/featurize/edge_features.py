"""Edge features computed on the device: vector, distance, direction, radial bases, sequence offset, chain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from torch import Tensor
from torch.nn.functional import threshold

from protgraph.data.graph.fields import FieldSpec, field, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import TensorFeaturizer
from protgraph.ops import BesselBasis, Edges, unit_or_zero

__all__ = [
    "EdgeBessel",
    "EdgeDirection",
    "EdgeDistance",
    "EdgeOffset",
    "EdgeRbf",
    "EdgeResidue",
    "EdgeSameChain",
    "EdgeSinusoid",
    "EdgeVector",
]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "edge_bessel": "EdgeBessel",
        "edge_direction": "EdgeDirection",
        "edge_distance": "EdgeDistance",
        "edge_offset": "EdgeOffset",
        "edge_rbf": "EdgeRbf",
        "edge_residue": "EdgeResidue",
        "edge_same_chain": "EdgeSameChain",
        "edge_sinusoid": "EdgeSinusoid",
        "edge_vector": "EdgeVector",
    }
}


class EdgeVector(TensorFeaturizer):
    """Vector from target to source, ``x_j - x_i``.

    Reads
    -----
    pos : (N, 3), point, Å
    source_pos : (M, 3), point, Å
        Positions of the sources, if they are of another node set.
    edges : the edges j → i

    Writes
    ------
    edge_vec : (E, 3), 1x1o, Å
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges")
    optional: ClassVar[tuple[str, ...]] = ("source_pos",)
    writes: ClassVar[tuple[str, ...]] = ("edge_vec",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"edge_vec": _vector(f)}


class EdgeDistance(TensorFeaturizer):
    """Distance ``|x_j - x_i|``, with gradient 0 for coincident nodes.

    Reads
    -----
    pos : (N, 3), point, Å
    source_pos : (M, 3), point, Å
        As for ``edge_vector``.
    edges : the edges j → i

    Writes
    ------
    edge_dist : (E, 1), 1x0e, Å
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges")
    optional: ClassVar[tuple[str, ...]] = ("source_pos",)
    writes: ClassVar[tuple[str, ...]] = ("edge_dist",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        if "source_pos" in f:
            squared = _vector(f).square().sum(1, keepdim=True)
        else:
            squared = _squared_distance(f["pos"].t().contiguous(), f["edges"]).view(-1, 1)
        coincident = squared == 0  # their length is computed from 1, for a finite derivative
        return {"edge_dist": squared.masked_fill(coincident, 1.0).sqrt().masked_fill(coincident, 0.0)}


class EdgeDirection(TensorFeaturizer):
    """Unit vector ``(x_j - x_i) / |x_j - x_i|``; 0, with finite gradient, for coincident nodes.

    Reads
    -----
    pos : (N, 3), point, Å
    source_pos : (M, 3), point, Å
        As for ``edge_vector``.
    edges : the edges j → i

    Writes
    ------
    edge_direction : (E, 3), 1x1o, dimensionless
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges")
    optional: ClassVar[tuple[str, ...]] = ("source_pos",)
    writes: ClassVar[tuple[str, ...]] = ("edge_direction",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"edge_direction": unit_or_zero(_vector(f))}


class EdgeRbf(TensorFeaturizer):
    """Gaussian radial basis of the distance d, ``exp(-((d - μ_b) / σ)²)``.

    The centers ``μ_b`` are evenly spaced from 0 to ``cutoff``, both included, and ``σ = cutoff / bins``.

    Parameters
    ----------
    bins : int
        Number of centers.
    cutoff : float
        Last center, Å. The basis decays beyond it; no edge is removed.

    Reads
    -----
    edge_dist : (E, 1), Å

    Writes
    ------
    edge_rbf : (E, bins), bins x 0e, dimensionless

    Notes
    -----
    Values close to the smallest normal number of the dtype (5e-38 for float32) are set to 0: arithmetic on denormal
    numbers takes thirty times as long on CPUs, here and in every following layer.

    References
    ----------
    Jing et al. 2021, arXiv:2009.01411; width as in ``_rbf`` of gvp-pytorch (16 centers up to 20 Å),
    without the factor 1/2 of a normal density.
    """

    reads: ClassVar[tuple[str, ...]] = ("edge_dist",)
    writes: ClassVar[tuple[str, ...]] = ("edge_rbf",)

    def __init__(self, *, bins: Annotated[int, Ge(1)] = 16, cutoff: Annotated[float, Gt(0)] = 20.0) -> None:
        super().__init__()
        self.bins, self.cutoff = bins, cutoff
        self.declare(edge_rbf=f"{bins}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        distance = f["edge_dist"]
        center = torch.linspace(0.0, self.cutoff, self.bins, dtype=distance.dtype, device=distance.device)
        scale, tiny = self.bins / self.cutoff, torch.finfo(distance.dtype).tiny
        lowest = math.log(2 * tiny)
        scaled = (distance - center) * scale  # (E, bins)
        return {"edge_rbf": threshold(scaled.square().neg_().clamp(min=lowest).exp_(), 4 * tiny, 0.0)}


class EdgeOffset(TensorFeaturizer):
    """Offset along the chain, ``seq_pos[j] - seq_pos[i]`` clipped to ±clip, one-hot; last column: other chain.

    Parameters
    ----------
    clip : int
        Largest offset with a separate column.

    Reads
    -----
    seq_pos, chain : (N,) int64
    edges : the edges j → i

    Writes
    ------
    edge_offset : (E, 2·clip + 2), 0e, dimensionless
        Column ``clip + offset``, the last one for residues of different chains; torch's default floating type.

    Notes
    -----
    The reference uses i − j, which only reverses the columns.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement (relative positional encoding, ±32).
    """

    reads: ClassVar[tuple[str, ...]] = ("seq_pos", "chain", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_offset",)

    def __init__(self, *, clip: Annotated[int, Ge(1)] = 32) -> None:
        super().__init__()
        self.clip = clip
        self.declare(edge_offset=f"{2 * clip + 2}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, seq_pos, chain = f["edges"], f["seq_pos"], f["chain"]
        offset = (edges.source(seq_pos) - edges.target(seq_pos)).clamp(-self.clip, self.clip) + self.clip
        column = torch.where(edges.source(chain) == edges.target(chain), offset, 2 * self.clip + 1)  # (E,)
        columns = torch.arange(2 * self.clip + 2, device=column.device)
        return {"edge_offset": (column[:, None] == columns).to(torch.get_default_dtype())}  # (E, 2·clip + 2)


class EdgeResidue(TensorFeaturizer):
    """Residue types of source and target, one-hot.

    Reads
    -----
    aatype : (N,) int64
    edges : the edges j → i

    Writes
    ------
    edge_residue : (E, 42), 0e, dimensionless
        Columns 0–20 the type of j, 21–41 that of i; torch's default floating type.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_residue",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        types = torch.arange(field("aatype").dim, device=f["aatype"].device)
        one_hot = (f["aatype"][:, None] == types).to(torch.get_default_dtype())  # (N, 21)
        return {"edge_residue": torch.cat([f["edges"].source(one_hot), f["edges"].target(one_hot)], 1)}


def _vector(f: Mapping[str, Any]) -> Tensor:
    """Return ``x_j - x_i``, ``(E, 3)``."""
    return f["edges"].source(f.get("source_pos", f["pos"])) - f["edges"].target(f["pos"])


def _squared_distance(axes: Tensor, edges: Edges) -> Tensor:
    """Return ``|x_j - x_i|²`` from positions ``axes (3, N)``, ``(E,)`` or ``(N, K)``.

    By axis, it takes a third of the time of vectors ``(E, 3)``.
    """
    source = axes.index_select(1, edges.index[0])  # (3, E)
    if edges.degree is None:
        difference = source - axes.index_select(1, edges.index[1])
    else:
        difference = source.view(3, edges.num_nodes, edges.degree) - axes.unsqueeze(2)  # (3, N, K)
    return difference.square().sum(0)


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

    def __init__(
        self,
        *,
        bins: Annotated[int, Ge(1)] = 16,
        cutoff: Annotated[float, Gt(0)] = 20.0,
        envelope: Annotated[int, Ge(2)] = 6,
    ) -> None:
        super().__init__()
        self.basis = BesselBasis(bins, cutoff, envelope)
        self.declare(edge_bessel=f"{bins}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"edge_bessel": self.basis(f["edge_dist"])}


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

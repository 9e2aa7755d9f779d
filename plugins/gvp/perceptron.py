"""Geometric vector perceptrons and their normalization and dropout, on pairs of scalars and vectors.

Scalars are ``(M, S)``, vectors ``(M, 3, V)``: with components before channels, a map of channels is one matrix product.
Fields store them flat as e3nn does, ``Sx0e+Vx1o``; :class:`ScalarVector` converts between the two.

Not the package ``gvp`` (drorlab/gvp-pytorch): its convolution, written out on edges, takes 2.3× the time of layer
``gvp_conv`` (torch 2.13, one thread, 2026-11-22).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from protgraph.data.graph import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn import activation

__all__ = [
    "GVP",
    "ScalarVector",
    "ScalarVectorDropout",
    "ScalarVectorNorm",
    "ScalarVectorWidths",
    "VectorGate",
    "vector_norms",
]

VectorGate = Literal["norm", "scalar", "sigmoid_scalar", "none"]
SMALLEST = 1e-8  # lower limit of |v|², as in the authors' code


class ScalarVectorWidths(NamedTuple):
    """Numbers of scalar and vector channels."""

    scalars: int
    vectors: int

    @classmethod
    def of(cls, spec: FieldSpec, who: str) -> ScalarVectorWidths:
        """Return the widths of a field with irreps ``Sx0e+Vx1o`` in this order; vectors may be missing."""
        blocks = spec.o3.simplify()
        if [str(ir) for _, ir in blocks] not in (["0e"], ["0e", "1o"]):
            raise WiringError(
                f"{who} reads {spec.name!r} as scalars and then vectors, e.g. 64x0e+16x1o, but it is {spec.irreps}. "
                "Add a layer 'gvp' or 'irreps_linear' before."
            )
        return cls(blocks[0].mul, blocks[1].mul if len(blocks) > 1 else 0)

    @property
    def irreps(self) -> str:
        """The irreps of a field with these widths."""
        return f"{self.scalars}x0e+{self.vectors}x1o" if self.vectors else f"{self.scalars}x0e"


class ScalarVector(NamedTuple):
    """Scalars ``s`` ``(M, S)`` and vectors ``v`` ``(M, 3, V)``."""

    s: Tensor
    v: Tensor

    @classmethod
    def unpack(cls, x: Tensor, widths: ScalarVectorWidths) -> ScalarVector:
        """Split the flat layout ``(M, S + 3 V)``."""
        s, v = x.split([widths.scalars, 3 * widths.vectors], 1)
        return cls(s, v.unflatten(1, (widths.vectors, 3)).mT)

    def pack(self) -> Tensor:
        """Join into the flat layout ``(M, S + 3 V)``."""
        return torch.cat([self.s, self.v.mT.flatten(1)], 1)

    def __add__(self, other: ScalarVector) -> ScalarVector:
        return ScalarVector(self.s + other.s, self.v + other.v)


class GVP(nn.Module):
    """Geometric vector perceptron.

    ``V_h = W_h V``, ``s' = W_s [s, |V_h|] + b``, ``V' = g ∘ W_v V_h``, then the activation of s'.

    Parameters
    ----------
    width_in, width_out : ScalarVectorWidths
        Input and output widths. Without input vectors ``s' = W_s s + b`` and V' is 0; without output vectors V' is
        empty.
    hidden : int, optional
        Number of vectors V_h; None: the larger of those of input and output.
    act : str
        Activation function of s'; "none" also removes the gate "norm" and the inner sigmoid of "sigmoid_scalar".
    gate : {"norm", "scalar", "sigmoid_scalar", "none"}
        g: ``σ(|W_v V_h|)`` of each vector's norm; ``σ(W_g s' + b_g)`` of the scalars before their activation; ``σ(W_g
        σ(s') + b_g)``, the default of the authors' code with ``vector_gate=True``; or 1.

    Notes
    -----
    Norms are ``sqrt(max(|v|², 1e-8))``, as in the
    authors' code, so that a zero vector has gradient 0. Parameters have the names and shapes of that code.

    References
    ----------
    Jing et al. 2021a, arXiv:2009.01411, algorithm 1 ("norm"); Jing et al. 2021b, arXiv:2106.03843, eqs. 3–4 ("scalar").
    """

    #: Absent without input vectors.
    wh: nn.Linear
    #: Absent without input or output vectors.
    wv: nn.Linear

    def __init__(
        self,
        width_in: ScalarVectorWidths,
        width_out: ScalarVectorWidths,
        *,
        hidden: int | None = None,
        act: str = "relu",
        gate: VectorGate = "scalar",
    ) -> None:
        super().__init__()
        self.width_in, self.width_out = width_in, width_out
        hidden = hidden or max(width_in.vectors, width_out.vectors)
        maps_vectors = width_in.vectors > 0 and width_out.vectors > 0
        if width_in.vectors:
            self.wh = nn.Linear(width_in.vectors, hidden, bias=False)
        self.ws = nn.Linear(width_in.scalars + (hidden if width_in.vectors else 0), width_out.scalars)
        if maps_vectors:
            self.wv = nn.Linear(hidden, width_out.vectors, bias=False)
        by_scalars = maps_vectors and gate in ("scalar", "sigmoid_scalar")
        self.wsv = nn.Linear(width_out.scalars, width_out.vectors) if by_scalars else None
        self.has_inner_sigmoid = gate == "sigmoid_scalar" and act != "none"
        self.is_gated_by_norm = gate == "norm" and act != "none"
        self.act = activation(act, inplace=self.wsv is None)  # the gradient of the scalar gate needs s' unchanged
        self.is_linear = act == "none"

    def forward(self, x: ScalarVector) -> ScalarVector:
        """Apply the perceptron to ``(M, S)`` scalars and ``(M, 3, V)`` vectors."""
        if not self.width_in.vectors:
            return ScalarVector(self.act(self.ws(x.s)), x.s.new_zeros(len(x.s), 3, self.width_out.vectors))
        vh = self.wh(x.v)  # (M, 3, h)
        return self.finish(self.ws(torch.cat([x.s, vector_norms(vh)], 1)), vh)

    def finish(self, s: Tensor, vh: Tensor) -> ScalarVector:
        """Compute the output from V_h, ``vh (M, 3, h)``, and s' before its activation, ``s (M, S)``.

        s' may be overwritten.
        """
        if not self.width_out.vectors:
            return ScalarVector(self.act(s), vh.new_zeros(len(s), 3, 0))
        v = self.wv(vh)  # (M, 3, V)
        if self.wsv is not None:
            v = v * self.wsv(s.sigmoid() if self.has_inner_sigmoid else s).sigmoid().unsqueeze(1)
        elif self.is_gated_by_norm:
            v = v * vector_norms(v).sigmoid().unsqueeze(1)
        return ScalarVector(self.act(s), v)


class ScalarVectorNorm(nn.Module):
    """Layer normalization of scalars; the vectors of a row divided by ``sqrt(mean_channels |v|²)``.

    Parameters
    ----------
    scalars : int
        S.
    vectors : bool
        Normalize vectors too.

    References
    ----------
    Jing et al. 2021a, arXiv:2009.01411, sec. 3.1.
    """

    def __init__(self, scalars: int, *, vectors: bool = True) -> None:
        super().__init__()
        self.scalar_norm, self.vectors = nn.LayerNorm(scalars), vectors

    def forward(self, x: ScalarVector) -> ScalarVector:
        """Normalize ``M`` rows: scalars by layer norm, vectors by their root mean square norm."""
        if not self.vectors:
            return ScalarVector(self.scalar_norm(x.s), x.v)
        square = x.v.square().sum(1, keepdim=True).clamp(min=SMALLEST)  # (M, 1, V)
        return ScalarVector(self.scalar_norm(x.s), x.v * square.mean(2, keepdim=True).rsqrt())


class ScalarVectorDropout(nn.Module):
    """Dropout of single scalars and of whole vectors."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: ScalarVector) -> ScalarVector:
        """Drop scalars and whole vectors in training."""
        if not (self.training and self.p):
            return x
        keep = nn.functional.dropout(x.v.new_ones(x.v.size(0), 1, x.v.size(2)), self.p)
        return ScalarVector(nn.functional.dropout(x.s, self.p), x.v * keep)


def vector_norms(v: Tensor) -> Tensor:
    """Compute ``sqrt(max(|v|², 1e-8))``, ``(M, 3, V)`` to ``(M, V)``."""
    return v.square().sum(1).clamp(min=SMALLEST).sqrt()

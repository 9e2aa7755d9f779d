"""Geometric vector perceptrons, the parts: pairs of scalars ``(M, S)`` and vectors ``(M, 3, V)``, components first.

With components before channels, a map of channels is one matrix product. In a field they lie flat, as e3nn has them:
``Sx0e+Vx1o``; :class:`ScalarVector` goes between the two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.mlp import activation, check_choice

__all__ = ["GVP", "ScalarVector", "ScalarVectorDropout", "ScalarVectorNorm", "ScalarVectorWidths", "vector_norms"]

SMALLEST = 1e-8  # squared length, as in the authors' program; what is shorter counts as this long


class ScalarVectorWidths(NamedTuple):
    """How many scalars and vectors."""

    scalars: int
    vectors: int

    @classmethod
    def of(cls, spec: FieldSpec, who: str) -> ScalarVectorWidths:
        """The widths of a field of irreps ``Sx0e+Vx1o``, in that order; vectors may be missing."""
        blocks = spec.o3.simplify()
        if [str(ir) for _, ir in blocks] not in (["0e"], ["0e", "1o"]):
            raise WiringError(
                f"{who} reads {spec.name!r} as scalars, then vectors (64x0e+16x1o), but it is {spec.irreps}.\n"
                "Make it so by a layer 'gvp' or 'irreps_linear' before."
            )
        return cls(blocks[0].mul, blocks[1].mul if len(blocks) > 1 else 0)

    @property
    def irreps(self) -> str:
        """As a field has them."""
        return f"{self.scalars}x0e+{self.vectors}x1o"


class ScalarVector(NamedTuple):
    """Scalars ``s`` ``(M, S)`` and vectors ``v`` ``(M, 3, V)``."""

    s: Tensor
    v: Tensor

    @classmethod
    def unpack(cls, x: Tensor, widths: ScalarVectorWidths) -> ScalarVector:
        """From the flat layout ``(M, S + 3 V)``."""
        s, v = x.split([widths.scalars, 3 * widths.vectors], 1)
        return cls(s, v.unflatten(1, (widths.vectors, 3)).mT)

    def pack(self) -> Tensor:
        """To the flat layout ``(M, S + 3 V)``."""
        return torch.cat([self.s, self.v.mT.flatten(1)], 1)

    def __add__(self, other: ScalarVector) -> ScalarVector:
        return ScalarVector(self.s + other.s, self.v + other.v)


class GVP(nn.Module):
    """``V_h = W_h V``, ``s' = W_s [s, |V_h|] + b``, ``V' = g ∘ W_v V_h``, then an activation of s'.

    Parameters
    ----------
    wide, narrow : ScalarVectorWidths
        What comes in and goes out; both with vectors.
    act : str
        Activation of s'; "none" also leaves off the norm gate.
    gate : {"norm", "scalar"}
        g: ``σ(|W_v V_h|)`` of each vector's own length, or ``σ(W_g s' + b_g)`` of the scalars before their activation.

    Notes
    -----
    The width between, h, is the larger number of vectors. Lengths are ``sqrt(max(|v|², 1e-8))``, as in the authors'
    program, so that a vector of 0 passes no gradient. Parameters have that program's names and shapes.

    References
    ----------
    Jing et al. 2021a, arXiv:2009.01411, algorithm 1 ("norm"); Jing et al. 2021b, arXiv:2106.03843, eqs. 3–4 ("scalar").
    """

    def __init__(self, wide: ScalarVectorWidths, narrow: ScalarVectorWidths, *, act: str = "relu", gate: str = "scalar") -> None:
        super().__init__()
        hidden = max(wide.vectors, narrow.vectors)
        self.wh = nn.Linear(wide.vectors, hidden, bias=False)
        self.ws = nn.Linear(wide.scalars + hidden, narrow.scalars)
        self.wv = nn.Linear(hidden, narrow.vectors, bias=False)
        by_scalars = check_choice("gate", gate, ("norm", "scalar")) == "scalar"
        self.wsv = nn.Linear(narrow.scalars, narrow.vectors) if by_scalars else None
        self.act = activation(act, inplace=self.wsv is None)  # the scalar gate's derivative needs s' as it was
        self.is_linear = act == "none"

    def forward(self, x: ScalarVector) -> ScalarVector:
        """``(M, S)`` and ``(M, 3, V)`` to those of the narrow widths."""
        vh = self.wh(x.v)  # (M, 3, h)
        return self.finish(self.ws(torch.cat([x.s, vector_norms(vh)], 1)), vh)

    def finish(self, s: Tensor, vh: Tensor) -> ScalarVector:
        """From a fresh s' before its activation, which may overwrite it, and V_h to what goes out."""
        v = self.wv(vh)  # (M, 3, V)
        if self.wsv is not None:
            v = v * self.wsv(s).sigmoid().unsqueeze(1)
        elif not self.is_linear:
            v = v * vector_norms(v).sigmoid().unsqueeze(1)
        return ScalarVector(self.act(s), v)


class ScalarVectorNorm(nn.Module):
    """Layer normalization of scalars; all vectors of a row over ``sqrt(mean_channels |v|²)``.

    Parameters
    ----------
    scalars : int
        S.
    vectors : bool
        Whether vectors are normalized too.

    References
    ----------
    Jing et al. 2021a, arXiv:2009.01411, sec. 3.1.
    """

    def __init__(self, scalars: int, *, vectors: bool = True) -> None:
        super().__init__()
        self.scalar_norm, self.vectors = nn.LayerNorm(scalars), vectors

    def forward(self, x: ScalarVector) -> ScalarVector:
        if not self.vectors:
            return ScalarVector(self.scalar_norm(x.s), x.v)
        square = x.v.square().sum(1, keepdim=True).clamp(min=SMALLEST)  # (M, 1, V)
        return ScalarVector(self.scalar_norm(x.s), x.v * square.mean(2, keepdim=True).rsqrt())


class ScalarVectorDropout(nn.Module):
    """Leaves out scalars, and whole vectors."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: ScalarVector) -> ScalarVector:
        if not (self.training and self.p):
            return x
        keep = nn.functional.dropout(x.v.new_ones(x.v.size(0), 1, x.v.size(2)), self.p)
        return ScalarVector(nn.functional.dropout(x.s, self.p), x.v * keep)


def vector_norms(v: Tensor) -> Tensor:
    """``sqrt(max(|v|², 1e-8))``, ``(M, 3, V)`` to ``(M, V)``."""
    return _Norm.apply(v)


class _Norm(torch.autograd.Function):
    """In few passes through memory: no square of all components is ever held. Differentiable to any order."""

    @staticmethod
    def forward(v: Tensor) -> Tensor:
        x, y, z = v.unbind(1)
        return (x * x).addcmul_(y, y).addcmul_(z, z).clamp_(min=SMALLEST).sqrt_()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        v, length = ctx.saved_tensors
        clamped = length.square() < 1.0001 * SMALLEST
        return v * (grad / length).masked_fill(clamped, 0).unsqueeze(1)

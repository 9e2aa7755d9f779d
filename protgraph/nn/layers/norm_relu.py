"""The nonlinearity of SE(3)-Transformers: a perceptron's, on norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.module import GraphLayer

__all__ = ["NormReLU"]
ENTRY_POINTS = {"protgraph.layers": {"norm_relu": "NormReLU"}}


class NormReLU(GraphLayer):
    """``v ↦ ReLU(LayerNorm(|v|)) v / |v|`` for every channel of every irrep: norms change, directions stay.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        What ``h`` holds.
    eps : float
        Norms below it count as eps, so that the map is continuous at 0 and rounding there is not blown up.

    Notes
    -----
    Reads ``h`` (N, any irreps). Writes ``h`` (N, the same). LayerNorm runs over the channels of one block.
    Scalars keep their sign. The same function as NVIDIA's NormSE3 with equal multiplicities and as Fuchs' GNormSE3.

    Deviations: their eps is 6e-8 and 1e-12; NVIDIA's branch for unequal multiplicities, which is not equivariant, is
    not copied.

    References
    ----------
    Fuchs et al. 2020, arXiv:2006.10503, sec. 3.3 and appendix C (norm nonlinearity), and its code.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, eps: float = 1e-4) -> None:
        super().__init__(fields)
        self.eps = eps
        self.irreps = fields["h"].o3.simplify()
        self.norms = nn.ModuleList(nn.LayerNorm(mul) for mul, _ in self.irreps)
        self.declare(h=FieldSpec("h", fields["h"].level, str(self.irreps)))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``h`` (N, irreps)."""
        parts, made = f["h"].flatten(1).split([block.dim for block in self.irreps], 1), []
        for norm, part, (mul, ir) in zip(self.norms, parts, self.irreps, strict=True):
            v = part.unflatten(1, (mul, ir.dim))
            size = v.square().sum(2).clamp(min=self.eps**2).sqrt()  # (N, mul); no gradient below eps
            made.append((v * (norm(size).relu() / size).unsqueeze(2)).flatten(1))
        return {"h": torch.cat(made, 1)}

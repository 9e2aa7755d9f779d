"""Norm nonlinearity of SE(3)-Transformers (Fuchs et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.irreps_blocks import irreps_blocks
from protgraph.nn.module import GraphLayer

__all__ = ["NormReLU"]
ENTRY_POINTS = {"protgraph.layers": {"norm_relu": "NormReLU"}}


class NormReLU(GraphLayer):
    """Norm nonlinearity ``v ↦ ReLU(LayerNorm(|v|)) v / |v|`` of every channel: norms change, directions do not.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
    eps : float
        Lower limit of norms, which makes the map continuous at 0 and limits the amplification of rounding errors.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps.
    Writes: ``h``, of the same irreps.

    LayerNorm runs over the channels of one block. Scalars keep their sign. Equal to NVIDIA's NormSE3 with equal
    multiplicities and to Fuchs' GNormSE3.

    Deviations: their eps is 6e-8 and 1e-12; NVIDIA's branch for unequal multiplicities is not equivariant and not
    included.

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
        self._blocks = irreps_blocks(self.irreps)
        self.norms = nn.ModuleList(nn.LayerNorm(mul) for mul, _ in self.irreps)
        self.declare(h=FieldSpec("h", fields["h"].level, str(self.irreps)))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Apply ReLU to the norm of each irrep of ``h (N, dim)``; directions stay."""
        parts, out = f["h"].flatten(1).split([mul * dim for mul, dim in self._blocks], 1), []
        for norm, part, block in zip(self.norms, parts, self._blocks, strict=True):
            v = part.unflatten(1, block)
            size = v.square().sum(2).clamp(min=self.eps**2).sqrt()  # (N, mul); no gradient below eps
            out.append((v * (norm(size).relu() / size).unsqueeze(2)).flatten(1))
        return {"h": torch.cat(out, 1)}

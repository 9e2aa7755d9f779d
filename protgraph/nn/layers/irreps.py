"""Linear map, normalization and invariants of features of any irreps, per node or edge."""

# Not e3nn.o3.Linear: 1.1 times the time, and weights are scaled for another initialization (e3nn 0.6.0, 2026-11-22).

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from e3nn import o3
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.irreps import invariant_width, invariants, invariants_are_chiral, irreps_blocks
from protgraph.nn.module import GraphLayer

__all__ = ["Invariants", "IrrepsLinear", "IrrepsNorm"]

ENTRY_POINTS = {
    "protgraph.layers": {"irreps_linear": "IrrepsLinear", "irreps_norm": "IrrepsNorm", "invariants": "Invariants"}
}


class IrrepsLinear(GraphLayer):
    """Equivariant linear map: ``h^(l) = W^(l) [x_1^(l), x_2^(l), …]``, plus b for even scalars.

    Channels of one irrep are mixed, components never. Used as input layer and as self-interaction of equivariant
    networks.

    Parameters
    ----------
    irreps : str
        Output irreps, e.g. ``"64x0e+16x1o"``; each must be among those read.

    Notes
    -----
    Reads (variadic): real fields of one level, e.g. ``h`` ``(N, irreps)`` or ``orientation`` ``(N, 2, 3)``.
    Writes: ``h`` ``(N, irreps)``.

    References
    ----------
    Thomas et al. 2018, arXiv:1802.08219, sec. 4.2 (self-interaction).
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, irreps: str = "64x0e+16x1o") -> None:
        super().__init__(fields)
        level = self.common_level()
        unfit = [n for n, s in fields.items() if s.is_category]
        if unfit:
            raise WiringError(f"irreps_linear reads {unfit[0]!r}, a category. Add a layer 'embed' before.")
        self.irreps_in = sum((spec.o3 for spec in fields.values()), o3.Irreps())
        self.irreps_out = o3.Irreps(irreps).simplify()
        self._blocks = irreps_blocks(self.irreps_in)
        self._read: list[list[int]] = []  # for each output, the numbers of the inputs of its kind
        for _, ir in self.irreps_out:
            self._read.append([i for i, (_, kind) in enumerate(self.irreps_in) if kind == ir])
        self.maps = nn.ModuleList(self._map(mul, ir) for mul, ir in self.irreps_out)
        self.declare(h=FieldSpec("h", level, str(self.irreps_out)))

    def _map(self, mul: int, ir: o3.Irrep) -> nn.Linear:
        channels = self.irreps_in.count(ir)
        if not channels:
            raise WiringError(
                f"irreps_linear cannot output {ir} from {self.irreps_in.simplify()}. Read a field that contains it."
            )
        return nn.Linear(channels, mul, bias=ir == o3.Irrep("0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: a linear map within each irrep, over all inputs."""
        x = torch.cat([f[name].flatten(1).to(self.maps[0].weight.dtype) for name in self.fields], 1)
        parts = x.split([mul * dim for mul, dim in self._blocks], 1)
        out = []
        for linear, read in zip(self.maps, self._read, strict=True):
            same = [parts[i].unflatten(1, self._blocks[i]) for i in read]  # (N, mul, 2l+1)
            out.append(linear(torch.cat(same, 1).mT).mT.flatten(1))
        return {"h": torch.cat(out, 1)}


class IrrepsNorm(GraphLayer):
    """Equivariant layer normalization.

    Even scalars are normalized as usual, the other channels v as ``γ v / sqrt(mean_channels |v|² + ε)``.

    Parameters
    ----------
    eps : float
        ε; zero vectors stay zero.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps.
    Writes: ``h``, of the same irreps.

    Even scalars get mean 0, variance 1, γ and β. Each other block has its own mean square over channels and a γ per
    channel.

    References
    ----------
    Ba, Kiros & Hinton 2016, arXiv:1607.06450, eq. 4; for l > 0 Jing et al. 2021, arXiv:2009.01411, sec. 3.1.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, eps: float = 1e-5) -> None:
        super().__init__(fields)
        self.eps = eps
        self.irreps = fields["h"].o3.simplify()
        self._widths = [mul * dim for mul, dim in irreps_blocks(self.irreps)]
        self.blocks = nn.ModuleList(
            nn.LayerNorm(mul, eps=eps) if ir == o3.Irrep("0e") else _RootMeanSquare(mul, ir.dim, eps)
            for mul, ir in self.irreps
        )
        self.declare(h=FieldSpec("h", fields["h"].level, str(self.irreps)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Normalize each block of irreps of ``h (N, dim)``."""
        parts = f["h"].flatten(1).split(self._widths, 1)
        return {"h": torch.cat([norm(x) for norm, x in zip(self.blocks, parts, strict=True)], 1)}


class _RootMeanSquare(nn.Module):
    """Normalization ``γ v / sqrt(mean_channels |v|² + ε)`` of ``(N, mul (2l+1))``."""

    def __init__(self, mul: int, dim: int, eps: float) -> None:
        super().__init__()
        self.shape, self.eps = (mul, dim), eps
        self.gamma = nn.Parameter(torch.ones(mul, 1))

    def forward(self, x: Tensor) -> Tensor:
        v = x.unflatten(1, self.shape)  # (N, mul, 2l+1)
        scale = (v.square().sum(2, keepdim=True).mean(1, keepdim=True) + self.eps).rsqrt()  # (N, 1, 1)
        return (self.gamma * v * scale).flatten(1)


class Invariants(GraphLayer):
    """Rotation-invariant scalars ``h' = [h^(l=0), |h^(l>0)|]``: scalars, and the norm of each other channel.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps, or a field of shape ``(N, V, 3)``, e.g. ``orientation``.
    Writes: ``h`` ``(N, M)``, ``M x 0e``, one column per channel.

    Pseudoscalars (0o) are kept, so the output is chiral if there are some. The gradient is 0 where a vector is 0.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        spec = fields["h"]
        self.declare(h=FieldSpec("h", spec.level, f"{invariant_width(spec)}x0e", chiral=invariants_are_chiral(spec)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: scalars, and norms of all other irreps."""
        return {"h": invariants(f["h"].flatten(1), self.fields["h"])}

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
        self.irreps_in = o3.Irreps()
        for name, spec in fields.items():
            if spec.is_category:
                raise WiringError(f"irreps_linear reads {name!r}, a category. Add a layer 'embed' before.")
            self.irreps_in += spec.o3
        self.irreps_out = o3.Irreps(irreps).simplify()
        self._blocks = irreps_blocks(self.irreps_in)
        self._read: list[list[int]] = []  # for each output, the numbers of the inputs of its kind
        self.maps = nn.ModuleList()
        for mul, ir in self.irreps_out:
            read = [number for number, (_, kind) in enumerate(self.irreps_in) if kind == ir]
            if not read:
                raise WiringError(
                    f"irreps_linear cannot output {ir} from {self.irreps_in.simplify()}. Read a field that contains it."
                )
            self._read.append(read)
            self.maps.append(nn.Linear(self.irreps_in.count(ir), mul, bias=ir == o3.Irrep("0e")))
        self.declare(h=FieldSpec("h", level, str(self.irreps_out)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: a linear map within each irrep, over all inputs."""
        dtype = self.maps[0].weight.dtype
        x = torch.cat([f[name].flatten(1).to(dtype) for name in self.fields], 1)
        widths = [mul * dim for mul, dim in self._blocks]
        blocks = x.split(widths, 1)
        out = []
        for linear, read in zip(self.maps, self._read, strict=True):
            of_kind = [blocks[number].unflatten(1, self._blocks[number]) for number in read]  # (N, mul, 2l+1) each
            channels = torch.cat(of_kind, 1)
            mixed = linear(channels.mT).mT
            out.append(mixed.flatten(1))
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
        irreps = fields["h"].o3.simplify()
        self._widths = [mul * dim for mul, dim in irreps_blocks(irreps)]
        self.blocks = nn.ModuleList()
        for mul, ir in irreps:
            if ir == o3.Irrep("0e"):
                self.blocks.append(nn.LayerNorm(mul, eps=eps))
            else:
                self.blocks.append(_RootMeanSquare(mul, ir.dim, eps))
        self.declare(h=FieldSpec("h", fields["h"].level, str(irreps)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Normalize each block of irreps of ``h (N, dim)``."""
        blocks = f["h"].flatten(1).split(self._widths, 1)
        normalized = [norm(x) for norm, x in zip(self.blocks, blocks, strict=True)]
        return {"h": torch.cat(normalized, 1)}


class _RootMeanSquare(nn.Module):
    """Normalization ``γ v / sqrt(mean_channels |v|² + ε)`` of ``(N, mul (2l+1))``."""

    def __init__(self, mul: int, dim: int, eps: float) -> None:
        super().__init__()
        self.shape = (mul, dim)
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(mul, 1))

    def forward(self, x: Tensor) -> Tensor:
        v = x.unflatten(1, self.shape)  # (N, mul, 2l+1)
        square = v.square().sum(2, keepdim=True)  # (N, mul, 1)
        mean = square.mean(1, keepdim=True)  # (N, 1, 1)
        scale = (mean + self.eps).rsqrt()
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
        irreps = f"{invariant_width(spec)}x0e"
        self.declare(h=FieldSpec("h", spec.level, irreps, chiral=invariants_are_chiral(spec)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: scalars, and norms of all other irreps."""
        return {"h": invariants(f["h"].flatten(1), self.fields["h"])}

"""Many-body features: symmetric products of node features with themselves (Batatia et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge
from e3nn import o3
from protgraph_plugins.mace.polynomial import (
    equivariant_polynomials,
    monomials,
    num_monomials,
)
from torch import Tensor, nn

from protgraph.data.graph import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn import GraphLayer, IrrepsLinear, irreps_blocks

__all__ = ["ProductBasis"]
ENTRY_POINTS = {"protgraph.layers": {"product_basis": "ProductBasis"}}

# Numbers of all P_d per chunk: 16 MB float32, which the allocator reuses.
_CHUNK = 1 << 22


class ProductBasis(GraphLayer):
    """Many-body features as equivariant polynomials of the node features, as in MACE (Batatia et al. 2022).

    ``h_c ← Linear( Σ_ν Σ_η w_ηc B^ν_η(A_c) )``, with polynomials B of degree ν ≤ correlation, per channel c.

    If A_i is a sum over the neighbors of i, e.g. the output of ``tfn``, a product of ν of them is a sum over all
    ν-tuples of neighbors: body order ν + 1 at the cost of pairs.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        ``h`` with equal multiplicities, e.g. ``"32x0e+32x1o"``.
    irreps : str
        Output irreps; "": those of ``h``.
    correlation : int
        Highest degree ν.

    Notes
    -----
    Reads: ``h`` ``(N, irreps)``. Writes: ``h`` ``(N, irreps)``.

    B is a basis of the equivariant polynomials (``equivariant_polynomials`` of this package), evaluated by
    Horner's rule ``Σ_d x_d P_d``, where all P_d are one matrix product with the monomials of lower degree.

    Deviations from the paper: the weights w do not depend on the residue type, as in geometric-gnn-dojo (types enter
    through h); B omits linear dependencies of the paper's generalized Clebsch–Gordan basis.

    References
    ----------
    Batatia et al. 2022, arXiv:2206.07697, eqs. 10–11; Drautz 2019, Phys. Rev. B 99, 014104 (atomic cluster expansion).

    Examples
    --------
    >>> ProductBasis({"h": FieldSpec("h", "node", "8x0e+8x1o")}, irreps="8x0e").out["h"].irreps
    '8x0e'
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, irreps: str = "", correlation: Annotated[int, Ge(1)] = 3
    ) -> None:
        super().__init__(fields)
        self.irreps_in = fields["h"].o3
        self.correlation = correlation
        self.irreps_out = o3.Irreps(irreps or str(self.irreps_in)).simplify()
        channels = {mul for mul, _ in self.irreps_in}
        if len(channels) != 1:
            raise WiringError(f"product_basis needs equal multiplicities of h, not {self.irreps_in}.")
        self.channels = channels.pop()
        self._dim = self.irreps_in.dim // self.channels
        self._widths = [mul * dim for mul, dim in irreps_blocks(self.irreps_in)]
        self._dims = [ir.dim for _, ir in self.irreps_out]
        # Neither parameters nor buffers, so that conversions of the module to float32 lose no precision.
        self._exact = self._polynomials()
        self._basis: list[list[Tensor]] = []
        weights = {}
        for degree, table in enumerate(self._exact, 1):
            for o, basis in enumerate(table):
                if len(basis):
                    scale = math.sqrt(len(basis) * math.factorial(degree) * correlation)
                    weights[f"{degree}_{o}"] = torch.randn(len(basis), self.channels) / scale
        self.weights = nn.ParameterDict(weights)
        between = FieldSpec("h", "node", "+".join(f"{self.channels}x{ir}" for _, ir in self.irreps_out))
        self.linear = IrrepsLinear({"h": between}, irreps=str(self.irreps_out))
        self.declare(h=str(self.irreps_out))

    def _polynomials(self) -> list[list[Tensor]]:
        """Return the basis of each degree and output irrep."""
        single, wanted = _single(self.irreps_in), _single(self.irreps_out)
        tables = [equivariant_polynomials(single, degree, wanted) for degree in range(1, self.correlation + 1)]
        names = [str(ir) for _, ir in self.irreps_out]
        for name in names:
            if not any(len(table[name]) for table in tables):
                raise WiringError(
                    f"product_basis: {name} is not a product of {self.irreps_in} with correlation={self.correlation}."
                )
        polynomials = []
        for table in tables:
            polynomials.append([table[name] for name in names])
        return polynomials

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: symmetric tensor products of the node's own irreps."""
        # Blocks of irreps to components of each channel, (C, D, N).
        blocks = [block.unflatten(1, (self.channels, -1)) for block in f["h"].split(self._widths, 1)]
        x = torch.cat(blocks, 2).permute(1, 2, 0).contiguous()

        # Channels are independent: some at a time.
        table = self._table(x)  # (C, D M, P)
        if torch.compiler.is_compiling():
            products = self._products(x, table)
        else:
            size = max(1, _CHUNK // max(1, table.size(1) * x.size(2)))
            chunks = zip(x.split(size), table.split(size), strict=True)
            products = torch.cat([self._products(x_chunk, table_chunk) for x_chunk, table_chunk in chunks])

        # Back to blocks of irreps.
        by_node = products.permute(2, 0, 1)  # (N, C, M)
        flat = [block.flatten(1) for block in by_node.split(self._dims, 2)]
        return self.linear({"h": torch.cat(flat, 1)})

    def _products(self, x: Tensor, table: Tensor) -> Tensor:
        """Evaluate ``Σ_d x_d P_d(x)`` with the polynomials P_d of the table, ``(C, D, N)`` to ``(C, M, N)``."""
        one = torch.ones_like(x[:, :1])
        powers = torch.cat([one, *monomials(x, self.correlation - 1)], 1)  # (C, P, N)
        polynomials = (table @ powers).unflatten(1, (self._dim, -1))  # (C, D, M, N)
        return (polynomials * x.unsqueeze(2)).sum(1)

    def _table(self, x: Tensor) -> Tensor:
        """Compute the coefficients of every P_d, ``Σ_η w_ηc B_η`` with x_d divided out: ``(C, D M, P)``."""
        if not self._basis or self._basis[0][0].dtype != x.dtype or self._basis[0][0].device != x.device:
            self._basis = []
            for degree, table in enumerate(self._exact, 1):
                self._basis.append([_without_largest(basis, self._dim, degree).to(x) for basis in table])
        none = x.new_zeros(0, self.channels)
        degrees = []
        for degree, table in enumerate(self._basis, 1):
            blocks = []
            for output, basis in enumerate(table):
                # Without polynomials of this degree there is no weight, and the sum is empty.
                weight = self.weights[f"{degree}_{output}"] if len(basis) else none
                blocks.append(torch.einsum("rc,rdmp->cdmp", weight, basis))
            degrees.append(torch.cat(blocks, 2))  # (C, D, M, count)
        return torch.cat(degrees, 3).flatten(1, 2)


def _single(irreps: o3.Irreps) -> str:
    return "+".join(str(ir) for _, ir in irreps)


def _without_largest(b: Tensor, variables: int, degree: int) -> Tensor:
    """Divide each monomial by its largest x_d: ``(R, P, 2l+1)`` to ``(R, D, 2l+1, num_monomials(D, degree − 1))``."""
    table = b.new_zeros(len(b), variables, b.size(2), num_monomials(variables, degree - 1))
    for d in range(variables):
        first = num_monomials(d, degree)
        end = num_monomials(d + 1, degree)
        rows = b[:, first:end]  # monomials whose largest is x_d
        table[:, d, :, : rows.size(1)] = rows.mT
    return table

"""Many-body features: symmetric products of a node's features with themselves, as in MACE."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from e3nn import o3
from torch import Tensor, nn

from protgraph.data.fields import FieldSpec
from protgraph.errors import CheckpointError, OptionError, WiringError
from protgraph.nn.base import GraphLayer
from protgraph.nn.layers.irreps import IrrepsLinear
from protgraph.nn.polynomial import bombieri, count, equivariant_polynomials, monomials, ordered

__all__ = ["ProductBasis"]


class ProductBasis(GraphLayer):
    """``h_c ← Linear( Σ_ν Σ_η w_ηc B^ν_η(A_c) )``: equivariant polynomials B of degree ν ≤ correlation, per channel c.

    Where A_i sums over the neighbours of i, as ``tfn`` does, a product of ν of them is a sum over all ν-tuples of
    neighbours: body order ν + 1 at the cost of pairs.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        ``h`` with one multiplicity for all irreps, ``"32x0e+32x1o"``.
    irreps : str
        Of the output. "": as of ``h``.
    correlation : int
        Largest degree ν.

    Notes
    -----
    Reads ``h`` (N, irreps). Writes ``h`` (N, irreps). B is a basis of the polynomials that turn with the protein (see
    :func:`~protgraph.nn.polynomial.equivariant_polynomials`), evaluated by Horner's rule on monomials of degree < ν:
    ``Σ_d x_d P_d``, with P_d one matrix product a channel.

    Deviations from the paper: weights w are the same for all residue types, as in geometric-gnn-dojo (the type enters
    through h); B leaves out what is linearly dependent in the paper's generalised Clebsch–Gordan basis.

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

    def __init__(self, fields: Mapping[str, FieldSpec], *, irreps: str = "", correlation: int = 3) -> None:
        super().__init__(fields)
        self.irreps_in, self.correlation = fields["h"].o3, correlation
        self.irreps_out = o3.Irreps(irreps or str(self.irreps_in)).simplify()
        channels = {mul for mul, _ in self.irreps_in}
        if len(channels) != 1:
            raise WiringError(f"product_basis reads one multiplicity of all irreps, not {self.irreps_in}")
        self.channels = channels.pop()
        self._dim = self.irreps_in.dim // self.channels
        if correlation < 1:
            raise OptionError(f"product_basis: correlation={correlation} is less than 1")
        one, wanted = _single(self.irreps_in), _single(self.irreps_out)
        tables = [equivariant_polynomials(one, degree, wanted) for degree in range(1, correlation + 1)]
        for _, ir in self.irreps_out:
            if not any(len(table[str(ir)]) for table in tables):
                raise WiringError(f"product_basis makes no {ir} out of {self.irreps_in} with correlation={correlation}")
        # Neither parameters nor buffers: a round trip through float32 must not blunt them.
        self._exact = self._basis = [[table[str(ir)] for _, ir in self.irreps_out] for table in tables]
        self.weights = nn.ParameterDict(
            {
                f"{n + 1}_{o}": torch.randn(len(b), self.channels)
                / math.sqrt(len(b) * math.factorial(n + 1) * correlation)
                for n, table in enumerate(self._basis)
                for o, b in enumerate(table)
                if len(b)
            }
        )
        between = FieldSpec("h", "node", "+".join(f"{self.channels}x{ir}" for _, ir in self.irreps_out))
        self.linear = IrrepsLinear({"h": between}, irreps=str(self.irreps_out))
        self.declare(h=str(self.irreps_out))

    @classmethod
    def from_reference(cls, state_dict: Mapping[str, Tensor], *, irreps_in: str, irreps: str) -> ProductBasis:
        """The layer of geometric-gnn-dojo's ``EquivariantProductBasisBlock``, in the dtype of its weights.

        Their redundant basis U is projected on ours. The skip connection is layer ``add``'s.
        """
        degrees = [int(k.rsplit(".", 1)[1]) for k in state_dict if ".weights." in k]
        if not degrees:
            raise CheckpointError(f"no symmetric contraction among {sorted(state_dict)[:4]}")
        layer = cls({"h": FieldSpec("h", "node", irreps_in)}, irreps=irreps, correlation=max(degrees))
        layer = layer.to(state_dict["linear.weight"].dtype)
        blocks = state_dict["linear.weight"].split([layer.channels * mul for mul, _ in layer.irreps_out])
        with torch.no_grad():
            for linear, block in zip(layer.linear.maps, blocks, strict=True):
                linear.weight.copy_(block.view(layer.channels, -1).t() / math.sqrt(layer.channels))
                if linear.bias is not None:
                    linear.bias.zero_()
            for name, weight in layer.weights.items():
                degree, o = map(int, name.split("_"))
                ir = layer.irreps_out[o].ir
                where = f"symmetric_contractions.contractions.{layer.channels}x{ir}."
                u = _collect(state_dict[f"{where}U_matrix_{degree}"].double(), ir.dim, layer._dim, degree)
                w = state_dict[f"{where}weights.{degree}"].double()  # (K, C)
                dual = layer._exact[degree - 1][o] * bombieri(layer._dim, degree) / ir.dim  # (R, P, 2l+1)
                weight.copy_(dual.flatten(1) @ u.flatten(0, 1) @ w)
        return layer

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``h`` (N, irreps)."""
        parts = f["h"].split([block.dim for block in self.irreps_in], 1)
        x = torch.cat([part.unflatten(1, (self.channels, -1)) for part in parts], 2).permute(1, 2, 0).contiguous()
        powers = [None, *monomials(x, self.correlation - 1)]  # (C, P, N) of degrees 0, 1, …
        coefficients = self._coefficients(x)
        out: Tensor | int = 0
        for d in range(self._dim):
            inner: Tensor | int = 0
            for lower, (power, table) in enumerate(zip(powers, coefficients, strict=True)):
                # The monomials of degree lower + 1 whose largest component is d.
                rows = table[:, :, count(d, lower + 1) : count(d + 1, lower + 1)]  # (C, M, P)
                inner = inner + (rows if power is None else rows @ power[:, : rows.size(2)])
            out = out + x[:, d : d + 1] * inner  # (C, M, N)
        parts = out.permute(2, 0, 1).split([ir.dim for _, ir in self.irreps_out], 2)  # (N, C, 2l+1) each
        return self.linear({"h": torch.cat([part.flatten(1) for part in parts], 1)})

    def _coefficients(self, x: Tensor) -> list[Tensor]:
        """``Σ_η w_ηc B_η`` for each degree: ``(C, M, P)``, M the components of all outputs, P monomials."""
        if self._basis[0][0].dtype != x.dtype or self._basis[0][0].device != x.device:
            self._basis = [[b.to(x) for b in table] for table in self._exact]
        made = []
        for n, table in enumerate(self._basis):
            blocks = [
                torch.einsum("rc,rpm->cmp", self.weights[f"{n + 1}_{o}"], b)
                if len(b)
                else x.new_zeros(self.channels, b.size(2), b.size(1))
                for o, b in enumerate(table)
            ]
            made.append(torch.cat(blocks, 1))
        return made


def _single(irreps: o3.Irreps) -> str:
    return "+".join(str(ir) for _, ir in irreps)


def _collect(u: Tensor, dim: int, variables: int, degree: int) -> Tensor:
    """Coefficients of each monomial, ``(P, 2l+1, K)``, of a tensor over tuples of variables ``(2l+1, D, …, D, K)``."""
    u = u.reshape(dim, variables**degree, -1).transpose(0, 1)  # (Dᵈ, 2l+1, K)
    tuples = torch.cartesian_prod(*[torch.arange(variables)] * degree).view(-1, degree).sort(1).values
    place = {m: k for k, m in enumerate(ordered(variables, degree))}
    index = torch.tensor([place[tuple(m)] for m in tuples.tolist()])
    return u.new_zeros(len(place), *u.shape[1:]).index_add_(0, index, u)

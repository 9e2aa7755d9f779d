"""Equivariant polynomials of a feature vector: bases of the symmetric powers of a representation.

Monomials of degree d in the D components of x are ordered by their largest component. Those of components 0 … c only
are the first ``num_monomials(c + 1, d)``; x_c times the first ``num_monomials(c + 1, d - 1)`` monomials of degree d − 1
are those with largest component c. A polynomial of degree d is therefore ``Σ_c x_c P_c`` with P_c of degree d − 1.

Not dense contractions of e3nn's coefficients, as in MACE: as layer ``product_basis`` they take 8.9× the time forward
and backward (e3nn 0.6.0, one thread, 128x0e+128x1o, 2026-11-22).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import torch
from e3nn import o3
from torch import Tensor

__all__ = ["bombieri_weights", "equivariant_polynomials", "monomial_variables", "monomials", "num_monomials"]

# Residual norm below which a polynomial is linearly dependent; independent ones are of order 1.
_DEPENDENT = 1e-6


def num_monomials(variables: int, degree: int) -> int:
    """Return the number of monomials of a degree."""
    return math.comb(variables + degree - 1, degree) if variables else 0


def monomials(x: Tensor, degree: int) -> list[Tensor]:
    """Compute all monomials of degrees 1 … degree, ``(C, D, N)`` to one ``(C, num_monomials(D, d), N)`` each."""
    powers = [x] if degree else []
    for d in range(2, degree + 1):
        last = powers[-1]
        powers.append(
            torch.cat([x[:, c : c + 1] * last[:, : num_monomials(c + 1, d - 1)] for c in range(x.size(1))], 1)
        )
    return powers


@lru_cache(maxsize=64)
def equivariant_polynomials(irreps: str, degree: int, wanted: str) -> dict[str, Tensor]:
    """Compute a basis of the equivariant polynomials of one degree for each output irrep.

    Parameters
    ----------
    irreps : str
        Irreps of x, one channel per block, e.g. ``"0e+1o+2e"``.
    degree : int
        Degree of the polynomials.
    wanted : str
        Output irreps, e.g. ``"0e+1o"``.

    Returns
    -------
    dict of str to Tensor
        ``(R, num_monomials(D, degree), 2l+1)`` float64 coefficients per irrep, orthogonal in Bombieri's inner product,
        which rotations preserve, each with mean square norm 1 per component. R may be 0.

    Notes
    -----
    Couples a basis of degree − 1 with x by Wigner 3j symbols and keeps what is linearly independent, in this order.
    Every machine finds the same basis, so saved weights keep their meaning.

    Examples
    --------
    >>> equivariant_polynomials("0e+1o", 2, "0e")["0e"].shape  # s² and |v|² in 4 variables
    torch.Size([2, 10, 1])
    """
    x = o3.Irreps(irreps)
    keep = o3.Irreps(wanted)
    size = num_monomials(x.dim, degree)
    if degree == 1:
        return _linear(x, keep)
    lower = _factors(keep, x)
    table = equivariant_polynomials(irreps, degree - 1, "+".join(lower))
    monomials, weight = _places(x.dim, degree), bombieri_weights(x.dim, degree)
    out = {}
    for _, ir in keep:
        basis: list[Tensor] = []
        for name in lower:
            for (_, b), where in zip(x, x.slices(), strict=True):
                if ir not in o3.Irrep(name) * b:
                    continue
                w3j = o3.wigner_3j(o3.Irrep(name).l, b.l, ir.l, dtype=torch.float64)
                for polynomial in table[name]:
                    terms = torch.einsum("pi,ijk->pjk", polynomial, w3j).flatten(0, 1)  # (lower · (2l_b+1), 2l+1)
                    raised = torch.zeros(size, ir.dim, dtype=torch.float64)
                    _add_independent(basis, raised.index_add_(0, monomials[:, where].flatten(), terms), weight)
        out[str(ir)] = torch.stack(basis) if basis else _none(str(ir), size)
    return out


def _linear(x: o3.Irreps, wanted: o3.Irreps) -> dict[str, Tensor]:
    """Return the basis of degree 1: the blocks of x."""
    blocks: dict[str, list[Tensor]] = {str(ir): [] for _, ir in wanted}
    for (_, ir), columns in zip(x, x.slices(), strict=True):
        if str(ir) in blocks:
            blocks[str(ir)].append(torch.eye(x.dim, dtype=torch.float64)[:, columns])
    return {ir: torch.stack(basis) if basis else _none(ir, x.dim) for ir, basis in blocks.items()}


def _factors(wanted: o3.Irreps, x: o3.Irreps) -> list[str]:
    """Return the irreps whose product with an irrep of x may have a wanted irrep, sorted."""
    factors = set()
    for _, output in wanted:
        for _, factor in x:
            factors |= {str(other) for other in output * factor}
    return sorted(factors)


def _none(ir: str, size: int) -> Tensor:
    return torch.zeros(0, size, o3.Irrep(ir).dim, dtype=torch.float64)


def _add_independent(basis: list[Tensor], new: Tensor, weight: Tensor) -> None:
    """Gram–Schmidt: append the part of ``new`` that is orthogonal to the basis, if above rounding error."""
    before = (weight * new.square()).sum().sqrt()
    for _ in range(2):  # twice is enough (Kahan)
        for old in basis:
            new = new - old * (weight * old * new).sum() / new.size(1)
    after = (weight * new.square()).sum().sqrt()
    if after > _DEPENDENT * max(before.item(), _DEPENDENT):
        basis.append(new * math.sqrt(new.size(1)) / after)


def monomial_variables(variables: int, degree: int) -> list[tuple[int, ...]]:
    """Return every monomial as its sorted variables, in the order of :func:`monomials`."""
    return sorted(combinations_with_replacement(range(variables), degree), key=lambda m: m[::-1])


def _places(variables: int, degree: int) -> Tensor:
    """Return ``(num_monomials(D, degree − 1), D)``: the index of monomial p times x_c within the degree."""
    index = {m: k for k, m in enumerate(monomial_variables(variables, degree))}
    lower = monomial_variables(variables, degree - 1)
    return torch.tensor([[index[tuple(sorted((*m, c)))] for c in range(variables)] for m in lower])


def bombieri_weights(variables: int, degree: int) -> Tensor:
    """Compute Bombieri's metric, 1 / multiplicity of each monomial in the expanded power: ``(P, 1)``."""
    orders = [
        math.factorial(degree) / math.prod(math.factorial(m.count(v)) for v in set(m))
        for m in monomial_variables(variables, degree)
    ]
    return 1 / torch.tensor(orders, dtype=torch.float64)[:, None]

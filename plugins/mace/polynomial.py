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
    if degree == 0:
        return []
    powers = [x]
    for d in range(2, degree + 1):
        # x_c times the monomials of the components 0 … c
        products = []
        for c in range(x.size(1)):
            lower = powers[-1][:, : num_monomials(c + 1, d - 1)]
            products.append(x[:, c : c + 1] * lower)
        powers.append(torch.cat(products, 1))
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
    monomials = _places(x.dim, degree)
    weight = bombieri_weights(x.dim, degree)
    out = {}
    for _, ir in keep:
        basis: list[Tensor] = []
        for name in lower:
            factor = o3.Irrep(name)
            for (_, block), columns in zip(x, x.slices(), strict=True):
                if ir not in factor * block:
                    continue
                # Couple each polynomial of degree − 1 with a block of x.
                w3j = o3.wigner_3j(factor.l, block.l, ir.l, dtype=torch.float64)
                for polynomial in table[name]:
                    terms = torch.einsum("pi,ijk->pjk", polynomial, w3j).flatten(0, 1)  # (lower · (2l_b+1), 2l+1)
                    raised = torch.zeros(size, ir.dim, dtype=torch.float64)
                    raised.index_add_(0, monomials[:, columns].flatten(), terms)
                    independent = _independent_part(raised, basis, weight)
                    if independent is not None:
                        basis.append(independent)
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


def _independent_part(polynomial: Tensor, basis: list[Tensor], weight: Tensor) -> Tensor | None:
    """Gram–Schmidt: return the part that is orthogonal to the basis, normalized; None if it is rounding error."""
    before = (weight * polynomial.square()).sum().sqrt()
    components = polynomial.size(1)
    for _ in range(2):  # twice is enough (Kahan)
        for member in basis:
            product = (weight * member * polynomial).sum()
            polynomial = polynomial - member * product / components
    after = (weight * polynomial.square()).sum().sqrt()
    if after <= _DEPENDENT * max(before.item(), _DEPENDENT):
        return None
    return polynomial * math.sqrt(components) / after


def monomial_variables(variables: int, degree: int) -> list[tuple[int, ...]]:
    """Return every monomial as its sorted variables, in the order of :func:`monomials`."""
    return sorted(combinations_with_replacement(range(variables), degree), key=lambda m: m[::-1])


def _places(variables: int, degree: int) -> Tensor:
    """Return ``(num_monomials(D, degree − 1), D)``: the index of monomial p times x_c within the degree."""
    index = {monomial: number for number, monomial in enumerate(monomial_variables(variables, degree))}
    rows = []
    for lower in monomial_variables(variables, degree - 1):
        products = [tuple(sorted((*lower, c))) for c in range(variables)]
        rows.append([index[product] for product in products])
    return torch.tensor(rows)


def bombieri_weights(variables: int, degree: int) -> Tensor:
    """Compute Bombieri's metric, 1 / multiplicity of each monomial in the expanded power: ``(P, 1)``."""
    multiplicities = []
    for monomial in monomial_variables(variables, degree):
        equal_orders = math.prod(math.factorial(monomial.count(variable)) for variable in set(monomial))
        multiplicities.append(math.factorial(degree) / equal_orders)
    return 1 / torch.tensor(multiplicities, dtype=torch.float64)[:, None]

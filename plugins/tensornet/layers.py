"""Layers of TensorNet: embedding and interaction of 3 × 3 tensors (Simeon & De Fabritiis 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from torch import Tensor, nn
from torch.nn.functional import silu

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import WiringError
from protgraph.ops import ExponentialBasis, cosine_cutoff, polar

__all__ = ["TensorNet", "TensorNetEmbedding", "component_matrices"]
ENTRY_POINTS = {"protgraph.layers": {"tensornet": "TensorNet", "tensornet_embed": "TensorNetEmbedding"}}

# Components of the parts of degree 0, 1 and 2.
PARTS = (1, 3, 5)


def component_matrices() -> Tensor:
    """Compute orthonormal matrices of the nine components: 1 of I, x, y, z of A, and 5 of S in e3nn's order.

    Returns
    -------
    Tensor
        ``(9, 3, 3)`` float64.
    """
    root = math.sqrt(0.5)
    matrices = torch.zeros(9, 3, 3, dtype=torch.float64)
    matrices[0] = torch.eye(3, dtype=torch.float64) / math.sqrt(3)
    antisymmetric = {1: (2, 1), 2: (0, 2), 3: (1, 0)}
    for component, (row, column) in antisymmetric.items():
        matrices[component, row, column] = root
        matrices[component, column, row] = -root
    symmetric = {4: (0, 2), 5: (0, 1), 7: (1, 2)}
    for component, (row, column) in symmetric.items():
        matrices[component, row, column] = root
        matrices[component, column, row] = root
    diagonal = {6: (-1, 2, -1), 8: (-1, 0, 1)}
    for component, entries in diagonal.items():
        unscaled = torch.tensor(entries, dtype=torch.float64)
        matrices[component] = torch.diag(unscaled / unscaled.norm())
    return matrices


class ComponentMatrices(nn.Module):
    """:func:`component_matrices` with the type and on the device of a tensor."""

    def __init__(self) -> None:
        super().__init__()
        # Neither parameter nor buffer, so that conversions of the module to float32 lose no precision.
        self._exact = self._matrices = component_matrices()

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(9, 3, 3)`` as x, of any shape."""
        if self._matrices.dtype != x.dtype or self._matrices.device != x.device:
            self._matrices = self._exact.to(x)
        return self._matrices


class PartsLinear(nn.Module):
    """Linear maps of the channels of I, A and S, without bias."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in PARTS)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the maps to ``(N, 9, C)``."""
        isotropic, antisymmetric, symmetric = x.split(PARTS, 1)
        of_isotropic, of_antisymmetric, of_symmetric = self.maps
        mapped = [of_isotropic(isotropic), of_antisymmetric(antisymmetric), of_symmetric(symmetric)]
        return torch.cat(mapped, 1)


class TensorNetEmbedding(GraphLayer):
    """First tensors of nodes, from the types and directions of neighbors.

    A 3 × 3 matrix holds a scalar, a vector and a quadrupole, so that products of features are products of matrices.
    ``X_i = Σ_j u(d_ij) Z_ij ∘ (f^I_ij 1 + f^A_ij A(r_ij) + f^S_ij S(r_ij))`` with ``Z_ij = W [h_i, h_j] + b`` and f
    linear maps of functions of the distance; A is the antisymmetric matrix of a vector, S its symmetric traceless one.
    Then linear maps of the channels of each part, scaled by a perceptron of ``norm(|X_i|²)``.

    Parameters
    ----------
    dim : int
        Number of tensors, C.
    basis : int
        Number of functions of the distance.
    cutoff : float
        Distance at which u vanishes, Å.

    Notes
    -----
    Reads: ``h`` ``(N, D)`` scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å. Optional: ``edge_attr`` ``(E, F)`` scalars,
    which f reads besides the functions of the distance.
    Writes: ``h`` ``(N, 9 C)``, ``C x 0e + C x 1o + C x 2e``: I, A and S.

    A is a polar vector: products of tensors are symmetrized such that reflections change its sign only.

    References
    ----------
    Simeon & De Fabritiis 2023, arXiv:2306.06482, eqs. 5–9.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 32,
        basis: Annotated[int, Ge(2)] = 32,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.matrices = ComponentMatrices()
        self.radial = ExponentialBasis(basis, cutoff)
        self.target = nn.Linear(width, dim)
        self.source = nn.Linear(width, dim, bias=False)
        self.filter = nn.Linear(basis + self.scalar_width("edge_attr"), 3 * dim)
        self.norm = nn.LayerNorm(dim)
        self.linear = PartsLinear(dim)
        self.scale = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, 3 * dim), nn.SiLU())
        self.declare(h=f"{dim}x0e+{dim}x1o+{dim}x2e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, 9 C)``."""
        edges = f["edges"]
        distance, direction = polar(f["edge_vec"])
        e = self.radial(distance)
        if "edge_attr" in self.fields:
            e = torch.cat([e, f["edge_attr"]], 1)

        # Factors of I, A and S of each edge, (E, 3, C).
        types = edges.pair_sum(self.target(f["h"]), self.source(f["h"]))  # (E, C)
        weight = cosine_cutoff(distance, self.radial.cutoff) * self.filter(e)
        weight = weight.unflatten(1, (3, -1)) * types.unsqueeze(1)

        # 1, A(r) and S(r) = r rᵀ - |r|² / 3, in components.
        isotropic = torch.full_like(distance, math.sqrt(3))
        antisymmetric = math.sqrt(2) * direction
        symmetric = torch.einsum("ei,ej,mij->em", direction, direction, self.matrices(direction)[4:])
        tensors = torch.cat([isotropic, antisymmetric, symmetric], 1).unsqueeze(2)  # (E, 9, 1)
        x = edges.sum(_scale_parts(tensors, weight))  # (N, 9, C)

        squared_norms = x.square().sum(1)
        scale = self.scale(self.norm(squared_norms)).unflatten(1, (-1, 3)).mT  # (N, 3, C)
        return {"h": _pack(_scale_parts(self.linear(x), scale))}


class TensorNet(GraphLayer):
    """Interaction of tensors by matrix products with the sums of the neighbors (Simeon & De Fabritiis 2023).

    Products of matrices mix scalars, vectors and quadrupoles without a tensor product of irreps.
    ``X ← X / (|X|² + 1)``, ``Y = W X``, ``M_i = Σ_j u(d_ij) f(e_ij) ∘ Y_j`` with a perceptron f per part,
    ``P = (Y M + M Y)``, ``D = W' P / (|P|² + 1)``, ``X ← X + D + D²``.

    Parameters
    ----------
    basis : int
        Number of functions of the distance.
    cutoff : float
        Distance at which u vanishes, Å.

    Notes
    -----
    Reads: ``h`` ``(N, 9 C)``, ``C x 0e + C x 1o + C x 2e``; ``edges``; ``edge_vec`` ``(E, 3)``, Å. Optional:
    ``edge_attr`` ``(E, F)`` scalars, which f reads besides the functions of the distance.
    Writes: ``h`` ``(N, 9 C)``, of the same irreps.

    W and W' map the channels of each of the parts I, A and S. Equivariant to O(3), with A as a polar vector. Tensors
    are kept as nine components; the matrices of nodes are formed for the products only.

    References
    ----------
    Simeon & De Fabritiis 2023, arXiv:2306.06482, eqs. 10–13; residual and normalization as in TorchMD-NET.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(inputs={"h": "8x0e+8x1o+8x2e"})

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        basis: Annotated[int, Ge(2)] = 32,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        blocks = fields["h"].o3.simplify()
        dim = blocks[0].mul if len(blocks) else 0
        if str(blocks) != f"{dim}x0e+{dim}x1o+{dim}x2e":
            raise WiringError(
                f"tensornet reads h of {fields['h'].irreps}. It needs as many of 0e, 1o and 2e, in this order, e.g. "
                "32x0e+32x1o+32x2e. Add a layer 'tensornet_embed' or 'irreps_linear' before."
            )
        self.dim = dim
        self.matrices = ComponentMatrices()
        self.radial = ExponentialBasis(basis, cutoff)
        widths = [basis + self.scalar_width("edge_attr"), dim, 2 * dim, 3 * dim]
        self.filter = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))
        self.linear = PartsLinear(dim)
        self.last = PartsLinear(dim)
        self.declare(h=str(blocks))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, 9 C)``."""
        edges = f["edges"]
        x = _normalize(_unpack(f["h"], self.dim))  # (N, 9, C)

        # Sum of the neighbors.
        y = self.linear(x)
        messages = _scale_parts(edges.source(y), self._weights(f))
        neighbors = edges.sum(messages)

        # Symmetrized product of the matrices of each node and its neighbors.
        of_node = self._matrices(y)
        of_neighbors = self._matrices(neighbors)
        product = self._components(of_node @ of_neighbors + of_neighbors @ of_node)

        change = self.last(_normalize(product))
        matrices = self._matrices(change)
        square = self._components(matrices @ matrices)
        return {"h": _pack(x + change + square)}

    def _weights(self, f: Mapping[str, Any]) -> Tensor:
        """Compute the factors of I, A and S of each edge, ``(E, 3, C)``."""
        distance, _ = polar(f["edge_vec"])
        weight = self.radial(distance)
        if "edge_attr" in self.fields:
            weight = torch.cat([weight, f["edge_attr"]], 1)
        for linear in self.filter:
            weight = silu(linear(weight))
        weight = cosine_cutoff(distance, self.radial.cutoff) * weight
        return weight.unflatten(1, (-1, 3)).mT

    def _matrices(self, x: Tensor) -> Tensor:
        """Convert nine components, ``(N, 9, C)``, to matrices, ``(N, C, 3, 3)``."""
        return torch.einsum("nmc,mij->ncij", x, self.matrices(x))

    def _components(self, x: Tensor) -> Tensor:
        """Convert matrices, ``(N, C, 3, 3)``, to nine components, ``(N, 9, C)``."""
        return torch.einsum("ncij,mij->nmc", x, self.matrices(x))


def _normalize(x: Tensor) -> Tensor:
    """Compute ``X / (|X|² + 1)``, ``(N, 9, C)``."""
    return x / (x.square().sum(1, keepdim=True) + 1)


def _scale_parts(x: Tensor, factors: Tensor) -> Tensor:
    """Multiply I, A and S of ``(N, 9, C)`` by their factors ``(N, 3, C)``."""
    isotropic, antisymmetric, symmetric = x.split(PARTS, 1)
    of_isotropic, of_antisymmetric, of_symmetric = factors.split(1, 1)
    scaled = [isotropic * of_isotropic, antisymmetric * of_antisymmetric, symmetric * of_symmetric]
    return torch.cat(scaled, 1)


def _unpack(h: Tensor, dim: int) -> Tensor:
    """Convert the flat layout of e3nn to ``(N, 9, C)``."""
    parts = h.split([dim * size for size in PARTS], 1)
    return torch.cat([part.unflatten(1, (dim, -1)).mT for part in parts], 1)


def _pack(x: Tensor) -> Tensor:
    """Convert ``(N, 9, C)`` to the flat layout of e3nn."""
    return torch.cat([part.mT.flatten(1) for part in x.split(PARTS, 1)], 1)

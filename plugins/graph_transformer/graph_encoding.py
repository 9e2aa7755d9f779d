"""Positional encodings of the graph: random-walk return probabilities and Laplacian eigenvectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from protgraph.data.graph import Conformity, FieldSpec, register_field
from protgraph.featurize import TensorFeaturizer
from protgraph.ops import Edges, Proteins

__all__ = ["LaplacianEncoding", "RandomWalkEncoding"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "laplacian_encoding": "LaplacianEncoding",
        "random_walk_encoding": "RandomWalkEncoding",
    },
}

register_field(
    FieldSpec("random_walk", "node", "16x0e", doc="probability that a random walk returns after 2, 3, … steps")
)
register_field(FieldSpec("laplacian", "node", "8x0e", doc="squared Laplacian eigenvectors of the lowest frequencies"))

# Powers and eigenvectors of a sparse matrix are dense. They are computed once, when the graph is prepared.
_DENSE = Conformity(expected_failures={"memory": "dense matrices of each protein, once per graph"})


class RandomWalkEncoding(TensorFeaturizer):
    """``(P^k)_ii`` for k = 2 … steps + 1, with ``P_ij = 1 / degree_i`` for each edge j → i.

    Probability that a random walk from node i is at i again after k steps. (After one step it never is.)

    Parameters
    ----------
    steps : int
        Number of columns.

    Reads
    -----
    edges : the edges j → i
    proteins : the partition of nodes into proteins

    Writes
    ------
    random_walk : (N, steps), 0e, dimensionless, torch's default floating type
        0 for a node without neighbors. On a directed graph (``knn``) the walk goes against the edge direction.

    Notes
    -----
    Unlike eigenvectors, it is free of arbitrary signs and bases. Computed with about ``steps / 2`` dense products of
    L × L matrices per protein.

    References
    ----------
    Dwivedi et al. 2022, arXiv:2110.07875, eq. 4 (RWPE).
    """

    reads: ClassVar[tuple[str, ...]] = ("edges", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("random_walk",)
    conformity = _DENSE

    def __init__(self, *, steps: Annotated[int, Ge(1)] = 16) -> None:
        super().__init__()
        self.steps = steps
        self.declare(random_walk=f"{steps}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        encodings = [self._returns(adjacent) for adjacent in _adjacency(f["edges"], f["proteins"])]
        return {"random_walk": torch.cat(encodings).to(torch.get_default_dtype())}

    def _returns(self, adjacent: Tensor) -> Tensor:
        """Return ``(L, steps)`` for one protein; the diagonal of P^(a + b) is the row sum of P^a ∘ (P^b)ᵀ."""
        walk = adjacent / adjacent.sum(1, keepdim=True).clamp(min=1)
        power = walk
        columns: list[Tensor] = []
        while len(columns) < self.steps:
            columns.append((power * power.T).sum(1))  # k = 2 a
            after = power @ walk
            columns.append((after * power.T).sum(1))  # k = 2 a + 1
            power = after
        return torch.stack(columns[: self.steps], 1)


class LaplacianEncoding(TensorFeaturizer):
    """``L Σ_n exp(-((λ_n - λ_m) / σ)²) u_n(i)²`` for m = 1 … size; independent of signs and bases.

    ``λ_0 ≤ λ_1 ≤ …`` and ``u_n`` are eigenvalues and eigenvectors of the normalized Laplacian
    ``1 - D^(-1/2) A D^(-1/2)`` of a protein of L nodes, A symmetrized; λ_0 = 0 is omitted.

    Parameters
    ----------
    size : int
        Number of columns.
    width : float
        σ: eigenvalues closer than this are treated as equal.

    Reads
    -----
    edges : the edges j → i
    proteins : the partition of nodes into proteins

    Writes
    ------
    laplacian : (N, size), 0e, dimensionless, torch's default floating type
        About 1 for an evenly spread eigenvector; columns beyond L − 1 are 0.

    Notes
    -----
    The sign of an eigenvector and the basis of a degenerate eigenspace are arbitrary and depend on the solver. The sum
    of squares over near-equal eigenvalues depends on neither and is continuous where eigenvalues cross. The relative
    phase of nodes is lost. Costs one eigendecomposition per protein and batch, of order L³ operations.

    References
    ----------
    Belkin & Niyogi 2003, doi:10.1162/089976603321780317; Dwivedi & Bresson 2020, arXiv:2012.09699 (as node features);
    invariance as in Lim et al. 2022, arXiv:2202.13013, by the diagonal of the projections.
    """

    reads: ClassVar[tuple[str, ...]] = ("edges", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("laplacian",)
    conformity = _DENSE

    def __init__(self, *, size: Annotated[int, Ge(1)] = 8, width: Annotated[float, Gt(0)] = 0.01) -> None:
        super().__init__()
        self.size, self.width = size, width
        self.declare(laplacian=f"{size}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        encodings = [self._frequencies(adjacent) for adjacent in _adjacency(f["edges"], f["proteins"])]
        return {"laplacian": torch.cat(encodings).to(torch.get_default_dtype())}

    def _frequencies(self, adjacent: Tensor) -> Tensor:
        """Return ``(L, size)`` for one protein."""
        adjacent = torch.maximum(adjacent, adjacent.T)
        scale = adjacent.sum(1).clamp(min=1).rsqrt()
        one = torch.eye(len(adjacent), dtype=adjacent.dtype, device=adjacent.device)
        value, vector = torch.linalg.eigh(one - scale[:, None] * adjacent * scale)
        near = torch.exp(-((value[:, None] - value[1 : self.size + 1]) / self.width).square())  # (L, ≤ size)
        encodings = len(value) * vector.square() @ near
        return torch.nn.functional.pad(encodings, (0, self.size - encodings.size(1)))


def _adjacency(edges: Edges, proteins: Proteins) -> Iterator[Tensor]:
    """Yield ``(L, L)`` float64 for each protein; row i is 1 at the sources j of the edges j → i."""
    position = torch.arange(proteins.batch.numel(), device=proteins.batch.device)
    position = position - proteins.ptr[:-1].index_select(0, proteins.batch)
    longest = max(proteins.sizes, default=0)
    code = (edges.target(proteins.batch) * longest + edges.target(position)) * longest + edges.source(position)
    flat = torch.zeros(len(proteins) * longest**2, dtype=torch.float64, device=position.device)
    flat.index_fill_(0, code, 1.0)
    for one, size in zip(flat.view(-1, longest, longest), proteins.sizes, strict=True):
        yield one[:size, :size]

"""Where in the graph a node is, by the graph alone: returns of a random walk, low frequencies of the Laplacian."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import TensorFeaturizer
from protgraph.ops.edges import Edges, Proteins

__all__ = ["LaplacianEncoding", "RandomWalkEncoding"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "laplacian_encoding": "LaplacianEncoding",
        "random_walk_encoding": "RandomWalkEncoding",
    },
}

register_field(
    FieldSpec("random_walk", "node", "16x0e", doc="probability that a random walk is back after 2, 3, … steps")
)
register_field(FieldSpec("laplacian", "node", "8x0e", doc="weight of the node in the Laplacian's lowest frequencies"))


class RandomWalkEncoding(TensorFeaturizer):
    """``(P^k)_ii`` for k = 2 … steps + 1, with ``P_ij = 1 / degree_i`` for each edge j → i.

    The probability that a walk that starts at node i, and each time goes to one of the neighbors of where it is, is
    back at i after k steps. (After one step it never is.)

    Parameters
    ----------
    steps : int
        Columns.

    Reads
    -----
    edges : the edges j → i
    proteins : the partition of nodes into proteins

    Writes
    ------
    random_walk : (N, steps), 0e, dimensionless, torch's default floating type
        0 for a node without neighbors. On a directed graph (``knn``) the walk goes against the edges.

    Notes
    -----
    It has no sign and no basis to choose, unlike eigenvectors. By dense products, some ``steps / 2`` of L × L matrices
    a protein.

    References
    ----------
    Dwivedi et al. 2022, arXiv:2110.07875, eq. 4 (RWPE).
    """

    reads: ClassVar[tuple[str, ...]] = ("edges", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("random_walk",)

    def __init__(self, *, steps: int = 16) -> None:
        super().__init__()
        if not (isinstance(steps, int) and steps >= 1):
            raise OptionError(f"random_walk_encoding takes a whole number of steps of at least 1, got {steps!r}")
        self.steps = steps
        self.declare(random_walk=f"{steps}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        made = [self._returns(adjacent) for adjacent in _adjacency(f["edges"], f["proteins"])]
        return {"random_walk": torch.cat(made).to(torch.get_default_dtype())}

    def _returns(self, adjacent: Tensor) -> Tensor:
        """``(L, steps)`` of one protein: the diagonal of P^(a + b) is the row sum of P^a times the transpose of P^b."""
        walk = adjacent / adjacent.sum(1, keepdim=True).clamp(min=1)
        power, columns = walk, []
        while len(columns) < self.steps:
            columns.append((power * power.T).sum(1))  # k = 2 a
            after = power @ walk
            columns.append((after * power.T).sum(1))  # k = 2 a + 1
            power = after
        return torch.stack(columns[: self.steps], 1)


class LaplacianEncoding(TensorFeaturizer):
    """``L Σ_n exp(-((λ_n - λ_m) / σ)²) u_n(i)²`` for m = 1 … size: eigenvectors without their signs and bases.

    ``λ_0 ≤ λ_1 ≤ …`` and ``u_n`` are eigenvalues and eigenvectors of the normalized Laplacian
    ``1 - D^(-1/2) A D^(-1/2)`` of a protein of L nodes, A made symmetric; λ_0, which is 0, is left out.

    Parameters
    ----------
    size : int
        Columns.
    width : float
        σ: eigenvalues nearer than this count as one.

    Reads
    -----
    edges : the edges j → i
    proteins : the partition of nodes into proteins

    Writes
    ------
    laplacian : (N, size), 0e, dimensionless, torch's default floating type
        Some 1 where a frequency is spread evenly; columns beyond L − 1 are 0.

    Notes
    -----
    An eigenvector's sign is arbitrary, and the basis of several with one eigenvalue is: both would make the encoding of
    a protein an accident of the solver. The sum over near-equal eigenvalues of squares depends on neither, and is
    continuous where two meet. What is lost is which nodes swing together. It costs an eigendecomposition a protein and
    batch, of the order of L³ operations.

    References
    ----------
    Belkin & Niyogi 2003, doi:10.1162/089976603321780317; Dwivedi & Bresson 2020, arXiv:2012.09699 (as node features);
    invariance as in Lim et al. 2022, arXiv:2202.13013, by the diagonal of the projections.
    """

    reads: ClassVar[tuple[str, ...]] = ("edges", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("laplacian",)

    def __init__(self, *, size: int = 8, width: float = 0.01) -> None:
        super().__init__()
        if not (isinstance(size, int) and size >= 1):
            raise OptionError(f"laplacian_encoding takes a whole number size of at least 1, got {size!r}")
        if not (isinstance(width, int | float) and width > 0):
            raise OptionError(f"laplacian_encoding takes a width above 0, got {width!r}")
        self.size, self.width = size, width
        self.declare(laplacian=f"{size}x0e")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        made = [self._frequencies(adjacent) for adjacent in _adjacency(f["edges"], f["proteins"])]
        return {"laplacian": torch.cat(made).to(torch.get_default_dtype())}

    def _frequencies(self, adjacent: Tensor) -> Tensor:
        """``(L, size)`` of one protein."""
        adjacent = torch.maximum(adjacent, adjacent.T)
        scale = adjacent.sum(1).clamp(min=1).rsqrt()
        one = torch.eye(len(adjacent), dtype=adjacent.dtype, device=adjacent.device)
        value, vector = torch.linalg.eigh(one - scale[:, None] * adjacent * scale)
        near = torch.exp(-((value[:, None] - value[1 : self.size + 1]) / self.width).square())  # (L, ≤ size)
        made = len(value) * vector.square() @ near
        return torch.nn.functional.pad(made, (0, self.size - made.size(1)))


def _adjacency(edges: Edges, proteins: Proteins) -> Iterator[Tensor]:
    """``(L, L)`` float64 of each protein, row i has 1 at the sources j of the edges j → i."""
    place = torch.arange(proteins.batch.numel(), device=proteins.batch.device)
    place = place - proteins.ptr[:-1].index_select(0, proteins.batch)
    longest = max(proteins.sizes, default=0)
    code = (edges.target(proteins.batch) * longest + edges.target(place)) * longest + edges.source(place)
    flat = torch.zeros(len(proteins) * longest**2, dtype=torch.float64, device=place.device)
    flat.index_fill_(0, code, 1.0)
    for one, size in zip(flat.view(-1, longest, longest), proteins.sizes, strict=True):
        yield one[:size, :size]

"""Layers of DimeNet and DimeNet++: messages of edges, interaction of adjacent edges, output of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from annotated_types import Ge, Gt
from protgraph_plugins.dimenet.basis import SphericalBasis
from torch import Tensor, nn
from torch.nn.functional import silu

from protgraph import Edges, FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.ops import BesselBasis, polar, unit_or_zero

__all__ = ["DimeNet", "DimeNetEmbedding", "DimeNetOutput", "DimeNetPlusPlus"]
ENTRY_POINTS = {
    "protgraph.layers": {
        "dimenet": "DimeNet",
        "dimenet_embed": "DimeNetEmbedding",
        "dimenet_output": "DimeNetOutput",
        "dimenet_pp": "DimeNetPlusPlus",
    }
}


class RadialBasis(nn.Module):
    """Bessel functions ``sqrt(2) sin(n π q) / q · u(q)`` of ``q = d / c``, with p = 6 (eqs. 7 and 8)."""

    def __init__(self, size: int, cutoff: float) -> None:
        super().__init__()
        self.cutoff = cutoff
        self.waves = BesselBasis(size, 1.0, envelope=6)

    def forward(self, vec: Tensor) -> Tensor:
        """Evaluate the basis: vectors ``(E, 3)``, Å, to ``(E, size)``."""
        distance, _ = polar(vec)
        return self.waves(distance / self.cutoff)


class ResidualBlock(nn.Module):
    """``x + silu(W₂ silu(W₁ x + b₁) + b₂)``."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.lin1 = nn.Linear(dim, dim)
        self.lin2 = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block to ``(E, C)``."""
        return x + silu(self.lin2(silu(self.lin1(x))))


class DimeNetEmbedding(GraphLayer):
    """Initial messages of edges, ``m_ji = σ(W [h_i, h_j, σ(W_e [e(d_ji), a_ji] + b_e)] + b)``.

    Parameters
    ----------
    dim : int
        Width of the messages.
    basis : int
        Number of Bessel functions e.
    cutoff : float
        Distance at which they vanish, Å.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å. Optional: ``edge_attr`` a ``(E, D)``.
    Writes: ``edge_h`` ``(E, dim)``, ``dim x 0e``.

    The maps of h_i and h_j are computed on nodes. σ is SiLU.

    References
    ----------
    Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, sec. 5 (embedding block).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("edge_h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        basis: Annotated[int, Ge(1)] = 6,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        self.radial = RadialBasis(basis, cutoff)
        self.edge = nn.Linear(basis + self.scalar_width("edge_attr"), dim)
        self.target = nn.Linear(self.scalar_width("h"), dim)
        self.source = nn.Linear(self.scalar_width("h"), dim, bias=False)
        self.of_edge = nn.Linear(dim, dim, bias=False)
        self.declare(edge_h=FieldSpec("edge_h", "edge", f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``edge_h (E, dim)`` from both nodes and the distance of each edge."""
        x = self.radial(f["edge_vec"])
        if "edge_attr" in self.fields:
            x = torch.cat([x, f["edge_attr"]], 1)
        edge = self.of_edge(silu(self.edge(x)))
        target = self.target(f["h"])
        source = self.source(f["h"])
        return {"edge_h": silu(f["edges"].pair_sum(target, source, edge))}


class Interaction(GraphLayer):
    """Base class of the interaction blocks of DimeNet and DimeNet++; the nodes of this layer are edges."""

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "node_vec")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, degrees: int, basis: int, cutoff: float, angle: str, after: int
    ) -> None:
        super().__init__(fields)
        dim = self.scalar_width("h")
        self.degrees = degrees
        self.basis = basis
        self.cutoff = float(cutoff)
        self.angle = angle
        #: Layers with the same bases share their values.
        self.key = f"spherical basis {degrees} {basis} {cutoff} {angle}"
        self.radial = RadialBasis(basis, cutoff)
        self.spherical = SphericalBasis(degrees, basis)
        self.lin_ji = nn.Linear(dim, dim)
        self.lin_kj = nn.Linear(dim, dim)
        self.before = ResidualBlock(dim)
        self.lin = nn.Linear(dim, dim)
        self.after = nn.Sequential(*(ResidualBlock(dim) for _ in range(after)))
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h``, the messages of edges ``(E, C)``, from those of adjacent edges."""
        x, pairs, vec = f["h"], f["edges"], f["node_vec"]
        radial, spherical, angular = pairs.cached(self.key, vec, lambda: self._bases(pairs, vec))

        # Σ_k Σ_l Y_l(α_kji) y_l,kj: a pair of edges has one number per degree, all else is computed on edges.
        y = self._factors(silu(self.lin_kj(x)), radial, spherical)  # (E, L, I)
        summed = pairs.gather_sum(y, angular).sum(1)  # (E, I)
        message = silu(self.lin_ji(x)) + self._directional(summed)
        h = self.before(message)
        return {"h": self.after(silu(self.lin(h)) + x)}

    def _bases(self, pairs: Edges, vec: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute ``(E, R)`` and ``(E, L, R)`` functions of distances, and ``(T, L)`` of angles."""
        distance, direction = polar(vec)
        first, second = pairs.source(direction), pairs.target(direction)  # of k → j and j → i
        if self.angle == "target":
            first = -unit_or_zero(pairs.source(vec) + pairs.target(vec))
        cosine = -(first * second).sum(1, keepdim=True)
        spherical = self.spherical.of_distance(distance / self.cutoff)
        return self.radial(vec), spherical, self.spherical.of_cosine(cosine)

    def _map_degrees(self, spherical: Tensor, linear: nn.Linear) -> Tensor:
        """Map the functions of each degree by its columns of the matrix, ``(E, L, R)`` to ``(E, L, B)``."""
        maps = linear.weight.unflatten(1, (self.degrees, self.basis))  # (B, L, R)
        return torch.einsum("elr,blr->elb", spherical, maps)

    @abstractmethod
    def _factors(self, x: Tensor, radial: Tensor, spherical: Tensor) -> Tensor:
        """Compute what is summed with Y_l, ``(E, L, I)``, from messages ``(E, C)`` and functions of their distances."""

    @abstractmethod
    def _directional(self, summed: Tensor) -> Tensor:
        """Map the sums over adjacent edges, ``(E, I)`` to ``(E, C)``."""


class DimeNet(Interaction):
    """Interaction of adjacent edges by a bilinear layer (Gasteiger et al. 2020).

    Messages of distances alone cannot tell apart structures that differ in their angles only; here each message reads
    the angles to the messages before it.
    ``d_ji = σ(W_ji m_ji) + Σ_k [a(d_kj, α_kji)ᵀ W_a] W_b (σ(W_kj m_kj) ∘ W_e e(d_kj))``, then a residual block, a
    skip connection ``σ(W d) + m`` and ``after`` residual blocks.

    Parameters
    ----------
    bilinear : int
        Width B of the map W_a of the spherical basis; W_b is ``(C, B, C)``.
    degrees : int
        Number L of degrees of the spherical basis.
    basis : int
        Number R of radial functions of each basis.
    cutoff : float
        Distance at which they vanish, Å.
    angle : {"source", "target"}
        α is the angle k, j, i at j, as in the paper, or the angle k, i, j at i, as in the authors' code.
    after : int
        Residual blocks after the skip connection.

    Notes
    -----
    The nodes of this layer are edges, ``component("dimenet", edges="line", reads={"h": "edge_h", "node_vec":
    "edge_vec"}, writes={"h": "edge_h"})`` after the featurizer ``line_graph``.
    Reads: ``h`` ``(E, C)`` scalars; ``edges``, pairs of edges; ``node_vec`` ``(E, 3)``, vectors of edges, Å.
    Writes: ``h`` ``(E, C)``, ``C x 0e``.

    A pair of edges has L numbers, shared by all layers. The products with them are sums of ``(E, L, C)``.
    Deviations: distances below 0.05 of the cutoff count as that in a; frequencies of e are not trained.

    References
    ----------
    Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, eqs. 4–8 and sec. 5 (interaction block).
    """

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        bilinear: int = 8,
        degrees: Annotated[int, Ge(1)] = 7,
        basis: Annotated[int, Ge(1)] = 6,
        cutoff: Annotated[float, Gt(0)] = 20.0,
        angle: Literal["source", "target"] = "source",
        after: int = 2,
    ) -> None:
        super().__init__(fields, degrees=degrees, basis=basis, cutoff=cutoff, angle=angle, after=after)
        dim = self.scalar_width("h")
        self.lin_radial = nn.Linear(basis, dim, bias=False)
        self.lin_spherical = nn.Linear(degrees * basis, bilinear, bias=False)
        self.bilinear = nn.Parameter(torch.randn(dim, bilinear, dim) * (2 / dim))

    def _factors(self, x: Tensor, radial: Tensor, spherical: Tensor) -> Tensor:
        x = x * self.lin_radial(radial)
        by_basis = torch.einsum("ibj,ej->ebi", self.bilinear, x)  # (E, B, C)
        return self._map_degrees(spherical, self.lin_spherical) @ by_basis

    def _directional(self, summed: Tensor) -> Tensor:
        return summed


class DimeNetPlusPlus(Interaction):
    """Interaction of adjacent edges by products in a narrow space (Gasteiger et al. 2020b, DimeNet++).

    It replaces the bilinear layer of ``dimenet``, which takes most of its time.
    ``d_ji = σ(W_ji m_ji) + σ(W_up Σ_k σ(W_down (σ(W_kj m_kj) ∘ W₂ W₁ e(d_kj))) ∘ V₂ V₁ a(d_kj, α_kji))``, then a
    residual block, a skip connection ``σ(W d) + m`` and ``after`` residual blocks.

    Parameters
    ----------
    narrow : int
        Width of the products, of W_down's output.
    inner : int
        Width between the two maps of each basis.
    degrees : int
        Number L of degrees of the spherical basis.
    basis : int
        Number R of radial functions of each basis.
    cutoff : float
        Distance at which they vanish, Å.
    angle : {"source", "target"}
        α is the angle k, j, i at j, or the angle k, i, j at i.
    after : int
        Residual blocks after the skip connection.

    Notes
    -----
    Wired, read and written as layer ``dimenet``, with the same deviations. Sums over pairs are of ``(E, L, narrow)``.

    References
    ----------
    Gasteiger et al. 2020b, arXiv:2011.14115, sec. 3.
    """

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        narrow: int = 32,
        inner: int = 8,
        degrees: Annotated[int, Ge(1)] = 7,
        basis: Annotated[int, Ge(1)] = 6,
        cutoff: Annotated[float, Gt(0)] = 20.0,
        angle: Literal["source", "target"] = "source",
        after: int = 2,
    ) -> None:
        super().__init__(fields, degrees=degrees, basis=basis, cutoff=cutoff, angle=angle, after=after)
        dim = self.scalar_width("h")
        self.lin_radial1 = nn.Linear(basis, inner, bias=False)
        self.lin_radial2 = nn.Linear(inner, dim, bias=False)
        self.lin_spherical1 = nn.Linear(degrees * basis, inner, bias=False)
        self.lin_spherical2 = nn.Linear(inner, narrow, bias=False)
        self.lin_down = nn.Linear(dim, narrow, bias=False)
        self.lin_up = nn.Linear(narrow, dim, bias=False)

    def _factors(self, x: Tensor, radial: Tensor, spherical: Tensor) -> Tensor:
        weight = self.lin_radial2(self.lin_radial1(radial))
        x = silu(self.lin_down(x * weight))  # (E, I)
        factors = self.lin_spherical2(self._map_degrees(spherical, self.lin_spherical1))  # (E, L, I)
        return factors * x.unsqueeze(1)

    def _directional(self, summed: Tensor) -> Tensor:
        return silu(self.lin_up(summed))


class DimeNetOutput(GraphLayer):
    """Output of nodes from the messages of their edges, ``h_i = W MLP(W_up Σ_j m_ji ∘ W_e e(d_ji))``.

    Parameters
    ----------
    dim : int
        Width of the output.
    hidden : int, optional
        Width of the MLP and of W_up's output; None: no W_up, as in DimeNet.
    depth : int
        Number of layers of the MLP, each with SiLU.
    basis : int
        Number of Bessel functions e.
    cutoff : float
        Distance at which they vanish, Å.

    Notes
    -----
    Reads: ``edge_h`` ``(E, C)`` scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    The output of the network is the sum of the outputs before the first and after each interaction.

    References
    ----------
    Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, sec. 5 (output block); Gasteiger et al. 2020b, arXiv:2011.14115.
    """

    reads: ClassVar[tuple[str, ...]] = ("edge_h", "edges", "edge_vec")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(
        expected_failures={"non_trivial": "only the targets of the edges are read"}
    )

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        hidden: int | None = 64,
        depth: int = 1,
        basis: Annotated[int, Ge(1)] = 6,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("edge_h")
        inner = width if hidden is None else hidden
        self.radial = RadialBasis(basis, cutoff)
        self.lin_radial = nn.Linear(basis, width, bias=False)
        self.lin_up = nn.Identity() if hidden is None else nn.Linear(width, inner, bias=False)
        dense: list[nn.Module] = []
        for _ in range(depth):
            dense += [nn.Linear(inner, inner), nn.SiLU()]
        self.mlp = nn.Sequential(*dense)
        self.lin = nn.Linear(inner, dim, bias=False)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` from the sums of the messages into each node."""
        message = f["edge_h"] * self.lin_radial(self.radial(f["edge_vec"]))  # (E, C)
        summed = f["edges"].sum(message)
        return {"h": self.lin(self.mlp(self.lin_up(summed)))}

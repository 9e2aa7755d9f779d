"""Layers of ViSNet: embedding of neighbors and edges, message passing, update of edges (Wang et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from annotated_types import Ge, Gt
from torch import Tensor, nn
from torch.nn.functional import silu

from protgraph import Edges, FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import OptionError, WiringError
from protgraph.ops import ExponentialBasis, cosine_cutoff, polar

__all__ = ["ViSNet", "ViSNetEdge", "ViSNetEmbedding"]
ENTRY_POINTS = {
    "protgraph.layers": {"visnet": "ViSNet", "visnet_edge": "ViSNetEdge", "visnet_embed": "ViSNetEmbedding"}
}

_WITH_VECTORS = Conformity(inputs={"h": "16x0e", "v": "16x1o", "edge_h": FieldSpec("edge_h", "edge", "16x0e")})


class ViSNetEmbedding(GraphLayer):
    """First features of nodes and edges of ViSNet: each node reads the types and distances of its neighbors.

    The message layers need scalars of edges, which the embedding of residue types alone does not give.
    ``h'_i = A h_i + b + B Σ_j N h_j ∘ u(d_ij) (W_n e_ij + b_n)`` and ``f_ij = (h'_i + h'_j) ∘ (W_e e_ij + b_e)``.

    Parameters
    ----------
    dim : int
        Width C of both outputs.
    basis : int
        Number of functions of the distance in e.
    cutoff : float
        Distance at which these and u vanish, Å.

    Notes
    -----
    Reads: ``h`` ``(N, D)`` scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å. Optional: ``edge_attr`` ``(E, F)``, in e.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``; ``edge_h`` ``(E, dim)``, ``dim x 0e``, f.

    References
    ----------
    Wang et al. 2024, Nat. Commun. 15, 313, arXiv:2210.16518, methods (embedding block).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h", "edge_h")

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        basis: Annotated[int, Ge(2)] = 32,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        edge_width = basis + self.scalar_width("edge_attr")
        self.radial = ExponentialBasis(basis, cutoff)
        self.own = nn.Linear(width, dim)
        self.neighbor = nn.Linear(width, dim, bias=False)
        self.filter = nn.Linear(edge_width, dim)
        self.combine = nn.Linear(dim, dim, bias=False)
        self.edge = nn.Linear(edge_width, dim)
        self.declare(h=f"{dim}x0e", edge_h=FieldSpec("edge_h", "edge", f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` and ``edge_h (E, dim)``."""
        edges = f["edges"]
        distance, _ = polar(f["edge_vec"])
        e = self.radial(distance)
        if "edge_attr" in self.fields:
            e = torch.cat([e, f["edge_attr"]], 1)

        # Nodes: their own type, and those of their neighbors weighted by the distance.
        weight = cosine_cutoff(distance, self.radial.cutoff) * self.filter(e)  # (E, C)
        neighbors = edges.sum(weight * edges.source(self.neighbor(f["h"])))
        h = self.own(f["h"]) + self.combine(neighbors)

        # Edges: the features of both ends.
        edge_h = edges.pair_sum(h, h) * self.edge(e)
        return {"h": h, "edge_h": edge_h}


class ViSNet(GraphLayer):
    """Message passing of scalars h and vectors v with attention (ViSNet; Wang et al. 2024).

    Vectors carry the directions of the neighbors, so that angles and dihedrals become products of vectors of nodes,
    without a list of triplets.

    With ``m_ij = α_ij v_j(h) ∘ σ(W_dv f_ij)``, ``α_ij = σ(Σ q_i ∘ k_j ∘ σ(W_dk f_ij)) u(d_ij)`` per head, q, k and v(h)
    linear maps of the normalized h, and ``[a, b]_ij = σ(W_s m_ij)``:
    ``h_i ← h_i + <V₁ v_i, V₂ v_i> ∘ o₂ + o₃``, ``v_i ← v_i + V₃ v_i ∘ o₁ + Σ_j (v_j ∘ a_ij + Y(r_ij) b_ij)`` with
    ``[o₁, o₂, o₃] = W_o Σ_j m_ij`` and spherical harmonics Y.

    Parameters
    ----------
    lmax : {1, 2}
        Highest degree of Y and v.
    heads : int
        Number of attention heads.
    cutoff : float
        Distance at which u vanishes, Å.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``; ``edge_vec`` ``(E, 3)``, Å; ``edge_h`` ``(E, C)`` scalars, f. Optional:
    ``v`` ``(N, 3 C)`` or ``(N, 8 C)``, 0 if it is not wired.
    Writes: ``h`` ``(N, C)``, ``C x 0e``; ``v``, ``C x 1o`` or ``C x 1o + C x 2e``.

    Equal to PyG's ``ViS_MP`` on the same edges, without normalization of vectors. PyG's network adds self loops.

    References
    ----------
    Wang et al. 2024, Nat. Commun. 15, 313, arXiv:2210.16518, methods (vector-scalar interactive message passing).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_vec", "edge_h")
    optional: ClassVar[tuple[str, ...]] = ("v",)
    writes: ClassVar[tuple[str, ...]] = ("h", "v")
    conformity: ClassVar[Conformity] = _WITH_VECTORS

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        lmax: Literal[1, 2] = 1,
        heads: Annotated[int, Ge(1)] = 8,
        cutoff: Annotated[float, Gt(0)] = 20.0,
    ) -> None:
        super().__init__(fields)
        dim = _common_width(self, lmax)
        if dim % heads:
            raise OptionError(f"visnet: heads={heads} does not divide the width of h, {dim}. Choose a divisor.")
        self.dim, self.lmax, self.heads, self.cutoff = dim, lmax, heads, float(cutoff)
        self.layernorm = nn.LayerNorm(dim)
        # Without v, only the terms that do not contain it.
        self.vec_proj = nn.Linear(dim, 3 * dim, bias=False) if "v" in fields else None
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.dk_proj = nn.Linear(dim, dim)
        self.dv_proj = nn.Linear(dim, dim)
        self.s_proj = nn.Linear(dim, dim if self.vec_proj is None else 2 * dim)
        self.o_proj = nn.Linear(dim, dim if self.vec_proj is None else 3 * dim)
        self.declare(h=f"{dim}x0e", v=_irreps(dim, lmax))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)`` and ``v (N, irreps)``."""
        edges = f["edges"]
        distance, direction = polar(f["edge_vec"])
        harmonics = _harmonics(direction, self.lmax).unsqueeze(2)  # (E, M, 1)

        # Messages of scalars, (E, C).
        message = self._messages(self.layernorm(f["h"]), f["edge_h"], distance, edges)
        factors = silu(self.s_proj(message))  # [a, b] of the docstring
        update = self.o_proj(edges.sum(message))  # [o₁, o₂, o₃]

        # Without input vectors, only the harmonics make messages of vectors.
        if self.vec_proj is None:
            v = edges.sum(harmonics * factors.unsqueeze(1))
            return {"h": f["h"] + update, "v": _pack(v)}

        # Messages of vectors, (E, M, C), and the update of nodes.
        v = _unpack(f["v"], self.dim)  # (N, M, C)
        a, b = factors.chunk(2, 1)
        vectors = edges.source(v) * a.unsqueeze(1) + harmonics * b.unsqueeze(1)
        o1, o2, o3 = update.chunk(3, 1)
        v1, v2, v3 = self.vec_proj(v).chunk(3, 2)  # (N, M, C) each
        h = f["h"] + (v1 * v2).sum(1) * o2 + o3
        v = v + v3 * o1.unsqueeze(1) + edges.sum(vectors)
        return {"h": h, "v": _pack(v)}

    def _messages(self, h: Tensor, edge_h: Tensor, distance: Tensor, edges: Edges) -> Tensor:
        """Compute the messages of scalars, ``(E, C)``: values of the neighbors, weighted per head."""
        key = silu(self.dk_proj(edge_h)) * edges.source(self.k_proj(h))
        query = edges.target(self.q_proj(h))
        logits = (query * key).unflatten(1, (self.heads, -1)).sum(2)  # (E, H)
        weight = silu(logits) * cosine_cutoff(distance, self.cutoff)
        value = silu(self.dv_proj(edge_h)) * edges.source(self.v_proj(h))
        by_head = value.unflatten(1, (self.heads, -1))  # (E, H, C / H)
        return (by_head * weight.unsqueeze(2)).flatten(1)


class ViSNetEdge(GraphLayer):
    """Update of edges by angles between the vectors of their nodes, without their parts along the edge.

    Without the parts along the edge, the angle of the vectors at both ends is a dihedral angle around the edge.
    ``f_ij ← f_ij + σ(W_f f_ij + b) ∘ <(W_t v_i)⊥, (W_s v_j)⊥>``, with ``x⊥ = x - <x, Y(r_ij)> Y(r_ij)``; with
    ``vertex`` another such term, of ``(T_t v_i)⊥`` and ``(T_s v_i)⊥``.

    Parameters
    ----------
    vertex : bool
        Add the second term.

    Notes
    -----
    Reads: ``edge_h`` ``(E, C)`` scalars, f; ``v`` ``(N, irreps)``, ``C x 1o`` or ``C x 1o + C x 2e``; ``edges``;
    ``edge_vec`` ``(E, 3)``, Å.
    Writes: ``edge_h`` ``(E, C)``, ``C x 0e``.

    The update of the block with layer ``visnet`` reads v before that layer, which reads f before this one. The last
    block has none.

    References
    ----------
    Wang et al. 2024, Nat. Commun. 15, 313, arXiv:2210.16518, methods (runtime geometry calculation); PyG's ``ViS_MP``
    and ``ViS_MP_Vertex``.
    """

    reads: ClassVar[tuple[str, ...]] = ("edge_h", "v", "edges", "edge_vec")
    writes: ClassVar[tuple[str, ...]] = ("edge_h",)
    conformity: ClassVar[Conformity] = _WITH_VECTORS

    def __init__(self, fields: Mapping[str, FieldSpec], *, vertex: bool = False) -> None:
        super().__init__(fields)
        self.dim = self.scalar_width("edge_h")
        self.lmax = 2 if "2e" in fields["v"].irreps else 1
        _require_vectors(fields["v"], self.dim, self.lmax)
        terms = 2 if vertex else 1
        self.f_proj = nn.Linear(self.dim, self.dim * terms)
        self.w_trg_proj = nn.Linear(self.dim, self.dim, bias=False)
        self.w_src_proj = nn.Linear(self.dim, self.dim, bias=False)
        self.t_trg_proj = nn.Linear(self.dim, self.dim, bias=False) if vertex else None
        self.t_src_proj = nn.Linear(self.dim, self.dim, bias=False) if vertex else None
        self.declare(edge_h=FieldSpec("edge_h", "edge", f"{self.dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``edge_h (E, C)`` from the vectors at both ends of each edge."""
        edges = f["edges"]
        v = _unpack(f["v"], self.dim)
        _, direction = polar(f["edge_vec"])
        harmonics = _harmonics(direction, self.lmax).unsqueeze(2)  # (E, M, 1)

        # Angles of the vectors at both ends, (E, C).
        target = edges.target(self.w_trg_proj(v))
        source = edges.source(self.w_src_proj(v))
        angles = _product(target, source, harmonics)

        # With vertex, of two vectors of the target too, (E, 2 C).
        if self.t_trg_proj is not None and self.t_src_proj is not None:
            first = edges.target(self.t_trg_proj(v))
            second = edges.target(self.t_src_proj(v))
            angles = torch.cat([angles, _product(first, second, harmonics)], 1)
        terms = silu(self.f_proj(f["edge_h"])) * angles
        return {"edge_h": f["edge_h"] + terms.unflatten(1, (-1, self.dim)).sum(1)}


def _product(a: Tensor, b: Tensor, y: Tensor) -> Tensor:
    """Compute ``<a - <a, y> y, b - <b, y> y>`` of ``(E, M, C)`` for y ``(E, M, 1)``, to ``(E, C)``."""
    along = (a * y).sum(1) * (b * y).sum(1)
    return (a * b).sum(1) - (2 - y.square().sum(1)) * along


def _harmonics(direction: Tensor, lmax: int) -> Tensor:
    """Compute spherical harmonics of degree 1 to lmax, each of norm 1, in e3nn's order: ``(E, 3)`` to ``(E, M)``."""
    if lmax == 1:
        return direction
    x, y, z = direction.unbind(1)
    root = math.sqrt(3)
    second = [
        root * x * z,
        root * x * y,
        y * y - (x * x + z * z) / 2,
        root * y * z,
        root / 2 * (z * z - x * x),
    ]
    return torch.cat([direction, torch.stack(second, 1)], 1)


def _irreps(dim: int, lmax: int) -> str:
    return f"{dim}x1o" if lmax == 1 else f"{dim}x1o+{dim}x2e"


def _unpack(v: Tensor, dim: int) -> Tensor:
    """Convert the flat layout of e3nn to ``(N, M, C)`` with M = 3 or 8 components."""
    vectors, tensors = v.split([3 * dim, v.size(1) - 3 * dim], 1)  # degrees 1 and 2
    components = [vectors.unflatten(1, (dim, 3)).mT]
    if tensors.size(1):
        components.append(tensors.unflatten(1, (dim, 5)).mT)
    return torch.cat(components, 1)


def _pack(v: Tensor) -> Tensor:
    """Convert ``(N, M, C)`` to the flat layout of e3nn."""
    vectors, tensors = v.split([3, v.size(1) - 3], 1)  # degrees 1 and 2
    blocks = [vectors.mT.flatten(1)]
    if tensors.size(1):
        blocks.append(tensors.mT.flatten(1))
    return torch.cat(blocks, 1)


def _common_width(layer: GraphLayer, lmax: int) -> int:
    """Return the width of h; that of edge_h and the channels of v must be the same."""
    dim = layer.scalar_width("h")
    if layer.scalar_width("edge_h") != dim:
        raise WiringError(
            f"visnet reads h of width {dim} and edge_h of width {layer.scalar_width('edge_h')}. They must be equal. "
            "Add a layer 'visnet_embed' before."
        )
    if "v" in layer.fields:
        _require_vectors(layer.fields["v"], dim, lmax)
    return dim


def _require_vectors(spec: FieldSpec, dim: int, lmax: int) -> None:
    if str(spec.o3.simplify()) != _irreps(dim, lmax):
        raise WiringError(
            f"visnet reads v of {spec.irreps}. It needs {_irreps(dim, lmax)}, one vector per scalar and degree. "
            "Add a layer 'irreps_linear' before, or do not wire v."
        )

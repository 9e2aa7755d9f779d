"""Triangle updates of pair features (Jumper et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal

import torch
from protgraph_plugins.tfn import require_cuequivariance, require_cuequivariance_kernels
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from protgraph.data.graph import Conformity, FieldSpec
from protgraph.errors import OptionError, WiringError
from protgraph.nn import LOOPS_OVER_PROTEINS, GraphLayer, gate_linear, run_in_chunks, split_heads

__all__ = ["TriangleAttention", "TriangleBackend", "TriangleMultiplication", "pair_width"]
ENTRY_POINTS = {
    "protgraph.layers": {
        "triangle_attention": "TriangleAttention",
        "triangle_multiplication": "TriangleMultiplication",
    },
}

TriangleBackend = Literal["torch", "cuequivariance"]


class TriangleMultiplication(GraphLayer):
    """Triangle multiplication (Jumper et al. 2021): ``z'_ij = g_ij ⊙ W norm( Σ_k a_ik ⊙ b_jk )`` for outgoing edges.

    For incoming edges ``Σ_k a_ki ⊙ b_kj``. ``a = sigmoid(G_a x) ⊙ A x``, b likewise, ``g = sigmoid(G x)``, with
    ``x = norm(z)``.

    Parameters
    ----------
    hidden : int, optional
        Width of a and b; None: width of z.
    edges : {"outgoing", "incoming"}
        Edges of the triangle i, j, k that are multiplied.
    backend : {"torch", "cuequivariance"}
        Implementation. cuEquivariance runs its kernel on CUDA tensors, for ``hidden`` a multiple of 32.

    Notes
    -----
    Reads: ``pair`` ``(P, C)`` scalars; ``proteins``. Writes: ``pair`` ``(P, C)``, ``C x 0e``: the update, without z.

    Time is cubic in residues: one matrix product per channel and protein. Parameters have the names of OpenFold's.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithms 11 and 12.
    """

    reads: ClassVar[tuple[str, ...]] = ("pair", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("pair",)
    conformity: ClassVar[Conformity] = Conformity(expected_failures=LOOPS_OVER_PROTEINS)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        hidden: int | None = None,
        edges: Literal["outgoing", "incoming"] = "outgoing",
        backend: TriangleBackend = "torch",
    ) -> None:
        super().__init__(fields)
        width = pair_width(self)
        self.backend = _installed(backend)
        hidden = hidden or width
        if backend == "cuequivariance" and hidden % 32:
            raise OptionError(f"hidden={hidden}: backend='cuequivariance' needs a multiple of 32. Use backend='torch'.")
        self.outgoing = edges == "outgoing"
        self.layer_norm_in = nn.LayerNorm(width)
        self.layer_norm_out = nn.LayerNorm(hidden)
        self.linear_a_p = nn.Linear(width, hidden)
        self.linear_a_g = nn.Linear(width, hidden)
        self.linear_b_p = nn.Linear(width, hidden)
        self.linear_b_g = nn.Linear(width, hidden)
        self.linear_z = nn.Linear(hidden, width)
        self.linear_g = nn.Linear(width, width)
        self.declare(pair=FieldSpec("pair", "pair", f"{width}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``pair (P, dim)``: gated products of the other two edges of each triangle."""
        if uses_triangle_kernel(self.backend, f["pair"]):
            updates = [self._kernel(z).flatten(0, 1) for z in f["proteins"].split_pairs(f["pair"])]
            return {"pair": torch.cat(updates)}
        proteins = f["proteins"]
        x = self.layer_norm_in(f["pair"])  # line 1
        a = self.linear_a_g(x).sigmoid() * self.linear_a_p(x)  # (P, c), line 2
        b = self.linear_b_g(x).sigmoid() * self.linear_b_p(x)

        # Sum over the third node of each triangle, protein by protein.
        equation = "ikc,jkc->ijc" if self.outgoing else "kic,kjc->ijc"
        products = []
        for a_pairs, b_pairs in zip(proteins.split_pairs(a), proteins.split_pairs(b), strict=True):
            products.append(torch.einsum(equation, a_pairs, b_pairs).flatten(0, 1))
        summed = torch.cat(products)

        gate = self.linear_g(x).sigmoid()
        return {"pair": gate * self.linear_z(self.layer_norm_out(summed))}  # lines 3, 4

    def _kernel(self, z: Tensor) -> Tensor:
        """Run cuEquivariance's kernel on one protein, ``(L, L, C)`` to ``(L, L, C)``."""
        modules = {
            "norm_in": [self.layer_norm_in],
            "norm_out": [self.layer_norm_out],
            "p_in": [self.linear_a_p, self.linear_b_p],
            "g_in": [self.linear_a_g, self.linear_b_g],
            "p_out": [self.linear_z],
            "g_out": [self.linear_g],
        }
        weights = {}
        for name, members in modules.items():
            weights[f"{name}_weight"] = torch.cat([module.weight for module in members])
            weights[f"{name}_bias"] = torch.cat([module.bias for module in members])
        update = triangle_kernel("triangle_multiplicative_update")
        direction = "outgoing" if self.outgoing else "incoming"
        return update(z.unsqueeze(0), direction, eps=self.layer_norm_in.eps, **weights).squeeze(0)


class TriangleAttention(GraphLayer):
    """Triangle attention (Jumper et al. 2021) around the starting node i of a pair.

    ``z'_ij = W ‖_heads g_ij ⊙ Σ_k softmax_k( q_ij·k_ik / √d + b_jk ) v_ik``.

    Around the ending node, the same on transposed pairs. q, k, v, b and ``g = sigmoid(G x)`` are linear in
    ``x = norm(z)``.

    Parameters
    ----------
    heads : int
        Number of attention heads.
    node : {"starting", "ending"}
        Shared node of the pairs (i, j) and (i, k), or (j, i) and (k, i).
    backend : {"torch", "cuequivariance"}
        Implementation. cuEquivariance runs its kernel on CUDA tensors.

    Notes
    -----
    Reads: ``pair`` ``(P, C)`` scalars; ``proteins``. Writes: ``pair`` ``(P, C)``, ``C x 0e``: the update, without z.

    Time is cubic in residues; logits are in memory for a few i at a time. Parameters have the names of OpenFold's.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithms 13 and 14.
    """

    reads: ClassVar[tuple[str, ...]] = ("pair", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("pair",)
    conformity: ClassVar[Conformity] = Conformity(expected_failures=LOOPS_OVER_PROTEINS)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        heads: int = 4,
        node: Literal["starting", "ending"] = "starting",
        backend: TriangleBackend = "torch",
    ) -> None:
        super().__init__(fields)
        width = pair_width(self)
        self.heads = heads
        self.backend = _installed(backend)
        split_heads(width, heads)
        self.ending = node == "ending"
        self.layer_norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, heads, bias=False)
        self.linear_q = nn.Linear(width, width, bias=False)
        self.linear_k = nn.Linear(width, width, bias=False)
        self.linear_v = nn.Linear(width, width, bias=False)
        self.linear_o = nn.Linear(width, width)
        self.linear_g = gate_linear(width, width)
        self.declare(pair=FieldSpec("pair", "pair", f"{width}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``pair (P, dim)``: attention over the edges that share a node."""
        x = self.layer_norm(f["pair"])  # line 1
        updates = [self._protein(pairs).flatten(0, 1) for pairs in f["proteins"].split_pairs(x)]
        return {"pair": torch.cat(updates)}

    def _protein(self, x: Tensor) -> Tensor:
        """Attend within one protein, ``(L, L, C)`` to ``(L, L, C)``."""
        if self.ending:
            x = x.transpose(0, 1)
        bias = self.linear(x).permute(2, 0, 1).unsqueeze(0)  # (1, H, L, L), line 3
        q = self._by_head(self.linear_q(x))  # (L, H, L, D), line 2
        k = self._by_head(self.linear_k(x))
        v = self._by_head(self.linear_v(x))

        def around(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, nodes: slice) -> Tensor:
            return scaled_dot_product_attention(q[nodes], k[nodes], v[nodes], attn_mask=bias)

        if not len(x):
            values = v
        elif uses_triangle_kernel(self.backend, x):
            batch = [tensor.unsqueeze(0) for tensor in (q, k, v, bias)]
            values = triangle_kernel("triangle_attention")(*batch).squeeze(0)
        else:
            values = torch.cat(run_in_chunks(around, (q, k, v, bias), len(x), self.heads * len(x) ** 2))
        gate = self.linear_g(x).sigmoid()
        out = self.linear_o(gate * values.transpose(1, 2).flatten(2))  # lines 4, 6, 7
        return out.transpose(0, 1) if self.ending else out

    def _by_head(self, x: Tensor) -> Tensor:
        """Separate the heads, ``(L, L, C)`` to ``(L, H, L, D)``."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


def pair_width(layer: GraphLayer) -> int:
    """Return the width of the pair field of a layer, which must be scalar."""
    spec = layer.fields["pair"]
    if spec.level != "pair":
        raise WiringError(
            f"{type(layer).__name__} reads pair features, but {spec.name!r} is a field per {spec.level}. "
            "Add a layer 'pair_embed' or 'outer_product_mean' before."
        )
    return layer.scalar_width("pair")


def _installed(backend: TriangleBackend) -> TriangleBackend:
    if backend == "cuequivariance":
        require_cuequivariance()
    return backend


def uses_triangle_kernel(backend: TriangleBackend, x: Tensor) -> bool:
    """Return whether a triangle layer with this backend runs a kernel of cuEquivariance on x, of any shape."""
    return backend == "cuequivariance" and x.is_cuda


def triangle_kernel(name: str) -> Callable[..., Tensor]:
    """Return ``triangle_attention`` or ``triangle_multiplicative_update`` of ``cuequivariance_torch``."""
    require_cuequivariance_kernels()
    return getattr(import_module("cuequivariance_torch"), name)

"""Layers of ScanNet: Gaussian kernels, spatio-chemical filters, pooling of atoms, and attention between residues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import relu, softplus

from protgraph import Edges, FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.nn import RowBatchNorm

__all__ = ["GaussianKernels", "ScanAttention", "ScanDense", "ScanFilter", "ScanPool"]
ENTRY_POINTS = {
    "protgraph.layers": {
        "scan_attention": "ScanAttention",
        "scan_dense": "ScanDense",
        "scan_filter": "ScanFilter",
        "scan_pool": "ScanPool",
    }
}

_BATCH = Conformity(
    expected_failures={
        "no_leak": "batch normalization in training, as in the program",
        "training": "batch normalization: statistics of the batch in training",
    }
)
_VARIANCE = 1e-3  # added to variances by batch normalization
_SMALL = 1e-6  # added to sums of weights
_FARTHEST = 8  # places in the chain; larger distances count as this one
_PAIR = 5  # numbers that describe two residues


class GaussianKernels(nn.Module):
    """Gaussian kernels with full covariance: ``G_g(u) = exp(−|P_g (u − c_g)|² / 2)``.

    Parameters
    ----------
    size : int
        Width of u.
    number : int
        Number of kernels.
    spread : float
        Standard deviation of the initial centers, and of the initial kernels.

    References
    ----------
    Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7, Methods.
    """

    def __init__(self, size: int, number: int, spread: float) -> None:
        super().__init__()
        self.center = nn.Parameter(torch.randn(number, size) * spread)
        self.precision = nn.Parameter(torch.eye(size).expand(number, -1, -1) / spread)

    def forward(self, u: Tensor) -> Tensor:
        """Compute the kernels of points, ``(…, D)`` to ``(…, G)``."""
        offset = u.unsqueeze(-2) - self.center  # (…, G, D)
        scaled = torch.einsum("gij,...gj->...gi", self.precision, offset)
        squared = scaled.square().sum(-1)
        return torch.exp(-squared / 2)


class ScanDense(GraphLayer):
    """Dense layer with batch normalization: ``h'_i = relu(norm(W h_i) + b)``.

    Parameters
    ----------
    dim : int
        Width of the output.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars. Writes: ``h`` ``(N, dim)``, ``dim x 0e``. In training, the normalization couples
    the proteins of a batch, as in the program.

    References
    ----------
    Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7, Methods.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = _BATCH

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 32) -> None:
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim, bias=False)
        self.norm = RowBatchNorm(dim, eps=_VARIANCE)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``."""
        linear = self.linear(f["h"])
        return {"h": relu(self.norm(linear))}


class ScanFilter(GraphLayer):
    """Spatio-chemical filters of the neighborhood of each node, in its own frame.

    ``h'_i = relu(norm(Σ_g (Σ_j G_g(u_ij) (W_g h_j + v_g))) + b)`` with ``u_ij = R_i (x_j − x_i)``, the position of
    neighbor j in the frame R_i of node i. The node itself is one of its neighbors, at u = 0.

    Parameters
    ----------
    dim : int
        Number of filters.
    kernels : int
        Number of Gaussian kernels G_g.
    radius : float
        Å, about the size of a neighborhood: standard deviation of the initial centers.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars, ``pos`` ``(N, 3)`` Å, ``scan_frame`` ``(N, 3, 3)``, edges. Writes:
    ``h`` ``(N, dim)``, ``dim x 0e``, chiral: filters tell a neighborhood from its mirror image. In training, the
    normalization couples the proteins of a batch, as in the program.

    ``Σ_j G_g(u_ij) h_j`` is summed first: W acts on nodes, not on edges.

    References
    ----------
    Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7, Methods.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "pos", "scan_frame", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = _BATCH

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, dim: int = 128, kernels: int = 32, radius: float = 4.0
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.kernels = GaussianKernels(3, kernels, radius)
        self.weight = nn.Parameter(torch.randn(kernels, width, dim) / (kernels * width) ** 0.5)
        self.alone = nn.Parameter(torch.randn(kernels, dim) / kernels**0.5)
        self.norm = RowBatchNorm(dim, eps=_VARIANCE)
        self.declare(h=FieldSpec("h", "node", f"{dim}x0e", chiral=True))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute the activity of the filters, ``h (N, dim)``."""
        h, pos, frame, edges = f["h"], f["pos"], f["scan_frame"], f["edges"]
        vector = edges.source(pos) - edges.target(pos)  # (E, 3) from the node to its neighbor
        local = torch.einsum("eab,eb->ea", edges.target(frame), vector)
        of_edges = self.kernels(local)  # (E, G)
        of_node = self.kernels(local.new_zeros(3))  # (G,)

        # Sums over neighbors and the node itself; padding is 0.
        near = edges.incoming(of_edges)  # (N, K, G)
        values = edges.incoming(edges.source(h))  # (N, K, C)
        of_neighbors = near.transpose(1, 2) @ values  # (N, G, C)
        of_itself = of_node[:, None] * h.unsqueeze(1)
        features = of_neighbors + of_itself
        number = near.sum(1) + of_node  # (N, G)

        weight = self.weight.flatten(0, 1)  # (G C, dim)
        activity = features.flatten(1) @ weight + number @ self.alone
        return {"h": relu(self.norm(activity))}


class ScanPool(GraphLayer):
    """Pool the atoms of each residue by attention, with one head per channel.

    ``h'_i = relu(norm(Σ_a softmax_a(A h_a) ⊙ V h_a) + b)`` over the atoms a of residue i.

    Parameters
    ----------
    dim : int
        Number of heads.

    Notes
    -----
    Reads: ``source_h`` ``(M, C)`` scalars of the atoms, and edges from atoms to residues. Writes: ``h`` ``(N, dim)``,
    ``dim x 0e``. In training, the normalization couples the proteins of a batch, as in the program.

    References
    ----------
    Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7, Methods.
    """

    reads: ClassVar[tuple[str, ...]] = ("source_h", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = _BATCH

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 64) -> None:
        super().__init__(fields)
        width = self.scalar_width("source_h")
        self.attention = nn.Linear(width, dim, bias=False)
        self.value = nn.Linear(width, dim, bias=False)
        self.norm = RowBatchNorm(dim, eps=_VARIANCE)
        self.declare(h=FieldSpec("h", "node", f"{dim}x0e", chiral=fields["source_h"].chiral))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` of the residues."""
        edges, h = f["edges"], f["source_h"]
        logits = edges.source(self.attention(h))  # (E, dim)
        values = edges.source(self.value(h))
        pooled = edges.sum(edges.softmax(logits) * values)
        return {"h": relu(self.norm(pooled))}


class ScanAttention(GraphLayer):
    """Average of node outputs over a neighborhood, with weights from geometry and attention, which may be negative.

    ``h'_i = Σ_j s_ij o_j / (Σ_j |s_ij| + 1e-6)`` with ``s_ij = (w · G(e_ij)) exp((β_i + 1e-6) a_ij − max_j)``,
    ``o_j = O h_j + c``, ``β_i = relu(b · h_i + d)``, ``a_ij = k · h_j``, and ``a_ii = k · h_i + q · h_i + r``. e_ij is
    the distance, ``z_i · z_j``, ``z_j · n_ij``, ``z_i · n_ij`` with ``n_ij = (x_j − x_i) / |x_j − x_i|`` and z = e₁ of
    the frame, and the distance along the chain up to 8. The node itself is one of its neighbors.

    Parameters
    ----------
    dim : int
        Width of the output o.
    kernels : int
        Number of Gaussian kernels G.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars, ``pos`` ``(N, 3)`` Å, ``scan_frame`` ``(N, 3, 3)``, ``scan_place`` ``(N,)``, edges.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7, Methods.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "pos", "scan_frame", "scan_place", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 2, kernels: int = 32) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.sharpness = nn.Linear(width, 1)
        nn.init.ones_(self.sharpness.bias)  # above 0, where ReLU has a gradient
        self.itself = nn.Linear(width, 1)
        self.other = nn.Linear(width, 1, bias=False)
        self.output = nn.Linear(width, dim)
        self.kernels = GaussianKernels(_PAIR, kernels, 4.0)
        self.register_buffer("same_residue", torch.eye(_PAIR)[1], persistent=False)
        self.edge = nn.Parameter(softplus(torch.randn(kernels)))
        self.declare(h=FieldSpec("h", "node", f"{dim}x0e", chiral=fields["h"].chiral))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``."""
        h, edges = f["h"], f["edges"]
        z = f["scan_frame"][:, 0]
        geometry = _pair_geometry(f["pos"], z, f["scan_place"], edges)
        of_edges = self.kernels(geometry) @ self.edge  # (E,)
        of_node = self.kernels(self.same_residue) @ self.edge

        # Logits of the neighbors and of the node itself.
        sharpness = relu(self.sharpness(h)) + _SMALL  # (N, 1)
        key = self.other(h)
        other = edges.target(sharpness) * edges.source(key)  # (E, 1)
        itself = sharpness * (key + self.itself(h))  # (N, 1)
        has_neighbors = edges.count[:, None] > 0
        largest = torch.maximum(edges.max(other), itself)
        top = torch.where(has_neighbors, largest, itself)

        # Signed weights of the neighbors and of the node itself.
        share = of_edges[:, None] * torch.exp(other - edges.target(top))
        own_share = of_node * torch.exp(itself - top)
        total = edges.sum(share.abs()) + own_share.abs() + _SMALL
        output = self.output(h)
        of_neighbors = edges.sum(share * edges.source(output))
        return {"h": (of_neighbors + own_share * output) / total}


def _pair_geometry(pos: Tensor, z: Tensor, index: Tensor, edges: Edges) -> Tensor:
    """Describe two residues by their distance, directions and places in the chain, ``(E, 5)``."""
    vector = edges.source(pos) - edges.target(pos)  # (E, 3)
    distance = vector.norm(dim=1)
    direction = vector / distance.clamp(min=1e-10)[:, None]
    z_source, z_target = edges.source(z), edges.target(z)
    places = (edges.source(index) - edges.target(index)).abs().clamp(max=_FARTHEST)
    columns = [
        distance,
        (z_target * z_source).sum(1),
        (direction * z_source).sum(1),
        (direction * z_target).sum(1),
        places.to(pos.dtype),
    ]
    return torch.stack(columns, 1)

"""Layers of SE(3)-Transformers: attention, convolution and norm nonlinearity (Fuchs et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from e3nn import o3
from protgraph_plugins.se3_transformer.attention import ChannelwiseAttention, PairwiseAttention
from protgraph_plugins.se3_transformer.kernel import PairwiseKernel, RadialNets
from protgraph_plugins.tfn import ChannelwiseProduct, TensorProductBackend
from torch import Tensor, nn

from protgraph.data.graph import FieldSpec
from protgraph.errors import OptionError
from protgraph.nn import Gate, GraphLayer, IrrepsLinear, irreps_blocks
from protgraph.ops import BesselBasis, polar

__all__ = ["NormReLU", "SE3Conv", "SE3Transformer"]
ENTRY_POINTS = {
    "protgraph.layers": {"norm_relu": "NormReLU", "se3_conv": "SE3Conv", "se3_transformer": "SE3Transformer"}
}


class SE3Transformer(GraphLayer):
    """SE(3)-Transformer layer: attention with equivariant keys and values and invariant weights (Fuchs et al. 2020).

    ``h_i ← Gate(W [Σ_j α_ij v_ij, h_i])``, ``α_ij = softmax_j(<q_i, k_ij> / sqrt(D))``, ``q_i = W_Q h_i``.

    Keys ``k_ij = W_K(r_ij) h_j`` and values ``v_ij = W_V(r_ij) h_j`` are messages of a tensor field network. They
    rotate with the protein, and their scalar products with queries are invariant.

    Parameters
    ----------
    irreps : str
        Output irreps, e.g. ``"64x0e+16x1o"``; with a gate, even scalars come first.
    value : str
        Irreps of values; keys have those of them that h has. "": ``irreps``.
    heads : int
        Number of attention heads; divides the multiplicities of ``value``.
    lmax : int
        Highest degree of the spherical harmonics.
    mode : {"channelwise", "full"}
        "channelwise": one radial function per channel of h and path, then maps over channels. "full": one per pair of
        channels (:class:`~protgraph_plugins.se3_transformer.kernel.PairwiseKernel`), as in the paper.
    radial : int
        Hidden width of the radial networks.
    nets : {"one", "output", "pair"}
        Number of radial networks of mode "full": one, one per output block, or one per pair of blocks.
    layer_norm : bool
        Layer normalization in the radial networks of mode "full".
    basis : int
        Number of Bessel functions of the distance, if ``edge_attr`` is not wired.
    cutoff : float
        Distance at which they vanish, Å.
    gate : bool
        Apply :class:`~protgraph.nn.irreps.Gate`.
    parity : bool
        True: O(3) equivariance. False: SO(3) equivariance, as in the paper; the output is then chiral.
    backend : {"e3nn", "cuequivariance"}
        Implementation of the tensor product.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``edge_vec`` ``(E, 3)``, Å; ``edges``. Optional: ``edge_attr`` ``(E, F)``
    scalars.
    Writes: ``h`` ``(N, irreps)``.

    D is the dimension of the keys, all heads together, as in both published codes. In mode "channelwise" keys and
    values are linear maps of one product z_ij, and both maps are taken on nodes: ``<q_i, W_K z_ij> = <W_Kᵀ q_i, z_ij>``
    and ``Σ_j α_ij W_V z_ij = W_V Σ_j α_ij z_ij``.

    Deviations from the paper: the skip connection is NVIDIA's, a linear map of attention and h; a gate follows; O(3)
    unless ``parity=False``; mode "channelwise".

    References
    ----------
    Fuchs, Worrall, Fischer & Welling 2020, arXiv:2006.10503, eqs. 10–12. Weights of NVIDIA's SE3Transformer load
    with ``tests/reference/se3_transformer.py``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edge_vec", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        irreps: str = "64x0e+16x1o",
        value: str = "",
        heads: int = 4,
        lmax: int = 1,
        mode: Literal["channelwise", "full"] = "channelwise",
        radial: int = 16,
        nets: RadialNets = "one",
        layer_norm: bool = True,
        basis: int = 8,
        cutoff: float = 10.0,
        gate: bool = True,
        parity: bool = True,
        backend: TensorProductBackend = "e3nn",
    ) -> None:
        super().__init__(fields)
        h = fields["h"].o3
        values = o3.Irreps(value or irreps).simplify()
        keys = o3.Irreps([block for block in values if h.count(block.ir)])
        _check_heads(heads, keys, values)
        self.gate = Gate(irreps) if gate else None
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") or basis
        self.query = IrrepsLinear({"h": fields["h"]}, irreps=str(keys))
        if mode == "full":
            kernel = PairwiseKernel(
                h,
                _values_and_keys(values, keys),
                lmax=lmax,
                width=width,
                radial=radial,
                nets=nets,
                layer_norm=layer_norm,
                parity=parity,
                backend=backend,
            )
            self.attention: nn.Module = PairwiseAttention(kernel, values, keys, heads)
        else:
            product = ChannelwiseProduct(h, lmax, values, parity=parity, backend=backend)
            self.attention = ChannelwiseAttention(product, values, keys, heads, width=width, radial=radial)
        both = {"value": FieldSpec("value", "node", str(values)), "h": fields["h"]}
        if self.gate is None:
            self.project = IrrepsLinear(both, irreps=irreps)
            out = self.project.irreps_out
        else:
            self.project = IrrepsLinear(both, irreps=str(self.gate.irreps_in))
            out = self.gate.irreps_out
        self.declare(h=FieldSpec("h", "node", str(out), chiral=not parity))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: equivariant attention over the neighbors, projected together with the input."""
        distance, direction = polar(f["edge_vec"])
        attr = f["edge_attr"] if self.basis is None else self.basis(distance)
        value = self.attention(f["h"], self.query(f)["h"], direction, attr, f["edges"])
        h = self.project({"value": value, "h": f["h"]})["h"]
        return {"h": h if self.gate is None else self.gate(h)}


class SE3Conv(GraphLayer):
    """Equivariant convolution ``h_i ← mean_j W(r_ij) h_j + W_0 h_i`` (Fuchs et al. 2020).

    It changes irreps without attention, e.g. from types 0 and 1 of the last ``se3_transformer`` to the output.
    W is a :class:`~protgraph_plugins.se3_transformer.kernel.PairwiseKernel`.

    Parameters
    ----------
    irreps : str
        Output irreps, e.g. ``"16x0e+16x1o"``.
    lmax : int
        Highest degree of the spherical harmonics.
    radial : int
        Hidden width of the radial networks.
    nets : {"one", "output", "pair"}
        Number of radial networks: one, one per output block, or one per pair of blocks.
    layer_norm : bool
        Layer normalization in the radial networks.
    basis : int
        Number of Bessel functions of the distance, if ``edge_attr`` is not wired.
    cutoff : float
        Distance at which they vanish, Å.
    reduce : {"mean", "sum"}
        Aggregation over neighbors; each term includes W_0 h_i.
    parity : bool
        True: O(3) equivariance. False: SO(3) equivariance, as in the paper; the output is then chiral.
    backend : {"e3nn", "cuequivariance"}
        Implementation of the tensor product.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``edge_vec`` ``(E, 3)``, Å; ``edges``. Optional: ``edge_attr`` ``(E, F)``
    scalars.
    Writes: ``h`` ``(N, irreps)``.

    Deviation from the paper: neighbors are averaged, as in its code.

    References
    ----------
    Fuchs et al. 2020, arXiv:2006.10503, eqs. 8–9, and its code; NVIDIA's SE3Transformer sums.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edge_vec", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        irreps: str = "16x0e+16x1o",
        lmax: int = 2,
        radial: int = 32,
        nets: RadialNets = "one",
        layer_norm: bool = True,
        basis: int = 8,
        cutoff: float = 10.0,
        reduce: Literal["mean", "sum"] = "mean",
        parity: bool = True,
        backend: TensorProductBackend = "e3nn",
    ) -> None:
        super().__init__(fields)
        self.reduce = reduce
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") or basis
        self.irreps_out = o3.Irreps(irreps).simplify()

        # W_0 maps h to the blocks whose irreps h has, at these columns of the output.
        irreps_h = {ir for _, ir in fields["h"].o3}
        shared: list[Any] = []
        columns: list[int] = []
        for block, where in zip(self.irreps_out, self.irreps_out.slices(), strict=True):
            if block.ir in irreps_h:
                shared.append(block)
                columns += range(where.start, where.stop)
        self.own = IrrepsLinear({"h": fields["h"]}, irreps=str(o3.Irreps(shared))) if shared else None
        self.register_buffer("_own_columns", torch.tensor(columns, dtype=torch.long), persistent=False)
        self.kernel = PairwiseKernel(
            fields["h"].o3,
            self.irreps_out,
            lmax=lmax,
            width=width,
            radial=radial,
            nets=nets,
            layer_norm=layer_norm,
            parity=parity,
            backend=backend,
        )
        self.declare(h=FieldSpec("h", "node", str(self.irreps_out), chiral=not parity))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: kernels of direction and distance applied to the neighbors, plus self-interaction."""
        edges = f["edges"]
        distance, direction = polar(f["edge_vec"])
        attr = f["edge_attr"] if self.basis is None else self.basis(distance)
        messages = self.kernel(f["h"], direction, attr, edges)
        h = torch.cat([edges.sum(m).mT.flatten(1) for m in messages], 1)  # (N, irreps)
        count = edges.count.clamp(min=1).to(h).unsqueeze(1)
        if self.reduce == "mean":
            h = h / count
        if self.own is None:
            return {"h": h}

        # Each term of the sum includes W_0 h_i.
        self_interaction = self.own(f)["h"]
        if self.reduce == "sum":
            self_interaction = count * self_interaction
        self_interaction = self_interaction.to(h.dtype)  # another type in mixed precision
        return {"h": h.index_add(1, self._own_columns, self_interaction)}


class NormReLU(GraphLayer):
    """Norm nonlinearity ``v ↦ ReLU(LayerNorm(|v|)) v / |v|`` of every channel: norms change, directions do not.

    Parameters
    ----------
    eps : float
        Lower limit of norms, which makes the map continuous at 0 and limits the amplification of rounding errors.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps.
    Writes: ``h``, of the same irreps.

    LayerNorm runs over the channels of one block. Scalars keep their sign. Equal to NVIDIA's NormSE3 with equal
    multiplicities and to Fuchs' GNormSE3.

    Deviations: their eps is 6e-8 and 1e-12; NVIDIA's branch for unequal multiplicities is not equivariant and not
    included.

    References
    ----------
    Fuchs et al. 2020, arXiv:2006.10503, sec. 3.3 and appendix C (norm nonlinearity), and its code.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, eps: float = 1e-4) -> None:
        super().__init__(fields)
        self.eps = eps
        self.irreps = fields["h"].o3.simplify()
        self._blocks = irreps_blocks(self.irreps)
        self.norms = nn.ModuleList(nn.LayerNorm(mul) for mul, _ in self.irreps)
        self.declare(h=FieldSpec("h", fields["h"].level, str(self.irreps)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Apply ReLU to the norm of each irrep of ``h (N, dim)``; directions stay."""
        sizes = [mul * dim for mul, dim in self._blocks]
        out = []
        for norm, columns, block in zip(self.norms, f["h"].flatten(1).split(sizes, 1), self._blocks, strict=True):
            v = columns.unflatten(1, block)
            length = v.square().sum(2).clamp(min=self.eps**2).sqrt()  # (N, mul); no gradient below eps
            scale = norm(length).relu() / length
            out.append((v * scale.unsqueeze(2)).flatten(1))
        return {"h": torch.cat(out, 1)}


def _values_and_keys(values: o3.Irreps, keys: o3.Irreps) -> o3.Irreps:
    """Return the irreps of a kernel that computes the value and key channels of each block side by side."""
    return o3.Irreps([(2 * mul if ir in keys else mul, ir) for mul, ir in values])


def _check_heads(heads: int, keys: o3.Irreps, values: o3.Irreps) -> None:
    if heads < 1 or any(mul % heads for mul, _ in values) or not keys:
        raise OptionError(
            f"se3_transformer: heads={heads} must divide the multiplicities of keys {keys} and values {values}."
        )

"""SE(3)-Transformer layer (Fuchs et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from e3nn import o3
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError
from protgraph.nn.equivariant_attention import ChannelwiseAttention, PairwiseAttention
from protgraph.nn.gate import Gate
from protgraph.nn.layers.irreps import IrrepsLinear
from protgraph.nn.module import GraphLayer
from protgraph.nn.pairwise_kernel import PairwiseKernel, RadialNets
from protgraph.nn.radial_basis import BesselBasis, polar
from protgraph.nn.tensor_product import ChannelwiseProduct, TensorProductBackend
from protgraph.validation import check_choice

__all__ = ["SE3Transformer"]
ENTRY_POINTS = {"protgraph.layers": {"se3_transformer": "SE3Transformer"}}


class SE3Transformer(GraphLayer):
    """SE(3)-Transformer layer: attention with equivariant keys and values and invariant weights (Fuchs et al. 2020).

    ``h_i ← Gate(W [Σ_j α_ij v_ij, h_i])``, ``α_ij = softmax_j(<q_i, k_ij> / sqrt(D))``, ``q_i = W_Q h_i``.

    Keys ``k_ij = W_K(r_ij) h_j`` and values ``v_ij = W_V(r_ij) h_j`` are messages of a tensor field network. They
    rotate with the protein, and their scalar products with queries are invariant.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
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
        channels (:class:`~protgraph.nn.pairwise_kernel.PairwiseKernel`), as in the paper.
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
        Apply :class:`~protgraph.nn.gate.Gate`.
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
    Fuchs, Worrall, Fischer & Welling 2020, arXiv:2006.10503, eqs. 10–12.
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
        if heads < 1 or any(mul % heads for mul, _ in values) or not keys:
            raise OptionError(
                f"se3_transformer: heads={heads} must divide the multiplicities of keys {keys} and values {values}."
            )
        self.gate = Gate(irreps) if gate else None
        self.basis = None if "edge_attr" in fields else BesselBasis(basis, cutoff)
        width = self.scalar_width("edge_attr") or basis
        self.query = IrrepsLinear({"h": fields["h"]}, irreps=str(keys))
        if check_choice("mode", mode, ("channelwise", "full")) == "full":
            # One kernel computes the value and key channels of each block side by side.
            fused = o3.Irreps([(2 * mul if ir in keys else mul, ir) for mul, ir in values])
            nets_of = {"width": width, "radial": radial, "nets": nets, "layer_norm": layer_norm}
            kernel = PairwiseKernel(h, fused, lmax=lmax, parity=parity, backend=backend, **nets_of)
            self.attention: nn.Module = PairwiseAttention(kernel, values, keys, heads)
        else:
            product = ChannelwiseProduct(h, lmax, values, parity=parity, backend=backend)
            self.attention = ChannelwiseAttention(product, values, keys, heads, width=width, radial=radial)
        both = {"value": FieldSpec("value", "node", str(values)), "h": fields["h"]}
        self.project = IrrepsLinear(both, irreps=str(self.gate.irreps_in) if gate else irreps)
        out = self.gate.irreps_out if gate else self.project.irreps_out
        self.declare(h=FieldSpec("h", "node", str(out), chiral=not parity))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: equivariant attention over the neighbors, projected together with the input."""
        distance, direction = polar(f["edge_vec"])
        attr = f["edge_attr"] if self.basis is None else self.basis(distance)
        value = self.attention(f["h"], self.query(f)["h"], direction, attr, f["edges"])
        h = self.project({"value": value, "h": f["h"]})["h"]
        return {"h": h if self.gate is None else self.gate(h)}

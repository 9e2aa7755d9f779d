"""Geometric vector perceptron layers: per node or edge, and as message passing (Jing et al. 2021)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from protgraph_plugins.gvp.perceptron import (
    GVP,
    ScalarVector,
    ScalarVectorDropout,
    ScalarVectorNorm,
    ScalarVectorWidths,
    VectorGate,
    vector_norms,
)
from torch import Tensor, nn
from torch.nn.functional import linear

from protgraph.data.graph import Conformity, FieldSpec
from protgraph.errors import OptionError, WiringError
from protgraph.nn import GraphLayer, named_irreps_blocks
from protgraph.ops import Edges, map_edge_blocks

__all__ = ["GVPConv", "GVPLayer"]
ENTRY_POINTS = {"protgraph.layers": {"gvp": "GVPLayer", "gvp_conv": "GVPConv"}}


class GVPLayer(GraphLayer):
    """Geometric vector perceptron of all scalars and vectors that it reads, per node or per edge.

    Embeds features of residues or edges for ``gvp_conv``:
    ``component("gvp", reads=["edge_rbf", "edge_direction"], irreps="32x0e+1x1o", writes={"h": "edge_attr"})``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Real scalars (0e, 0o) and vectors (1o) of one level; vectors may be missing if the output has none.
    irreps : str
        Output irreps, e.g. ``"64x0e+16x1o"``, or scalars only, ``"64x0e"``.
    hidden : int, optional
        Number of vectors inside; None: the larger of those of input and output.
    act : str
        Activation function of scalars.
    gate : {"norm", "scalar", "sigmoid_scalar", "none"}
        Gate of vectors, see :class:`protgraph_plugins.gvp.perceptron.GVP`.
    norm : bool
        Normalize the output. A single vector channel is not normalized, because its length carries its weight.

    Notes
    -----
    Reads (variadic): real fields, e.g. ``h`` ``(N, D)`` or ``orientation`` ``(N, 2, 3)``.
    Writes: ``h`` ``(N, irreps)``.

    References
    ----------
    Jing et al. 2021, arXiv:2009.01411, algorithm 1; its models begin with one without activation, then normalize.
    """

    variadic: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        irreps: str = "64x0e+16x1o",
        hidden: int | None = None,
        act: str = "none",
        gate: VectorGate = "scalar",
        norm: bool = True,
    ) -> None:
        super().__init__(fields)
        level = self.common_level()
        _check_fields(fields)
        channels: Counter[str] = Counter()
        for spec in fields.values():
            for mul, ir in spec.o3:
                channels[str(ir)] += mul
        widths_in = ScalarVectorWidths(channels["0e"] + channels["0o"], channels["1o"])
        out = FieldSpec("h", level, irreps, chiral="0o" in channels)
        widths_out = ScalarVectorWidths.of(out, "gvp")
        if not widths_in.scalars or (widths_out.vectors and not widths_in.vectors):
            raise WiringError(
                f"gvp cannot map {widths_in.irreps} to {widths_out.irreps}: both need scalars, and for an output "
                "with vectors the input needs vectors too."
            )
        self.gvp = GVP(widths_in, widths_out, hidden=hidden, act=act, gate=gate)
        self.norm = ScalarVectorNorm(widths_out.scalars, vectors=widths_out.vectors > 1) if norm else nn.Identity()
        self.declare(h=out.as_("h", irreps=widths_out.irreps))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, S + 3V)`` row by row."""
        return {"h": self._perceptron(*(f[name] for name in self.fields))}

    def _perceptron(self, *values: Tensor) -> Tensor:
        """Apply the perceptron to rows of the fields, in the order of their wiring."""
        scalar_blocks: list[Tensor] = []
        vector_blocks: list[Tensor] = []
        for value, spec in zip(values, self.fields.values(), strict=True):
            flat = value.flatten(1).to(self.gvp.ws.weight.dtype)
            blocks = named_irreps_blocks(spec.irreps)
            sizes = [mul * dim for mul, dim in blocks]
            for columns, (mul, dim) in zip(flat.split(sizes, 1), blocks, strict=True):
                if dim == 1:
                    scalar_blocks.append(columns)
                else:
                    vector_blocks.append(columns.unflatten(1, (mul, dim)).mT)
        scalars = torch.cat(scalar_blocks, 1)
        if vector_blocks:
            vectors = torch.cat(vector_blocks, 2)
        else:
            vectors = scalars.new_zeros(len(scalars), 3, 0)
        out = self.gvp(ScalarVector(scalars, vectors))
        return self.norm(out).pack()


class GVPConv(GraphLayer):
    """Message passing with geometric vector perceptrons (Jing et al. 2021).

    Scalars read the lengths of vectors and gate them: nodes keep directions, with perceptrons instead of tensor
    products.
    ``h ← norm(h + drop(mean_j M(h_j, e_ij, h_i)))``, ``h ← norm(h + drop(F(h)))``; M and F are stacks of GVPs.

    Parameters
    ----------
    depth : int
        Number of GVPs in M, at least 2; the last GVP of M and of F has no activation.
    act : str
        Activation function of scalars.
    gate : {"norm", "scalar", "sigmoid_scalar", "none"}
        Gate of vectors, see :class:`protgraph_plugins.gvp.perceptron.GVP`.
    dropout : float
        Dropout probability of scalars and of whole vectors.

    Notes
    -----
    Reads: ``h`` ``(N, S + 3 V)``, ``Sx0e+Vx1o``; ``edges``; ``edge_attr`` ``(E, D)``, scalars and optionally vectors.
    Optional, both or neither: ``encoding``, as h; ``decoding_rank`` ``(N,)`` int64. Then the layer is autoregressive:
    messages from nodes of a lower rank use h at both ends, all others the encoding at both ends.
    Writes: ``h``, of the same irreps. F has 4 S scalars and 2 V vectors inside.

    Equal to GVPConvLayer of the authors' code, also autoregressive (with the index of a node as its rank). Linear
    parts are computed on nodes: of the first GVP of M, W_h and W_s for h_i and h_j; of the last, W_s and, without a
    gate, W_v, after the mean over neighbors.

    References
    ----------
    Jing et al. 2021a, arXiv:2009.01411, eqs. 1–4; Jing et al. 2021b, arXiv:2106.03843, for ``gate="scalar"``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_attr")
    optional: ClassVar[tuple[str, ...]] = ("encoding", "decoding_rank")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(inputs={"h": "16x0e+4x1o", "encoding": "16x0e+4x1o"})

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        depth: int = 3,
        act: str = "relu",
        gate: VectorGate = "scalar",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        self.node = n = ScalarVectorWidths.of(fields["h"], "gvp_conv")
        self.edge = e = ScalarVectorWidths.of(fields["edge_attr"], "gvp_conv")
        if depth < 2 or not n.vectors:
            raise OptionError(f"gvp_conv: depth={depth}, h of {n.irreps}. It needs depth ≥ 2 and vectors in h.")
        fits = ("encoding" in fields) == ("decoding_rank" in fields)
        if "encoding" in fields:
            fits = fits and ScalarVectorWidths.of(fields["encoding"], "gvp_conv") == n
        if not fits:
            raise WiringError(
                f"gvp_conv reads {sorted(fields)}. Wire both 'encoding', with the irreps of h, and 'decoding_rank', "
                "or neither."
            )

        # Messages read the edge and both nodes.
        triple = ScalarVectorWidths(2 * n.scalars + e.scalars, 2 * n.vectors + e.vectors)
        self.first = GVP(triple, n, act=act, gate=gate)
        self._widths = [n.scalars, e.scalars, n.scalars, self.first.wh.out_features]
        self.middle = nn.Sequential(*(GVP(n, n, act=act, gate=gate) for _ in range(depth - 2)))
        self.last = GVP(n, n, act="none", gate=gate)

        # Updates read the node.
        wide = ScalarVectorWidths(4 * n.scalars, 2 * n.vectors)
        up = GVP(n, wide, act=act, gate=gate)
        down = GVP(wide, n, act="none", gate=gate)
        self.feed_forward = nn.Sequential(up, down)
        self.norms = nn.ModuleList([ScalarVectorNorm(n.scalars), ScalarVectorNorm(n.scalars)])
        self.dropout = ScalarVectorDropout(dropout)
        self.declare(h=fields["h"].as_("h", irreps=n.irreps))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, S + 3V)``: the mean message of the neighbors, then a feed-forward update."""
        h = ScalarVector.unpack(f["h"], self.node)
        e = ScalarVector.unpack(f["edge_attr"], self.edge)
        message = self._mean_message(h, e, f)
        return {"h": self._update(h, message)}

    def _update(self, h: ScalarVector, message: ScalarVector) -> Tensor:
        """Compute the output of rows from h and the mean of messages, ``(N, S + 3V)``."""
        h = self.norms[0](h + self.dropout(message))  # eqs. 1, 2
        h = self.norms[1](h + self.dropout(self.feed_forward(h)))  # eqs. 3, 4
        return h.pack()

    def _mean_message(self, h: ScalarVector, e: ScalarVector, f: Mapping[str, Any]) -> ScalarVector:
        """Compute ``mean_j M(h_j, e_ij, h_i)`` in blocks of nodes."""
        edges, pairs = f["edges"], [*self._first_linear(h)]
        if "encoding" in f:
            rank = f["decoding_rank"]
            pairs += [*self._first_linear(ScalarVector.unpack(f["encoding"], self.node)), (rank, -rank)]
        s, v = map_edge_blocks(self._block_message, edges, pairs=pairs, edge_values=[e.s, e.v])
        has_neighbors = edges.count.clamp(max=1).to(s.dtype).unsqueeze(1)  # (N, 1)
        return ScalarVector(s + has_neighbors * self.last.ws.bias, v)

    def _first_linear(self, h: ScalarVector) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Compute parts of V_h ``(N, 3 h)`` and of s' ``(N, S)`` of the first GVP, each from targets and from sources.

        The first GVP reads [h_j, e_ij, h_i]; its matrices are split.
        """
        node, gvp = self.node, self.first
        source, _, target = gvp.wh.weight.split([node.vectors, self.edge.vectors, node.vectors], 1)
        vectors = linear(h.v, target).flatten(1), linear(h.v, source).flatten(1)
        source, _, target, _ = gvp.ws.weight.split(self._widths, 1)
        return vectors, (linear(h.s, target, gvp.ws.bias), linear(h.s, source))

    def _block_message(self, edges: Edges, vh: Tensor, pair: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the mean of messages, except for the last bias of scalars, from sums of :meth:`_first_linear`."""
        *encoding, edge_s, edge_v = rest

        # Neighbors of a lower rank are read as decoded, the others as encoded.
        if encoding:
            encoding_vh, encoding_pair, order = encoding
            is_earlier = (order > 0).unsqueeze(1)
            vh = torch.where(is_earlier, vh, encoding_vh)
            pair = torch.where(is_earlier, pair, encoding_pair)

        # The first GVP: add the terms of the edge and of the lengths.
        gvp = self.first
        v = vh.unflatten(1, (3, -1))
        if self.edge.vectors:
            _, of_edge, _ = gvp.wh.weight.split([self.node.vectors, self.edge.vectors, self.node.vectors], 1)
            v = v + linear(edge_v, of_edge)
        _, of_scalars, _, of_lengths = gvp.ws.weight.split(self._widths, 1)
        inputs = torch.cat([edge_s, vector_norms(v)], 1)
        weight = torch.cat([of_scalars, of_lengths], 1)
        s = torch.addmm(pair, inputs, weight.t())

        return self._last(self.middle(gvp.finish(s, v)), edges.mean)

    def _last(self, m: ScalarVector, mean: Callable[[Tensor], Tensor]) -> ScalarVector:
        """Compute the mean over neighbors of a GVP without activation, except for the bias of its scalars."""
        gvp = self.last
        vh = gvp.wh(m.v)  # (E, 3, h)
        x = torch.cat([m.s, vector_norms(vh)], 1)  # (E, S + h)
        s = linear(mean(x), gvp.ws.weight)  # (N, S)
        if gvp.wsv is None:
            return ScalarVector(s, gvp.wv(mean(vh)))
        # W_g s' + b_g = (W_g W_s) [s, |V_h|] + (W_g b + b_g): no edge needs s' itself.
        weight = gvp.wsv.weight @ gvp.ws.weight
        bias = gvp.wsv(gvp.ws.bias)
        gate = linear(x, weight, bias).sigmoid()  # (E, V)
        return ScalarVector(s, mean(gvp.wv(vh) * gate.unsqueeze(1)))


def _check_fields(fields: Mapping[str, FieldSpec]) -> None:
    """Require real scalars and vectors."""
    for name, spec in fields.items():
        if spec.irreps in ("point", "index", "object") or spec.is_category:
            raise WiringError(f"gvp reads {name!r}, which has no real features. Add a layer 'embed' before.")
        if any(str(ir) not in ("0e", "0o", "1o") for _, ir in spec.o3):
            raise WiringError(f"gvp reads {name!r} as scalars and vectors, but it is {spec.irreps}.")

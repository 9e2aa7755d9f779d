"""Layers with the weights of OpenFold's modules."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.layers.attention import GlobalAttention
from protgraph.nn.layers.ipa import IPA
from protgraph.nn.layers.pair import OuterProductMean
from protgraph.nn.layers.triangle import TriangleAttention, TriangleMultiplication
from protgraph.nn.reference_weights import load_reference_state

__all__ = ["global_attention_of", "ipa_of", "outer_product_mean_of", "triangle_attention_of", "triangle_product_of"]


def global_attention_of(state: Mapping[str, Tensor]) -> GlobalAttention:
    """Build the layer that equals a ``GlobalAttention`` with output width c_hidden · heads."""
    dim, width = state["linear_q.weight"].shape
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "proteins": field("proteins")}
    layer = GlobalAttention(fields, dim=dim, heads=dim // len(state["linear_k.weight"]))
    load_reference_state(layer, state, "GlobalAttention")
    return layer


def ipa_of(state_dict: Mapping[str, Tensor], *, query_points: int, unit: float, pairs: str = "pair") -> IPA:
    """Build the layer that equals an ``InvariantPointAttention``.

    Pair features are read from ``pairs``: "pair", or "edge_attr" with edges. ``query_points`` is ``no_qk_points``, and
    ``unit`` the unit of positions, Å.
    """
    state = {name.replace(".linear.", "."): value for name, value in state_dict.items()}
    state.pop("linear_b.bias")  # cancelled by the softmax
    heads, (queries, width) = len(state["head_weights"]), state["linear_q.weight"].shape
    pair, dim = state["linear_b.weight"].size(1), len(state["linear_out.bias"])
    points = len(state["linear_kv_points.bias"]) // (3 * heads) - query_points
    fields = {name: field(name) for name in ("frame", "pos", "proteins")}
    fields["h"] = FieldSpec("h", "node", f"{width}x0e")
    fields[pairs] = FieldSpec(pairs, "edge" if pairs == "edge_attr" else "pair", f"{pair}x0e")
    if pairs == "edge_attr":
        fields["edges"] = field("edges")
    layer = IPA(
        fields, dim=dim, heads=heads, channels=queries // heads, value_points=points,
        query_points=query_points, unit=unit,
    )  # fmt: skip
    load_reference_state(layer, state, "InvariantPointAttention")
    return layer


def outer_product_mean_of(state: Mapping[str, Tensor]) -> OuterProductMean:
    """Build the layer that equals an ``OuterProductMean``."""
    (hidden, width), dim = state["linear_1.weight"].shape, len(state["linear_out.bias"])
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "proteins": field("proteins")}
    layer = OuterProductMean(fields, dim=dim, hidden=hidden)
    load_reference_state(layer, state, "OuterProductMean")
    return layer


def triangle_product_of(state: Mapping[str, Tensor], *, edges: str) -> TriangleMultiplication:
    """Build the layer that equals a ``TriangleMultiplicationOutgoing`` or ``…Incoming``."""
    hidden, width = state["linear_a_p.weight"].shape
    layer = TriangleMultiplication(_pair_fields(width), hidden=hidden, edges=edges)
    load_reference_state(layer, state, "TriangleMultiplication")
    return layer


def triangle_attention_of(state_dict: Mapping[str, Tensor], *, node: str) -> TriangleAttention:
    """Build the layer that equals a ``TriangleAttention`` with output width c_hidden · heads."""
    state = {name.removeprefix("mha."): value for name, value in state_dict.items()}
    heads, width = state["linear.weight"].shape
    layer = TriangleAttention(_pair_fields(width), heads=heads, node=node)
    load_reference_state(layer, state, "TriangleAttention")
    return layer


def _pair_fields(width: int) -> dict[str, FieldSpec]:
    return {"pair": FieldSpec("pair", "pair", f"{width}x0e"), "proteins": field("proteins")}

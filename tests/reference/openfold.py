"""Weights of OpenFold's modules in our layers."""

from __future__ import annotations

from collections.abc import Mapping

from protgraph_plugins.ipa.attention import IPA
from protgraph_plugins.ipa.frames import BackboneUpdate
from protgraph_plugins.structure_module.pair import OuterProductMean
from protgraph_plugins.structure_module.triangle import TriangleAttention, TriangleMultiplication
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.layers.attention import GlobalAttention
from protgraph.nn.reference_weights import load_reference_state, reference_errors, require_options
from protgraph.validation import check_choice

__all__ = [
    "load_backbone_update",
    "load_global_attention",
    "load_ipa",
    "load_outer_product_mean",
    "load_triangle_attention",
    "load_triangle_multiplication",
]

#: Options that the weights of OpenFold do not contain.
_REQUIRED = {"query_points": "an integer from 1, 4 in AlphaFold", "unit": "a length in Å, 10.0 in AlphaFold"}


def load_backbone_update(state_dict: Mapping[str, Tensor], *, unit: float | None = None) -> BackboneUpdate:
    """Build the layer from the state of an OpenFold ``BackboneUpdate``.

    ``unit`` is required, Å: the state does not contain the unit of its translations (10 in the structure module).
    """
    require_options("BackboneUpdate", {"unit": unit}, {"unit": "a length in Å, 10.0 in AlphaFold"})
    with reference_errors("BackboneUpdate"):
        width = state_dict["linear.weight"].size(1)
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "frame": field("frame"), "pos": field("pos")}
    layer = BackboneUpdate(fields, unit=unit)
    load_reference_state(layer, state_dict, "BackboneUpdate")
    return layer


def load_ipa(
    state_dict: Mapping[str, Tensor],
    *,
    query_points: int | None = None,
    unit: float | None = None,
    pairs: str = "pair",
) -> IPA:
    """Build the layer from the state of an OpenFold ``InvariantPointAttention``.

    Pair features are read from ``pairs``: "pair", or "edge_attr" with edges. Required, since the state does not
    contain them: ``query_points`` (``no_qk_points``) and ``unit``, Å, the unit of positions.
    """
    given = require_options("InvariantPointAttention", {"query_points": query_points, "unit": unit}, _REQUIRED)
    state = {name.replace(".linear.", "."): value for name, value in state_dict.items()}
    with reference_errors("InvariantPointAttention"):
        state.pop("linear_b.bias")  # cancelled by the softmax
        heads, (queries, width) = len(state["head_weights"]), state["linear_q.weight"].shape
        pair, dim = state["linear_b.weight"].size(1), len(state["linear_out.bias"])
        points = len(state["linear_kv_points.bias"]) // (3 * heads) - query_points
    on_edges = check_choice("pairs", pairs, ("pair", "edge_attr")) == "edge_attr"
    fields = {name: field(name) for name in ("frame", "pos", "proteins", "edges")[: 3 + on_edges]}
    fields |= {"h": FieldSpec("h", "node", f"{width}x0e")}
    fields |= {pairs: FieldSpec(pairs, "edge" if on_edges else "pair", f"{pair}x0e")}
    layer = IPA(fields, dim=dim, heads=heads, channels=queries // heads, value_points=points, **given)
    load_reference_state(layer, state, "InvariantPointAttention")
    return layer


def load_global_attention(state_dict: Mapping[str, Tensor]) -> GlobalAttention:
    """Build the layer from the state of an OpenFold ``GlobalAttention`` with output width c_hidden · heads."""
    with reference_errors("GlobalAttention"):
        dim, width = state_dict["linear_q.weight"].shape
        heads = dim // len(state_dict["linear_k.weight"])
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "proteins": field("proteins")}
    layer = GlobalAttention(fields, dim=dim, heads=heads)
    load_reference_state(layer, state_dict, "GlobalAttention")
    return layer


def load_outer_product_mean(state_dict: Mapping[str, Tensor]) -> OuterProductMean:
    """Build the layer from the state of an OpenFold ``OuterProductMean``."""
    with reference_errors("OuterProductMean"):
        (hidden, width), dim = state_dict["linear_1.weight"].shape, len(state_dict["linear_out.bias"])
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "proteins": field("proteins")}
    layer = OuterProductMean(fields, dim=dim, hidden=hidden)
    load_reference_state(layer, state_dict, "OuterProductMean")
    return layer


def load_triangle_multiplication(state_dict: Mapping[str, Tensor], *, edges: str) -> TriangleMultiplication:
    """Build the layer from an OpenFold ``TriangleMultiplicationOutgoing`` or ``…Incoming``."""
    with reference_errors("TriangleMultiplication"):
        hidden, width = state_dict["linear_a_p.weight"].shape
    layer = TriangleMultiplication(_fields(width), hidden=hidden, edges=edges)
    load_reference_state(layer, state_dict, "TriangleMultiplication")
    return layer


def load_triangle_attention(state_dict: Mapping[str, Tensor], *, node: str) -> TriangleAttention:
    """Build the layer from the state of an OpenFold ``TriangleAttention`` with output width c_hidden · heads."""
    state = {name.removeprefix("mha."): value for name, value in state_dict.items()}
    with reference_errors("TriangleAttention"):
        heads, width = state["linear.weight"].shape
    layer = TriangleAttention(_fields(width), heads=heads, node=node)
    load_reference_state(layer, state, "TriangleAttention")
    return layer


def _fields(width: int) -> dict[str, FieldSpec]:
    return {"pair": FieldSpec("pair", "pair", f"{width}x0e"), "proteins": field("proteins")}

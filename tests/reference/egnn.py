"""Weights of vgsatorras/egnn in our layer."""

from __future__ import annotations

from collections.abc import Mapping

from protgraph_plugins.egnn import EGNN
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.reference_weights import load_reference_state, reference_errors, require_options

__all__ = ["load_egcl"]


def load_egcl(
    state_dict: Mapping[str, Tensor],
    *,
    residual: bool | None = None,
    normalize: bool | None = None,
    tanh: bool | None = None,
    reduce: str | None = None,
) -> EGNN:
    """Build the layer from the state of an ``E_GCL`` of vgsatorras/egnn with SiLU.

    All options are required, since the state does not contain them: ``residual``, ``normalize``, ``tanh``, and
    ``reduce`` (``coords_agg`` of that code).
    """
    given = {"residual": residual, "normalize": normalize, "tanh": tanh, "reduce": reduce}
    choices = {"residual": (True, False), "normalize": (False, True), "tanh": (False, True)}
    require_options("E_GCL", given, choices | {"reduce": ("mean", "sum")})
    with reference_errors("E_GCL"):
        hidden, fan_in = state_dict["edge_mlp.0.weight"].shape
        width, dim = state_dict["node_mlp.0.weight"].size(1) - hidden, state_dict["node_mlp.2.weight"].size(0)
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "pos": field("pos"), "edges": field("edges")}
    if fan_in > 2 * width + 1:
        fields["edge_attr"] = FieldSpec("edge_attr", "edge", f"{fan_in - 2 * width - 1}x0e")
    layer = EGNN(
        fields,
        dim=dim,
        hidden=hidden,
        attention="att_mlp.0.weight" in state_dict,
        **given,
    )
    load_reference_state(layer, state_dict, "E_GCL")
    return layer

"""Weights of PyG's SchNet in our layer."""

from __future__ import annotations

from collections.abc import Mapping

from protgraph_plugins.schnet.layer import SchNet
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.reference_weights import check_parameter_names, load_reference_state, reference_errors

__all__ = ["load_interaction_block"]


def load_interaction_block(state_dict: Mapping[str, Tensor], *, cutoff: float) -> SchNet:
    """Build the layer from the state of a PyG ``InteractionBlock`` and its cutoff, Å."""
    check_parameter_names(
        state_dict, [r"(mlp\.[02]|conv\.nn\.[02]|lin|conv\.lin[12])\.(weight|bias)"], "InteractionBlock"
    )
    names = {"mlp.0.": "filter.0.", "mlp.2.": "filter.1.", "lin.": "lin."}  # conv.nn repeats mlp
    names |= {"conv.lin1.": "lin1.", "conv.lin2.": "lin2."}
    state = {
        new + key.removeprefix(old): value
        for key, value in state_dict.items()
        for old, new in names.items()
        if key.startswith(old)
    }
    with reference_errors("InteractionBlock"):
        filters, width = state["lin1.weight"].shape
        gaussians, dim = state["filter.0.weight"].size(1), state["lin.bias"].numel()
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "edges": field("edges"), "edge_dist": field("edge_dist")}
    layer = SchNet(fields, dim=dim, filters=filters, gaussians=gaussians, cutoff=cutoff)
    load_reference_state(layer, state, "InteractionBlock")
    return layer

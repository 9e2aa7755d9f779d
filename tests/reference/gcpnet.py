"""Weights of ProteinWorkshop's GCPNet in our layer."""

from __future__ import annotations

from collections.abc import Mapping

from protgraph_plugins.gcpnet.layers import GCPConv
from protgraph_plugins.gvp import ScalarVectorWidths
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.reference_weights import check_parameter_names, load_reference_state, reference_errors

__all__ = ["load_interaction_layer"]

# Theirs → ours.
NAMES = {"interaction.message_fusion.": "message.", "interaction.scalar_message_attention.0.": "attention."}
NAMES |= {"feedforward_network.": "feed_forward.", "gcp_norm.0.": "norm."}


def load_interaction_layer(state_dict: Mapping[str, Tensor], *, edge: ScalarVectorWidths, bottleneck: int) -> GCPConv:
    """Build the layer from the state of an interaction layer with post-normalization and without update of positions.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
    edge : ScalarVectorWidths
        Numbers of scalars and vectors of its edges.
    bottleneck : int
        Its bottlenecks, which are equal.
    """
    check_parameter_names(state_dict, [rf"{name}\S+" for name in NAMES], "GCPInteractions")
    state = {}
    for key, value in state_dict.items():
        old = next(name for name in NAMES if key.startswith(name))
        state[NAMES[old] + key.removeprefix(old)] = value
    with reference_errors("GCPInteractions"):
        node = ScalarVectorWidths(state["attention.weight"].size(1), state["message.0.vector_up.weight"].size(0))
    fields = {"h": FieldSpec("h", "node", node.irreps), "edges": field("edges")}
    fields["edge_attr"] = FieldSpec("edge_attr", "edge", edge.irreps)
    fields["edge_frame"] = FieldSpec("edge_frame", "edge", "3x1o", chiral=True)
    depth = len({key.split(".")[1] for key in state if key.startswith("message.")})
    layer = GCPConv(fields, depth=depth, bottleneck=bottleneck)
    load_reference_state(layer, state, "GCPInteractions")
    return layer

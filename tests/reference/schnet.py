"""Layers with the weights of PyG's SchNet."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.layers.schnet import SchNet
from protgraph.nn.reference_weights import load_reference_state

__all__ = ["schnet_of"]

#: Name in PyG → name here; ``conv.nn`` repeats ``mlp``.
_NAMES = {
    "mlp.0.": "filter.0.",
    "mlp.2.": "filter.1.",
    "lin.": "lin.",
    "conv.lin1.": "lin1.",
    "conv.lin2.": "lin2.",
}


def schnet_of(state_dict: Mapping[str, Tensor], *, cutoff: float) -> SchNet:
    """Build the layer that equals an ``InteractionBlock`` with this cutoff, Å."""
    state = {}
    for key, value in state_dict.items():
        for theirs, ours in _NAMES.items():
            if key.startswith(theirs):
                state[ours + key.removeprefix(theirs)] = value
    filters, width = state["lin1.weight"].shape
    gaussians, dim = state["filter.0.weight"].size(1), state["lin.bias"].numel()
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "edges": field("edges"), "edge_dist": field("edge_dist")}
    layer = SchNet(fields, dim=dim, filters=filters, gaussians=gaussians, cutoff=cutoff)
    load_reference_state(layer, state, "InteractionBlock")
    return layer

"""Layers with the weights of vgsatorras/egnn."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.layers.egnn import EGNN
from protgraph.nn.reference_weights import load_reference_state

__all__ = ["egnn_of"]


def egnn_of(state: Mapping[str, Tensor], *, residual: bool, normalize: bool, tanh: bool, reduce: str) -> EGNN:
    """Build the layer that equals an ``E_GCL`` with SiLU; ``reduce`` is ``coords_agg`` of that code."""
    hidden, fan_in = state["edge_mlp.0.weight"].shape
    width, dim = state["node_mlp.0.weight"].size(1) - hidden, state["node_mlp.2.weight"].size(0)
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "pos": field("pos"), "edges": field("edges")}
    if fan_in > 2 * width + 1:
        fields["edge_attr"] = FieldSpec("edge_attr", "edge", f"{fan_in - 2 * width - 1}x0e")
    attention = "att_mlp.0.weight" in state
    layer = EGNN(
        fields, dim=dim, hidden=hidden, attention=attention,
        residual=residual, normalize=normalize, tanh=tanh, reduce=reduce,
    )  # fmt: skip
    load_reference_state(layer, state, "E_GCL")
    return layer

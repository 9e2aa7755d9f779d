"""Weights of the authors' code of GVP-GNN (drorlab/gvp-pytorch)."""

from __future__ import annotations

from collections.abc import Mapping

from protgraph_plugins.gvp.layers import GVPConv
from protgraph_plugins.gvp.perceptron import ScalarVectorWidths
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field

__all__ = ["gvp_conv_from_reference"]


def gvp_conv_from_reference(
    state_dict: Mapping[str, Tensor],
    *,
    activations: tuple[str, str | None],
    autoregressive: bool,
) -> GVPConv:
    """Build the layer that equals a ``GVPConvLayer`` with two GVPs in its feed-forward network, with its weights.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        State of the layer; it shows whether ``vector_gate`` is set.
    activations : {("relu", "sigmoid"), ("relu", None)}
        The layer's ``activations``, of scalars and of vectors, which its state does not contain.
    autoregressive : bool
        The layer's ``autoregressive``, which its state does not contain. True: the layer reads ``encoding``, there
        ``autoregressive_x``, and ``decoding_rank``, there the index of a node.

    Returns
    -------
    GVPConv
        In the dtype of the weights.
    """
    depth = sum(k.startswith("conv.message_func.") and k.endswith("ws.bias") for k in state_dict)
    state = _renamed(state_dict, depth)
    node = ScalarVectorWidths(*(state[f"last.{w}.weight"].size(0) for w in ("ws", "wv")))
    hidden, vectors = state["first.wh.weight"].shape
    edge = ScalarVectorWidths(state["first.ws.weight"].size(1) - 2 * node.scalars - hidden, vectors - 2 * node.vectors)
    fields = {"h": FieldSpec("h", "node", node.irreps), "edges": field("edges")}
    fields["edge_attr"] = FieldSpec("edge_attr", "edge", edge.irreps)
    if autoregressive:
        fields |= {"encoding": FieldSpec("encoding", "node", node.irreps), "decoding_rank": field("decoding_rank")}
    gates = ("sigmoid_scalar", "scalar") if "last.wsv.weight" in state else ("norm", "none")
    layer = GVPConv(fields, depth=depth, act=activations[0], gate=gates[activations[1] is None])
    layer = layer.to(state["first.wh.weight"].dtype)
    layer.load_state_dict(state)
    return layer


def _renamed(state_dict: Mapping[str, Tensor], depth: int) -> dict[str, Tensor]:
    """Return the parameters by our names, without the empty "dummy_param" of that code."""
    names = {f"conv.message_func.{k}.": f"middle.{k - 1}." for k in range(1, depth - 1)}
    names |= {"conv.message_func.0.": "first.", f"conv.message_func.{depth - 1}.": "last."}
    names |= {"ff_func.": "feed_forward.", "norm.": "norms."}
    state = {}
    for key, value in state_dict.items():
        if value.numel():
            old = next(old for old in names if key.startswith(old))
            state[names[old] + key.removeprefix(old)] = value
    return state

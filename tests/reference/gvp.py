"""Weights of the authors' code of GVP-GNN (drorlab/gvp-pytorch)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import CheckpointError, OptionError
from protgraph.nn.gvp_modules import ScalarVectorWidths
from protgraph.nn.layers.gvp import GVPConv

__all__ = ["gvp_conv_from_reference"]

_ACTIVATIONS = (("relu", "sigmoid"), ("relu", None))


def gvp_conv_from_reference(
    state_dict: Mapping[str, Tensor],
    *,
    activations: tuple[str, str | None] | None = None,
    autoregressive: bool | None = None,
) -> GVPConv:
    """Build the layer that equals a ``GVPConvLayer`` with two GVPs in its feed-forward network, with its weights.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        State of the layer; it shows whether ``vector_gate`` is set.
    activations : {("relu", "sigmoid"), ("relu", None)}
        The layer's ``activations``, of scalars and of vectors, which its state does not contain. The first is that
        code's default.
    autoregressive : bool
        The layer's ``autoregressive``, which its state does not contain. True: the layer reads ``encoding``, there
        ``autoregressive_x``, and ``decoding_rank``, there the index of a node.

    Returns
    -------
    GVPConv
        In the dtype of the weights.

    Raises
    ------
    OptionError
        ``activations`` or ``autoregressive`` is missing or not supported.
    CheckpointError
        The state is that of another module.
    """
    if activations not in _ACTIVATIONS or not isinstance(autoregressive, bool):
        raise OptionError(
            f"weights of a GVPConvLayer: activations={activations!r}, autoregressive={autoregressive!r}, which the "
            f"weights do not contain. Allowed: activations={_ACTIVATIONS[0]!r} (default of that code) or "
            f"{_ACTIVATIONS[1]!r}; autoregressive=False or True."
        )
    depth = sum(k.startswith("conv.message_func.") and k.endswith("ws.bias") for k in state_dict)
    if depth < 2:
        raise CheckpointError(f"not the state of a GVPConvLayer with two or more GVPs: {sorted(state_dict)[:4]} ….")
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
    try:
        layer.load_state_dict(state)
    except RuntimeError as e:
        raise CheckpointError(f"not the state of a GVPConvLayer: {' '.join(str(e).split())}") from e
    return layer


def _renamed(state_dict: Mapping[str, Tensor], depth: int) -> dict[str, Tensor]:
    """Return the parameters by our names, without the empty "dummy_param" of that code."""
    names = {f"conv.message_func.{k}.": f"middle.{k - 1}." for k in range(1, depth - 1)}
    names |= {"conv.message_func.0.": "first.", f"conv.message_func.{depth - 1}.": "last."}
    names |= {"ff_func.": "feed_forward.", "norm.": "norms."}
    state = {}
    for key, value in state_dict.items():
        old = next((old for old in names if key.startswith(old)), None)
        if old is None and value.numel():
            raise CheckpointError(f"not the state of a GVPConvLayer: it has the parameter {key!r}.")
        if old is not None and value.numel():
            state[names[old] + key.removeprefix(old)] = value
    return state

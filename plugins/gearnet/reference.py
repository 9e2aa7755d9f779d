"""Build layers with the weights of TorchDrug's GearNet."""

from __future__ import annotations

import re
from collections.abc import Mapping

from protgraph_plugins.gearnet.layers import GearNet, GearNetEdge
from torch import Tensor, nn

from protgraph import FieldSpec, field
from protgraph.errors import CheckpointError
from protgraph.nn import check_parameter_names, reference_errors, require_options

__all__ = ["layers_from_torchdrug"]


def layers_from_torchdrug(
    state_dict: Mapping[str, Tensor], *, shortcut: bool | None = None, reduce: str | None = None
) -> list[GearNet | GearNetEdge]:
    """Build the layers of a network, in the order of execution.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        State of TorchDrug's ``GearNet``: ``layers.k``, optionally ``edge_layers.k`` and ``batch_norms.k``; or of one
        ``GeometricRelationalGraphConv`` or ``RelationalGraphConv``.
    shortcut : bool
        Option ``short_cut`` of GearNet, False in that code; required for a network. Applied to layers of equal widths.
    reduce : {"sum", "mean"}
        Required for one convolution: "sum" for a ``GeometricRelationalGraphConv``, "mean" for a
        ``RelationalGraphConv``.

    Returns
    -------
    list of GearNet and GearNetEdge
        In the dtype of the weights and in evaluation mode. An edge layer writes edge_h for the node layer after it. The
        output is the h of the last node layer, or of all of them with ``concat_hidden``.

    Raises
    ------
    OptionError
        ``shortcut`` or ``reduce``, which the state does not contain, is missing.
    CheckpointError
        Names or shapes do not match.
    """
    if "linear.weight" in state_dict:
        require_options("one convolution of GearNet", {"reduce": reduce}, {"reduce": ("sum", "mean")})
        return [_nodes(state_dict, {}, edges=False, shortcut=False, reduce=reduce)]
    require_options("GearNet", {"shortcut": shortcut}, {"shortcut": (False, True)})
    check_parameter_names(state_dict, [r"(layers|edge_layers|batch_norms)\.\d+\..+"], "GearNet")
    layers: list[GearNet | GearNetEdge] = []
    for k in sorted({int(match[1]) for name in state_dict if (match := re.match(r"layers\.(\d+)\.", name))}):
        conv, on_edges, norm = (_part(state_dict, f"{kind}.{k}.") for kind in ("layers", "edge_layers", "batch_norms"))
        if on_edges:
            layers.append(_edges(on_edges))
        layers.append(_nodes(conv, norm, edges=bool(on_edges), shortcut=shortcut, reduce="sum"))
    if not layers:
        raise CheckpointError(f"not a state of GearNet: {sorted(state_dict)[:4]} …. It has no relational convolution.")
    return layers


def _nodes(
    conv: Mapping[str, Tensor], norm: Mapping[str, Tensor], *, edges: bool, shortcut: bool, reduce: str
) -> GearNet:
    dim, width, relations = _shape(conv)
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "edges": field("edges")}
    fields["edge_kind"] = FieldSpec("edge_kind", "edge", f"{relations}x0e")
    if edges:
        fields["edge_h"] = FieldSpec("edge_h", "edge", f"{width}x0e")
    if "edge_linear.weight" in conv:
        fields["edge_attr"] = FieldSpec("edge_attr", "edge", f"{conv['edge_linear.weight'].size(1)}x0e")
    kind = "inside" if "batch_norm.weight" in conv else "none"
    layer = GearNet(fields, dim=dim, norm="batch" if norm else kind, shortcut=shortcut and width == dim, reduce=reduce)
    _load(layer.conv, conv)
    if norm:
        _load(layer.norm, norm)
    return layer.eval()


def _edges(conv: Mapping[str, Tensor]) -> GearNetEdge:
    dim, width, bins = _shape(conv)
    fields = {"edge_h": FieldSpec("edge_h", "edge", f"{width}x0e")} | {n: field(n) for n in ("edge_vec", "edges")}
    layer = GearNetEdge(fields, dim=dim, bins=bins, norm="batch" if "batch_norm.weight" in conv else "none")
    _load(layer.conv, conv)
    return layer.eval()


def _shape(conv: Mapping[str, Tensor]) -> tuple[int, int, int]:
    """Return the widths of output and input, and the number of relations."""
    with reference_errors("GearNet"):
        dim, width = conv["self_loop.weight"].shape
        return dim, width, conv["linear.weight"].size(1) // width


def _load(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    try:
        module.to(next(v.dtype for v in state.values() if v.is_floating_point())).load_state_dict(state)
    except RuntimeError as e:
        message = " ".join(str(e).split())
        raise CheckpointError(f"weights do not fit gearnet: {message}.") from e


def _part(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}

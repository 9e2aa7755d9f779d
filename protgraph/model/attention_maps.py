"""Attention maps of a model: the recorded weights of its layers as maps from residues to residues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from protgraph.errors import WiringError
from protgraph.model.spec import WiredComponent
from protgraph.nn.attention_recorder import AttentionWeights
from protgraph.nn.module import GraphLayer
from protgraph.ops import Proteins

__all__ = ["AttentionMap", "attention_maps"]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention of the residues of one protein to each other.

    ``weights``: ``(heads, L, L)``: weight of residue j (column) in the sum of residue i (row). Rows sum to 1, unless
    the layer has special tokens or a residue attends to nothing. ``visible``: ``(L, L)`` bool, whether i may attend to
    j (e.g. along edges or within chains); None: all pairs.
    """

    weights: Tensor
    visible: Tensor | None = None


def attention_maps(
    name: str,
    wires: Sequence[WiredComponent],
    layers: Sequence[GraphLayer],
    recorded: Mapping[str, Sequence[AttentionWeights]],
    proteins: Proteins,
) -> dict[str, list[AttentionMap]]:
    """Convert recorded attention weights to maps by layer path.

    Attention of a few queries to all residues, i.e. pooling, is omitted.
    """
    maps: dict[str, list[AttentionMap]] = {}
    sizes = [(n, n) for n in proteins.sizes]
    for path, calls in recorded.items():
        number, *submodules = path.split(".")
        wire = wires[int(number)]
        special_tokens = layers[int(number)].special_tokens
        where = _path_of(wire, submodules)
        for call, attention in enumerate(calls, 1):
            layer_maps = []
            for weights, visible in attention.dense(proteins):
                layer_maps.append(_of_residues(weights, visible, special_tokens))
            is_between_residues = [m.weights.shape[1:] for m in layer_maps] == sizes
            if is_between_residues:
                name_of_call = f", call {call}" if len(calls) > 1 else ""
                maps[f"{where} ({wire.component.name}{name_of_call})"] = layer_maps
    if not maps:
        names = ", ".join(w.component.name for w in wires) or "none"
        raise WiringError(
            f"model {name!r} has no layer with attention between residues; its layers: {names}. "
            "Models with attention: transformer, graph_transformer, gat, ipa, se3_transformer."
        )
    return maps


def _path_of(wire: WiredComponent, submodules: Sequence[str]) -> str:
    """Return the path of an attention module in its layer."""
    names = [name for name in submodules if name != "attention"]
    return ".".join([wire.path, *names])


def _of_residues(weights: Tensor, visible: Tensor | None, special: tuple[int, int]) -> AttentionMap:
    """Remove the rows and columns of special tokens."""
    rows, columns = (slice(special[0], n - special[1]) for n in weights.shape[1:])
    return AttentionMap(weights[:, rows, columns], None if visible is None else visible[rows, columns])

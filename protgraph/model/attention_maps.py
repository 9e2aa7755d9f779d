"""The attention of a model's layers as maps of residues to residues."""

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
    """How much each residue of a protein takes from each other one.

    Parameters
    ----------
    weights : Tensor
        ``(heads, L, L)``: residue i (rows) takes ``weights[:, i, j]`` from residue j. Rows sum to 1 where a layer has
        no tokens besides residues, and a residue anything to see.
    visible : Tensor, optional
        ``(L, L)`` bool, whether j can be seen from i at all (attention along edges, or within chains); None: always.
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
    """What the layers told in one pass of a model, as maps by path.

    Attention of few queries to all residues, which pools a protein, is no map of residues and left out.

    Raises
    ------
    WiringError
        There is no map.
    """
    maps: dict[str, list[AttentionMap]] = {}
    for path, calls in recorded.items():
        number, *inside = path.split(".")
        wire, layer = wires[int(number)], layers[int(number)]
        where = ".".join([wire.path, *(part for part in inside if part != "attention")])
        for call, weights in enumerate(calls, 1):
            found = [_of_residues(w, visible, layer.special_tokens) for w, visible in weights.dense(proteins)]
            if [m.weights.shape[1:] for m in found] == [(n, n) for n in proteins.sizes]:
                again = f", call {call}" if len(calls) > 1 else ""
                maps[f"{where} ({wire.component.name}{again})"] = found
    if not maps:
        there = ", ".join(w.component.name for w in wires) or "none"
        raise WiringError(
            f"model {name!r} has no layer with attention from residues to residues; its layers: {there}.\n"
            "Models that have some: transformer, graph_transformer, gat, ipa, se3_transformer."
        )
    return maps


def _of_residues(weights: Tensor, visible: Tensor | None, special: tuple[int, int]) -> AttentionMap:
    """Without the rows and columns of special tokens."""
    rows, columns = (slice(special[0], n - special[1]) for n in weights.shape[1:])
    return AttentionMap(weights[:, rows, columns], None if visible is None else visible[rows, columns])

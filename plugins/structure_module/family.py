"""AlphaFold's way from a sequence to a structure: pairs of residues, then rigid bodies that move to their places."""

from __future__ import annotations

from protgraph import Family, ModelGraph, Node, node

__all__ = ["FAMILY"]


def _network(
    name: str, *, dim: int = 64, pair: int = 16, heads: int = 4, blocks: int = 1, depth: int = 3
) -> ModelGraph:
    """``blocks`` of pairs, then ``depth`` iterations of algorithm 20, each with weights of its own."""
    pairs = {"pair": "pair"}
    layers: list[Node | str] = [
        node("embed", reads=["aatype"], dim=dim),
        node("pair_embed", dim=pair),
        *blocks * [node("evoformer_pair", heads=heads, pair_heads=heads)],
        "layer_norm",  # lines 1 and 3
        node("linear", dim=dim),
    ]
    where: dict[str, str] = {}  # at the origin: "black hole initialisation", line 4
    for _ in range(depth):
        layers += [
            node("ipa", dim=dim, heads=heads, reads=pairs | where, writes={"h": "attended"}),  # line 6
            node("residual", act="none", dropout=0.1, reads={"update": "attended"}),  # line 7
            node("mlp", depth=3, hidden=dim, act="relu", writes={"h": "forward"}),  # line 8
            node("residual", act="none", dropout=0.1, reads={"update": "forward"}),  # line 9
            node("backbone_update", reads=where, writes={"frame": "placed_frame", "pos": "placed"}),  # line 10
        ]
        where = {"frame": "placed_frame", "pos": "placed"}
    layers.append(node("place_backbone", reads=where, writes={"backbone": "placed_backbone"}))
    return ModelGraph(
        name,
        features=[],
        layers=layers,
        readout={"h": "h", "pos": "placed_backbone"},
        doc="Backbones from sequences alone; Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, algorithms 20–23.",
    )


FAMILY = Family(
    {
        "small": _network("structure_module"),
        "deep": _network("structure_module.deep", dim=128, pair=64, heads=8, blocks=4, depth=8),
    },
    doc="From sequences to backbones.",
)

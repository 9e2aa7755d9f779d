"""Model family of AlphaFold 2's structure module: a pair representation, then updates of residue frames."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"structure_module": "FAMILY"}}


def _network(name: str, *, dim: int = 64, pair: int = 16, heads: int = 4, blocks: int = 1, depth: int = 3) -> ModelSpec:
    """Return ``blocks`` of pair updates, then ``depth`` iterations of algorithm 20 with separate weights."""
    pairs = {"pair": "pair"}
    layers: list[ComponentSpec | str] = [
        component("embed", reads=["aatype"], dim=dim),
        component("pair_embed", dim=pair),
        *blocks * [component("evoformer_pair", heads=heads, pair_heads=heads)],
        "layer_norm",  # lines 1 and 3
        component("linear", dim=dim),
    ]
    where: dict[str, str] = {}  # at the origin: "black hole initialization", line 4
    for _ in range(depth):
        layers += [
            component("ipa", dim=dim, heads=heads, reads=pairs | where, writes={"h": "attended"}),  # line 6
            component("residual", act="none", dropout=0.1, reads={"update": "attended"}),  # line 7
            component("mlp", depth=3, hidden=dim, act="relu", writes={"h": "forward"}),  # line 8
            component("residual", act="none", dropout=0.1, reads={"update": "forward"}),  # line 9
            component("backbone_update", reads=where, writes={"frame": "placed_frame", "pos": "placed"}),  # line 10
        ]
        where = {"frame": "placed_frame", "pos": "placed"}
    layers.append(component("place_backbone", reads=where, writes={"backbone": "placed_backbone"}))
    return ModelSpec(
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
    doc="Backbone prediction from the sequence.",
)

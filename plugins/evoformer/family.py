"""Model family of the Evoformer: an alignment and pairs of residues, for labels per residue and contacts."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"evoformer": "FAMILY"}}

_EXTRA = {"alignment": "extra_alignment", "alignment_deletions": "extra_alignment_deletions"}


def _network(
    name: str,
    *,
    dim: int = 32,
    pair: int = 16,
    heads: int = 4,
    blocks: int = 1,
    rows: int = 32,
    extra_rows: int = 0,
    recycles: int = 0,
) -> ModelSpec:
    """Return a network whose pairs first read ``extra_rows`` further sequences, then ``rows`` of them."""
    features = [component("alignment", rows=rows)]
    layers: list[ComponentSpec | str] = [
        component("embed", reads=["aatype"], dim=dim),
        component("pair_embed", dim=pair),
    ]
    if extra_rows:
        features.append(component("extra_alignment", rows=extra_rows))
        layers += [
            component("msa_embed", dim=dim // 2, reads=_EXTRA, writes={"msa": "extra", "msa_mask": "extra_mask"}),
            component(
                "evoformer",
                heads=heads,
                pair_heads=heads,
                global_columns=True,
                reads={"msa": "extra", "msa_mask": "extra_mask"},
                writes={"msa": "extra_update", "h": "extra_first"},
            ),
        ]
    layers += [
        component("msa_embed", dim=dim),
        component("evoformer", blocks=blocks, heads=heads, pair_heads=heads, recycles=recycles),
        "layer_norm",
        component("linear", dim=dim),
        # Pairs reach the residues by attention of the structure module, whose residues are all at the origin.
        component("ipa", dim=dim, heads=heads, reads={"pair": "pair"}, writes={"h": "attended"}),
        component("residual", act="none", reads={"update": "attended"}),
    ]
    return ModelSpec(
        name,
        features=features,
        layers=layers,
        doc="The Evoformer on an alignment; Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, algorithms 6–15.",
    )


FAMILY = Family(
    {
        "small": _network("evoformer"),
        "deep": _network("evoformer.deep", dim=64, pair=32, heads=8, blocks=4, rows=128, extra_rows=512, recycles=1),
    },
    doc="The Evoformer on alignments.",
)

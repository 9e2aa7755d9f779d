"""Model family of bidirectional transformers for masked residues. No coordinates."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"bert": "FAMILY"}}

_ESM2 = "ESM-2's transformer encoder, rotary positions, pre-norm; Lin et al. 2023, doi:10.1126/science.ade2574."


def _esm2(name: str, *, dim: int, heads: int, depth: int, dropout: float = 0.0) -> ModelSpec:
    reads = {"chain": "chain", "masked": "masked"}
    encoder = component("encoder", dim=dim, heads=heads, depth=depth, position="rotary", dropout=dropout, reads=reads)
    head = {"hidden": [dim], "act": "gelu"}
    return ModelSpec(name, layers=[encoder], heads={"node_classifier": head}, doc=_ESM2)


_DEVLIN = ModelSpec(
    "bert.devlin2019",
    layers=[
        component(
            "encoder",
            dim=768,
            heads=12,
            depth=12,
            position="learned",
            norm="post",
            token_dropout=False,
            max_len=2048,
            dropout=0.1,
            reads={"masked": "masked"},
        )
    ],
    heads={"node_classifier": {"hidden": [768], "act": "gelu"}},
    doc="BERT base: learned positions, post-norm; Devlin et al. 2019, arXiv:1810.04805.",
)

FAMILY = Family(
    {
        "small": _esm2("bert", dim=96, heads=6, depth=4, dropout=0.1),
        "esm2_8m": _esm2("bert.esm2_8m", dim=320, heads=20, depth=6),
        "devlin2019": _DEVLIN,
    },
    doc="Masked language models of sequences.",
)

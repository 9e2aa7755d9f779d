"""Transformers: every residue attends to every other of its protein; no edges, positions come from the sequence."""

from __future__ import annotations

from protgraph import Family, ModelGraph, node

__all__ = ["FAMILY"]


def _network(name: str, *, dim: int = 64, heads: int = 4, depth: int = 3, dropout: float = 0.1) -> ModelGraph:
    residue = ["aatype", "dihedral", "dihedral_mask", "ca_density", "sequence_position"]
    block = [
        node("layer_norm", writes={"h": "normed"}),
        node("transformer", dim=dim, heads=heads, root=False, reads={"h": "normed"}, writes={"h": "attended"}),
        node("linear", dim=dim, reads={"h": "attended"}, writes={"h": "attended"}),
        node("residual", act="none", norm="none", dropout=dropout, reads={"update": "attended"}),
        node("layer_norm", writes={"h": "normed"}),
        node("mlp", hidden=2 * dim, reads={"h": "normed"}, writes={"h": "forward"}),
        node("residual", act="none", norm="none", dropout=dropout, reads={"update": "forward"}),
    ]
    return ModelGraph(
        name,
        features=["dihedral", "ca_density", "sequence_position"],
        layers=[
            node("embed", reads=residue, dim=dim),
            *depth * block,
            "layer_norm",
        ],
        doc="Pre-norm transformer encoder over the residues of a protein; Vaswani et al. 2017, arXiv:1706.03762.",
    )


FAMILY = Family(
    {"small": _network("transformer"), "base": _network("transformer.base", dim=256, heads=8, depth=6)},
    doc="Transformers over whole proteins.",
)

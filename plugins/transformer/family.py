"""Model family of transformers: attention between all residues of a protein, without edges."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"transformer": "FAMILY"}}


def _network(name: str, *, dim: int = 64, heads: int = 4, depth: int = 3, dropout: float = 0.1) -> ModelSpec:
    residue = ["aatype", "dihedral", "dihedral_mask", "ca_density"]
    block = component("pre_norm_block", heads=heads, hidden=2 * dim, dropout=dropout, reads={"seq_pos": "seq_pos"})
    return ModelSpec(
        name,
        features=["dihedral", "ca_density"],
        layers=[
            component("embed", reads=residue, dim=dim),
            *depth * [block],
            "layer_norm",
        ],
        doc="Pre-norm transformer encoder over the residues of a protein; Vaswani et al. 2017, arXiv:1706.03762.",
    )


FAMILY = Family(
    {"small": _network("transformer"), "base": _network("transformer.base", dim=256, heads=8, depth=6)},
    doc="Transformers over whole proteins.",
)

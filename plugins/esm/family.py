"""Model families on ESM-2: probes on embeddings, fine-tuning, and a hybrid with message passing."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY", "HYBRID"]
ENTRY_POINTS = {"protgraph.models": {"esm": "FAMILY", "esm_hybrid": "HYBRID"}}

_8M, _650M, _RANDOM = "facebook/esm2_t6_8M_UR50D", "facebook/esm2_t33_650M_UR50D", "random:tiny"
_RESIDUES = "Lin et al. 2023, doi:10.1126/science.ade2574"


def _probe(name: str, checkpoint: str, *, dim: int = 128, dropout: float = 0.1, doc: str) -> ModelSpec:
    """Return two dense layers on stored embeddings, without coordinates."""
    return ModelSpec(
        name,
        features=[component("esm_embedding", checkpoint=checkpoint)],
        layers=[
            component("layer_norm", reads={"h": "esm_embedding"}),
            component("mlp", dim=dim, hidden=2 * dim, depth=2, act="gelu", dropout=dropout),
        ],
        doc=doc,
    )


def _tuned(name: str, checkpoint: str, *, frozen: bool, doc: str) -> ModelSpec:
    return ModelSpec(name, layers=[component("esm_encoder", checkpoint=checkpoint, frozen=frozen)], doc=doc)


def _hybrid(name: str, checkpoint: str, *, dim: int = 64, depth: int = 3, dropout: float = 0.1, doc: str) -> ModelSpec:
    """Return the network of ``mpnn`` with embeddings in place of residue types."""
    block = [
        component("mpnn", dim=dim, aggregate="mean", reads={"edge_attr": "edge_attr"}, writes={"h": "message"}),
        component("residual", dropout=dropout, reads={"update": "message"}),
    ]
    features = ["dihedral", "ca_density", component("knn", k=16), "edge_distance", component("edge_rbf", bins=16)]
    residue = ["normed", "dihedral", "dihedral_mask", "ca_density"]
    return ModelSpec(
        name,
        features=[component("esm_embedding", checkpoint=checkpoint), *features, "edge_offset"],
        layers=[
            component("layer_norm", reads={"h": "esm_embedding"}, writes={"h": "normed"}),
            component("embed", reads=residue, dim=dim),
            component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
            *depth * block,
        ],
        doc=doc,
    )


FAMILY = Family(
    {
        "esm2_8m": _probe("esm", _8M, doc=f"Dense layers on embeddings of ESM-2 8M; {_RESIDUES}."),
        "esm2_650m": _probe("esm.esm2_650m", _650M, doc=f"Dense layers on embeddings of ESM-2 650M; {_RESIDUES}."),
        "finetune_8m": _tuned("esm.finetune_8m", _8M, frozen=False, doc="ESM-2 8M, all of it trained."),
        "frozen_8m": _tuned("esm.frozen_8m", _8M, frozen=True, doc="A head on frozen ESM-2 8M."),
        "random": _probe(
            "esm.random", _RANDOM, doc="Dense layers on a small random ESM (control without pretraining)."
        ),
        "finetune_random": _tuned(
            "esm.finetune_random", _RANDOM, frozen=False, doc="A small ESM, trained from scratch."
        ),
    },
    doc="Embeddings of a protein language model, from the sequence alone.",
)
HYBRID = Family(
    {
        "esm2_8m": _hybrid("esm_hybrid", _8M, doc="Message passing in space over embeddings of ESM-2 8M."),
        "esm2_650m": _hybrid("esm_hybrid.esm2_650m", _650M, doc="The same over embeddings of ESM-2 650M."),
        "random": _hybrid(
            "esm_hybrid.random", _RANDOM, doc="The same over a small random ESM (control without pretraining)."
        ),
    },
    doc="A protein language model and a structure graph.",
)

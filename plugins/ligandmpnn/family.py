"""Model family of LigandMPNN: ProteinMPNN's encoders, two rounds of messages from context atoms, its decoder."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY", "VARIANTS"]
ENTRY_POINTS = {"protgraph.models": {"ligandmpnn": "FAMILY"}}

PAPER = "Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1"
#: Variant → file of the distribution ``ligandmpnn``.
VARIANTS = {f"v_32_{level}_25": f"ligandmpnn_v_32_{level}_25.pt" for level in ("005", "010", "020", "030")}
#: Element that the published weights were not trained on: the program's table of symbols has "Mb" at 42.
UNSEEN = "MO"
#: Nearest residues of each residue whose known side-chain atoms are context atoms, as in the published program.
SIDECHAINS = 16


def _features(k: int, atoms: int, **context: object) -> list[ComponentSpec | str]:
    return [
        component("backbone_knn", k=k),
        "virtual_cb",
        "atom_pair_rbf",
        "relative_position",
        "decoding_rank",
        component("context_atoms", k=atoms, **context),
        component("context_rbf", k=atoms),
        component("context_pair_rbf", k=atoms),
        component("context_direction", k=atoms),
        component("context_periodic", k=atoms),
    ]


def _network(
    name: str,
    *,
    dim: int = 128,
    depth: int = 3,
    k: int = 32,
    atoms: int = 25,
    rounds: int = 2,
    dropout: float = 0.1,
    weights: str = "",
    doc: str = PAPER,
    **context: object,
) -> ModelSpec:
    elements = ["context_element", "context_group", "context_period"]
    edge_inputs = ["context_rbf", "context_direction", *elements]
    context_round = [
        component("context_atom_encoder", dropout=dropout),
        component("context_encoder", dropout=dropout, reads={"h": "h_context"}, writes={"h": "h_context"}),
    ]
    return ModelSpec(
        name,
        features=_features(k, atoms, **context),
        layers=[
            component("embed", reads=["relative_position"], dim=16, writes={"h": "edge_position"}),
            component("embed", reads=["edge_position", "atom_pair_rbf"], dim=dim, writes={"h": "edge_attr"}),
            component("layer_norm", reads={"h": "edge_attr"}, writes={"h": "edge_attr"}),
            component("linear", reads={"h": "edge_attr"}, writes={"h": "edge_attr"}, dim=dim),
            component("proteinmpnn_encoder", dim=dim, dropout=dropout),
            *(depth - 1) * [component("proteinmpnn_encoder", dropout=dropout, reads={"h": "h"})],
            component("context_embed", reads=edge_inputs, dim=dim, writes={"context": "context_attr"}),
            component("context_embed", reads=elements, dim=dim, writes={"context": "context_h"}),
            component("linear", dim=dim, writes={"h": "h_context"}),
            *rounds * context_round,
            component("linear", dim=dim, bias=False, reads={"h": "h_context"}, writes={"h": "h_context"}),
            component("layer_norm", reads={"h": "h_context"}, writes={"h": "h_context"}),
            component("add", reads=["h", "h_context"], writes={"h": "h"}),
            component("proteinmpnn_decoder", depth=depth, dropout=dropout),
        ],
        weights=weights,
        doc=doc,
    )


def _published(variant: str) -> ModelSpec:
    return _network(
        f"ligandmpnn.{variant}",
        omit=UNSEEN,
        sidechains=SIDECHAINS,
        weights="protgraph_plugins.ligandmpnn.weights:load_ligandmpnn",
        doc=f"{PAPER}: trained on PDB assemblies with noise of 0.{variant.split('_')[2][1:]} Å; published weights.",
    )


FAMILY = Family(
    {
        "small": _network(
            "ligandmpnn", dim=64, depth=2, k=24, atoms=12, doc=f"{PAPER}: half as wide, 24 neighbors, 12 atoms."
        ),
        "dauparas2025": _network("ligandmpnn.dauparas2025"),
        **{variant: _published(variant) for variant in VARIANTS},
    },
    doc="ProteinMPNN with the 25 nearest atoms of ligands, ions and nucleotides of each residue.",
)

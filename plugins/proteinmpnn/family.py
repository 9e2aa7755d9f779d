"""Model family of ProteinMPNN: edges from atom distances, three encoders and a decoder of residue types."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY", "VARIANTS"]
ENTRY_POINTS = {"protgraph.models": {"proteinmpnn": "FAMILY"}}

PAPER = "Dauparas et al. 2022, doi:10.1126/science.add2187"
LEVELS = ("002", "010", "020", "030")
_PUBLISHED = {f"v_48_{level}": f"vanilla_model_weights/v_48_{level}.pt" for level in LEVELS}
CA_VARIANTS = {f"ca_v_48_{level}": f"ca_model_weights/v_48_{level}.pt" for level in LEVELS[:3]}
#: Variant → folder of the distribution ``proteinmpnn``, and file.
VARIANTS = dict(_PUBLISHED)
VARIANTS |= {f"soluble_v_48_{level}": f"soluble_model_weights/v_48_{level}.pt" for level in LEVELS}
VARIANTS |= {f"exact_{name}": file for name, file in _PUBLISHED.items()}
VARIANTS |= CA_VARIANTS
VARIANTS |= {name.replace("ca_", "ca_corrected_"): file for name, file in CA_VARIANTS.items()}


def _network(
    name: str,
    *,
    dim: int = 128,
    depth: int = 3,
    k: int = 48,
    dropout: float = 0.1,
    trace: str = "",
    exact: bool = False,
    weights: str = "",
    doc: str = PAPER,
) -> ModelSpec:
    """Return the network on whole backbones, or on CA only if ``trace`` is "published" or "corrected".

    ``exact`` takes unresolved and incomplete residues as neighbors, as the published program does.
    """
    options = {"corrected": trace == "corrected"}
    more = {"unresolved": True} if exact else {}
    seen, read = ["virtual_cb", component("atom_pair_rbf", **more)], ["atom_pair_rbf"]
    if trace:
        read = ["ca_pair_rbf", "ca_orientation"]
        seen = ["chain_rank", *(component(name, **options) for name in read)]
    first, *encoders = [component("proteinmpnn_encoder", dim=dim, dropout=dropout, **more)] + (depth - 1) * [
        component("proteinmpnn_encoder", dropout=dropout, **more, reads={"h": "h"})
    ]
    return ModelSpec(
        name,
        features=[
            component("backbone_knn", k=k, atoms="ca" if trace else "backbone", **more),
            *seen,
            "relative_position",
            "decoding_rank",
        ],
        layers=[
            component("embed", reads=["relative_position"], dim=16, writes={"h": "edge_position"}),
            component("embed", reads=["edge_position", *read], dim=dim, writes={"h": "edge_attr"}),
            component("layer_norm", reads={"h": "edge_attr"}, writes={"h": "edge_attr"}),
            component("linear", reads={"h": "edge_attr"}, writes={"h": "edge_attr"}, dim=dim),
            first,
            *encoders,
            component("proteinmpnn_decoder", depth=depth, dropout=dropout, **more),
        ],
        weights=weights,
        doc=doc,
    )


def _published(variant: str) -> ModelSpec:
    kind = "SolubleMPNN, trained on soluble proteins" if variant.startswith("soluble") else "trained on PDB assemblies"
    trace, exact = "", variant.startswith("exact_")
    kind += ", unresolved residues as neighbors of small proteins, as in the published program" if exact else ""
    if variant.startswith("ca_"):
        trace = "corrected" if "corrected" in variant else "published"
        kind += f", on CA alone, features {'as published, with their defects' if trace == 'published' else 'corrected'}"
    return _network(
        f"proteinmpnn.{variant}",
        trace=trace,
        exact=exact,
        weights="protgraph_plugins.proteinmpnn.weights:load_proteinmpnn",
        doc=f"{PAPER}: {kind} with noise of 0.{variant[-2:]} Å; published weights.",
    )


FAMILY = Family(
    {
        "small": _network("proteinmpnn", dim=64, depth=2, k=24, doc=f"{PAPER}: half as wide, 24 neighbors."),
        "dauparas2022": _network("proteinmpnn.dauparas2022"),
        **{variant: _published(variant) for variant in VARIANTS},
    },
    doc="Message passing on the 48 nearest residues, and an autoregressive decoder of residue types.",
)

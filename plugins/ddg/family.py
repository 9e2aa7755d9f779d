"""Model families for the changes of folding and of binding free energy on mutation."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["BINDING_FAMILY", "FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"ddg_interface": "BINDING_FAMILY", "ddg_site": "FAMILY"}}


def _network(name: str, *, dim: int = 32, dropout: float = 0.3, only_hidden: bool = True) -> ModelSpec:
    hidden = {"only_hidden": True} if only_hidden else {}
    return ModelSpec(
        name,
        features=[component("site_packing", **hidden), component("proteinmpnn_site", **hidden)],
        layers=[
            component("embed", reads=["site_packing", "site_log_probs"], dim=dim, dropout=dropout / 2),
            "type_features",
        ],
        readout={"h": "h", "type_features": "type_features"},
        heads={"mutation": {"hidden": [dim], "act": "gelu", "dropout": dropout}},
        doc="Features of the mutated residue alone: ProteinMPNN, packing, properties of residue types.",
    )


FAMILY = Family(
    {
        "small": _network("ddg_site", only_hidden=False),
        "hidden": _network("ddg_site.hidden"),
        "wide": _network("ddg_site.wide", dim=64),
    },
    doc="Antisymmetric networks for the change of folding free energy on mutation.",
)


def _binding_model(name: str, *, only_hidden: bool = True) -> ModelSpec:
    hidden = {"only_hidden": True} if only_hidden else {}
    names = ("site_packing", "proteinmpnn_site", "proteinmpnn_binding", "interface_site")
    return ModelSpec(
        name,
        features=[component(feature, **hidden) for feature in names],
        layers=["interface_context", component("type_features", reads={"binding_log_probs": "binding_log_probs"})],
        readout={"h": "h", "type_features": "type_features"},
        heads={"mutation": {"hidden": []}},
        doc="Features of residue types times the surroundings of the mutated residue in the complex.",
    )


BINDING_FAMILY = Family(
    {
        "small": _binding_model("ddg_interface", only_hidden=False),
        "hidden": _binding_model("ddg_interface.hidden"),
    },
    doc="Antisymmetric bilinear models for the change of binding free energy on mutation.",
)

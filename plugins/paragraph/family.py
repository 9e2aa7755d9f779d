"""Model family of Paragraph: six message passing layers over all pairs of loop residues, and an MLP."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY", "FILES"]
ENTRY_POINTS = {"protgraph.models": {"paragraph": "FAMILY"}}

PAPER = "Chinery et al. 2023, doi:10.1093/bioinformatics/btac732"
#: Variant → file of published weights.
FILES = {
    "paired": "pretrained_weights.pt",
    "heavy": "pretrained_weights_heavy.pt",
    "light": "pretrained_weights_light.pt",
}


def _network(name: str, *, weights: str = "", doc: str = PAPER) -> ModelSpec:
    dense = {"hidden": [10, 10], "act": "hardtanh"}
    return ModelSpec(
        name,
        features=["antibody_residue", "every_pair", "edge_near"],
        layers=[
            component("paragraph_layer", reads={"h": "antibody_residue", "edge_attr": "edge_near"}),
            *5 * [component("paragraph_layer", reads={"edge_attr": "edge_near"})],
        ],
        heads={f"node_{kind}": dense for kind in ("classifier", "multilabel", "regressor")},
        weights=weights,
        doc=doc,
    )


FAMILY = Family(
    {
        "chinery2023": _network("paragraph"),
        **{
            variant: _network(
                f"paragraph.{variant}",
                weights="protgraph_plugins.paragraph.weights:load_paragraph",
                doc=f"{PAPER}: published weights ({variant}).",
            )
            for variant in FILES
        },
    },
    doc="Antigen contacts of the residues in the binding loops of an antibody.",
)

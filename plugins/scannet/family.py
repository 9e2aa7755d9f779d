"""Model family of ScanNet: filters of atoms, pooled to residues, filters of residues, attention between residues."""

from __future__ import annotations

from protgraph_plugins.scannet.atoms import ATOM_KINDS

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY", "FILES"]
ENTRY_POINTS = {"protgraph.models": {"scannet": "FAMILY"}}

PAPER = "Tubiana et al. 2022, doi:10.1038/s41592-022-01490-7"
#: Variant → names of the published networks without alignment, whose probabilities are averaged.
FILES = {
    "ppi": ["ScanNet_PPI_noMSA"],
    "epitope": [f"ScanNet_PAI_noMSA_{n}" for n in range(5)],
    "disordered": [f"ScanNet_PIDPI_noMSA_{n}" for n in range(5)],
}
#: Variant → what its networks predict.
_PREDICTS = {
    "ppi": "residues that bind another protein",
    "epitope": "residues that bind an antibody",
    "disordered": "residues that bind a disordered protein",
}

ATOM_NEIGHBORS, RESIDUE_NEIGHBORS, WIDE_NEIGHBORS = 15, 15, 31  # beside the node itself


def _features() -> list[ComponentSpec | str]:
    return [
        "scan_atoms",
        component("knn", k=ATOM_NEIGHBORS, nodes="scan_atoms", edges="atom_near"),
        "residue_one_hot",
        "scan_residue",
        component("knn", k=RESIDUE_NEIGHBORS),
        component("knn", k=WIDE_NEIGHBORS, edges="wide"),
    ]


def _layers(*, atom_filters: int, heads: int, residue_filters: int, dim: int, kernels: int) -> list[ComponentSpec]:
    """Return the layers of one network, which writes two logits ``h``."""
    return [
        component("embed", reads=["scan_atoms_scan_kind"], dim=len(ATOM_KINDS), writes={"h": "scan_atoms_h"}),
        component("scan_filter", edges="atom_near", dim=atom_filters, kernels=kernels, radius=2.0),
        component("scan_pool", edges="from_scan_atoms", dim=heads, writes={"h": "of_atoms"}),
        component("scan_dense", reads={"h": "residue_one_hot"}, dim=dim, writes={"h": "of_type"}),
        component("concat", reads=["of_type", "of_atoms"]),
        component("scan_filter", dim=residue_filters, kernels=kernels, radius=6.0),
        component("scan_dense", dim=dim),
        component("scan_attention", edges="wide", kernels=kernels),
    ]


def _published(variant: str) -> ModelSpec:
    """Return the networks of a variant one after the other, and the mean of several."""
    layers, outputs = [], []
    for number in range(len(FILES[variant])):
        network = _layers(atom_filters=128, heads=64, residue_filters=128, dim=32, kernels=32)
        layers += network
        if len(FILES[variant]) > 1:
            outputs.append(f"logits_{number}")
            layers[-1] = component("scan_attention", edges="wide", kernels=32, writes={"h": outputs[-1]})
    if outputs:
        layers.append(component("mean_probability", reads=outputs, log_odds=True))
    return ModelSpec(
        f"scannet.{variant}",
        features=_features(),
        layers=layers,
        weights="protgraph_plugins.scannet.weights:load_scannet",
        doc=f"{PAPER}: {_PREDICTS[variant]}, from the structure alone; published weights.",
    )


FAMILY = Family(
    {
        "small": ModelSpec(
            "scannet",
            features=_features(),
            layers=_layers(atom_filters=32, heads=16, residue_filters=32, dim=16, kernels=16),
            doc=f"{PAPER}: filters of a quarter of the width.",
        ),
        **{variant: _published(variant) for variant in FILES},
    },
    doc="Spatio-chemical filters of atoms and residues in their own frames, with attention between residues.",
)

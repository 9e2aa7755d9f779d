"""Backbone embeddings of the published encoder of ProteinMPNN, for other models: ``proteinmpnn_embedding``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from typing import ClassVar

import numpy as np
import torch
from protgraph_plugins.proteinmpnn.family import FAMILY
from safetensors.torch import load_file

from protgraph import FieldSpec, ProteinModel, Residues, StructureFeaturizer, Target, build_model, register_field
from protgraph.data import Conformity

__all__ = ["ENCODER_FILE", "ProteinMPNNEmbedding", "published_encoder"]
ENTRY_POINTS = {"protgraph.featurizers": {"proteinmpnn_embedding": "ProteinMPNNEmbedding"}}

ENCODER_FILE = "encoder_v_48_020.safetensors"
_VARIANT = "v_48_020"

register_field(
    FieldSpec(
        "proteinmpnn_embedding", "node", "128x0e", chiral=True, doc="encoding of the backbone by published ProteinMPNN"
    )
)


class ProteinMPNNEmbedding(StructureFeaturizer):
    """Output of the published encoder of ProteinMPNN (``v_48_020``) for each residue, from the backbone alone.

    Writes
    ------
    proteinmpnn_embedding : (N, 128) float32, 0e under rotations (chiral), dimensionless
        0 for residues without all of N, CA, C and O.

    Notes
    -----
    The weights (Justas Dauparas, MIT license) are part of this package, rounded to float16: the embedding differs from
    that of the published float32 weights by less than 0.5 % of its norm. The encoder was trained on assemblies of the
    PDB until August 2021 to predict residue types; it was not trained on binding sites.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187.
    """

    writes: ClassVar[tuple[str, ...]] = ("proteinmpnn_embedding",)
    conformity = Conformity(tolerance=2e-3)  # neighbors at equal distance change places with rounded coordinates

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        encoder, complete = published_encoder(), residues.backbone_mask.all(1)
        out = np.zeros((len(residues), encoder.fields["h"].dim), np.float32)
        if complete.any():
            graph = encoder.plan.precompute(residues.select(complete))
            with torch.inference_mode():
                out[complete] = encoder.embed(graph)["h"].numpy()
        return {"proteinmpnn_embedding": out}


@cache
def published_encoder() -> ProteinModel:
    """Return the encoder with the published weights, which are read once per process."""
    spec = FAMILY.variants[_VARIANT]
    features = [node for node in spec.features if node.name != "decoding_rank"]
    spec = replace(spec, name="proteinmpnn_encoder", features=features, layers=spec.layers[:-1], weights="")
    model = build_model(spec, Target("unused", "node", "classification", 1), seed=0)
    with as_file(files("protgraph_plugins.proteinmpnn") / ENCODER_FILE) as path:
        state = {name: value.float() for name, value in load_file(path).items()}
    model.layers.load_state_dict(state)
    return model.eval()

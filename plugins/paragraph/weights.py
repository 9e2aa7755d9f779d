"""Find, read and convert the published weights of Paragraph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from protgraph_plugins.paragraph.family import FILES
from torch import Tensor

from protgraph import Target
from protgraph.errors import MissingExtraError
from protgraph.model import PublishedWeights, convert_state, read_weights

__all__ = ["FOLDER_VARIABLE", "convert_paragraph_state", "load_paragraph"]

#: Environment variable with the folder ``Paragraph/trained_model`` of a copy of the program.
FOLDER_VARIABLE = "PROTGRAPH_PARAGRAPH"


def load_paragraph(name: str, file: str | Path | None = None) -> PublishedWeights:
    """Load the weights of a variant, e.g. ``"paragraph.paired"``, or of a file, for antigen contacts of residues.

    Raises
    ------
    MissingExtraError
        The weights are not on this machine.
    CheckpointError
        The file is damaged or from another program.
    """
    file_name = FILES[name.rpartition(".")[2]]
    path = Path(file) if file else Path(os.environ.get(FOLDER_VARIABLE, "")) / file_name
    if not path.is_file():
        raise MissingExtraError(
            f"weights of {name} not found: {path}.\n"
            f"Download Paragraph/trained_model of github.com/oxpig/Paragraph and set {FOLDER_VARIABLE} to that folder."
        )
    state = read_weights(path, "Paragraph")
    target = Target("paratope", "node", "multilabel", 1, ("paratope",))
    return PublishedWeights(target, convert_state(state, convert_paragraph_state, path=path, program="Paragraph"))


def convert_paragraph_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert a state of the program; the first map of each message is split by its inputs."""
    ours: dict[str, Tensor] = {}
    layers = 1 + max(int(k.split(".")[1]) for k in state if k.startswith("graph_layers."))
    for n in range(layers):
        theirs, mine = f"graph_layers.{n}.", f"layers.{n}."
        joined, dim = state[f"{theirs}edge_mlp.0.weight"], state[f"{theirs}node_mlp.3.weight"].size(0)
        parts = joined.split([dim, dim, joined.size(1) - 2 * dim], 1)
        ours |= {f"{mine}{k}.weight": v for k, v in zip(("target", "source", "edge"), parts, strict=True)}
        ours[f"{mine}target.bias"] = state[f"{theirs}edge_mlp.0.bias"]
        for kind in ("weight", "bias"):
            ours[f"{mine}message.{kind}"] = state[f"{theirs}edge_mlp.3.{kind}"]
            ours[f"{mine}node.0.{kind}"] = state[f"{theirs}node_mlp.0.{kind}"]
            ours[f"{mine}node.2.{kind}"] = state[f"{theirs}node_mlp.3.{kind}"]
    for n in range(3):
        for kind in ("weight", "bias"):
            ours[f"head.mlp.{3 * n}.{kind}"] = state[f"linear_layers.{n}.{kind}"]
    return ours
